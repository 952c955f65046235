"""PCC of two large float32 tensors against numpy's bare dot products.

    python benchmarks/pcc.py [--elements 100_000_000] [--rounds 7]

The comparator is the least that computes the three second moments of float32 data in float64:
convert to float64 and call ``np.dot`` for x.x, y.y and x.y. It has no mean, no error, no test for
special cases. It is run with several chunk lengths and once over whole converted arrays, and the
bar is held against the fastest of them. All variants run in turn, round after round in one process,
so that a slow moment of the machine hits all alike; only ratios mean anything.

Which chunk length is fastest depends on BLAS: with threads, long vectors that one core has just
written are slow to hand to another; with OPENBLAS_NUM_THREADS=1 they are the fastest. Try both.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pytest_ttnn_perf.measure.pcc import compare

if TYPE_CHECKING:
    from collections.abc import Callable

TIME_BAR: Final = 8.0  # both sides are read twice, for sums that keep their digits
MEMORY_BAR: Final = 2.0  # inputs and everything beside them, over inputs
CHUNKS: Final = (8_192, 9_984, 32_768, 131_072)
OURS: Final = "compare"


def main() -> int:
    parser = argparse.ArgumentParser(description="PCC against numpy's bare dot products")
    parser.add_argument("--elements", type=int, default=100_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()

    threads = os.environ.get("OPENBLAS_NUM_THREADS", "default")
    print(f"{options.elements:,} float32 elements a side, numpy {np.__version__}, ", end="")
    print(f"BLAS threads: {threads}")
    x, y = make_inputs(options.elements)
    memory = memory_ratio(x, y)  # first: the high-water mark only rises
    ratio = time_ratio(x, y, rounds=options.rounds)
    print(f"time    {ratio:.2f} x the fastest comparator (bar {TIME_BAR:.2f})")
    print(f"memory  {memory:.3f} x the inputs (bar {MEMORY_BAR:.2f})")
    return 0 if ratio <= TIME_BAR and memory <= MEMORY_BAR else 1


def make_inputs(elements: int) -> tuple[Any, Any]:
    """Make two tensors that differ by about as much as bfloat16 does from float32.

    Piece by piece: a temporary as large as an input would hide what ``compare`` itself needs.
    """
    random = np.random.default_rng(0)
    x: Any = np.empty(elements, np.float32)
    y: Any = np.empty_like(x)
    piece = 65_536
    for start in range(0, elements, piece):
        progress(f"making inputs: {100 * start // elements} %")
        some = x[start : start + piece]
        random.standard_normal(out=some, dtype=np.float32)
        noise = random.standard_normal(some.size, dtype=np.float32)
        np.add(some, np.float32(0.01) * noise, out=y[start : start + piece])
    return x, y


def memory_ratio(x: Any, y: Any) -> float:
    """Return (inputs + what ``compare`` adds at its peak) / inputs."""
    compare(x[:1000], y[:1000])  # loads what is loaded once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    compare(x, y)
    added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    inputs = x.nbytes + y.nbytes
    progress("")
    print(f"peak resident memory + {added / 2**20:.1f} MiB for {inputs / 2**20:.1f} MiB of inputs")
    return float((inputs + added) / inputs)


def time_ratio(x: Any, y: Any, *, rounds: int) -> float:
    """Return the median over rounds of our time / that of the fastest comparator."""
    variants: dict[str, Callable[[], object]] = {OURS: partial(compare, x, y)}
    for chunk in CHUNKS:
        variants[f"np.dot, chunks of {chunk:,}"] = partial(dots_in_chunks, x, y, chunk=chunk)
    variants["np.dot, whole arrays"] = partial(dots_of_whole, x, y)

    seconds: dict[str, list[float]] = {name: [] for name in variants}
    names = list(variants)
    for number in range(rounds + 1):
        # Each round starts elsewhere: BLAS threads still spin for a while after a threaded variant
        # and slow down whatever comes next.
        names.append(names.pop(0))
        for name in names:
            progress(f"round {number} of {rounds}: {name}")
            start = time.perf_counter()
            variants[name]()
            elapsed = time.perf_counter() - start
            if number:  # the first round warms up
                seconds[name].append(elapsed)
    progress("")
    ratios: dict[str, float] = {}
    for name, own in seconds.items():
        per_round = [ours / other for ours, other in zip(seconds[OURS], own, strict=True)]
        ratios[name] = statistics.median(per_round)
        nanoseconds = 1e9 * statistics.median(own) / x.size
        print(f"{name:28}{nanoseconds:6.2f} ns per element, compare / this = {ratios[name]:.2f}")
    return max(ratio for name, ratio in ratios.items() if name != OURS)


def dots_in_chunks(x: Any, y: Any, *, chunk: int) -> tuple[float, float, float]:
    some_x, some_y = np.empty(chunk), np.empty(chunk)
    xx = yy = xy = 0.0
    for start in range(0, x.size, chunk):
        count = min(chunk, x.size - start)
        a, b = some_x[:count], some_y[:count]
        np.copyto(a, x[start : start + count])
        np.copyto(b, y[start : start + count])
        xx += np.dot(a, a)
        yy += np.dot(b, b)
        xy += np.dot(a, b)
    return xx, yy, xy


def dots_of_whole(x: Any, y: Any) -> tuple[float, float, float]:
    a, b = x.astype(np.float64), y.astype(np.float64)
    return np.dot(a, a), np.dot(b, b), np.dot(a, b)


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
