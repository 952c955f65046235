"""What measuring costs: the reported time of a no-op, and the CPU per measured test.

Bars: a no-op is reported as at most 1.15 × a bare perf_counter_ns pair around the same call; a
measured test costs at most 0.2 ms of CPU in the process that judges, and 0.3 ms in that and the
worker together. All against something measured in the same run: this process, and the same tests
without the gate.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter_ns

from pytest_ttnn_perf.measure.timing import Timings, Workload, measure

ROUNDS, CALLS, FEW, MANY = 15, 2000, 20, 420
WARMUP = 3
NO_OP_BAR, JUDGING_BAR_MS, TEST_BAR_MS = 1.15, 0.2, 0.3

PLAIN = "import pytest\n\n@pytest.mark.parametrize('i', range({tests}))\ndef test_plain(i): pass\n"
GATED = (
    "import pytest\n\ndef nothing(): pass\n\n"
    "@pytest.mark.ttnn_perf(warmup=0, iterations=20)\n"
    "@pytest.mark.parametrize('i', range({tests}))\n"
    "def test_gated(ttnn_perf, i): ttnn_perf.measure(nothing)\n"
)
#: Prints the CPU seconds of a whole pytest run: in its own process, and in all that it started too.
COUNTED = (
    "import json, os, sys, time, pytest\nstart = time.process_time()\n"
    "code = pytest.main(sys.argv[1:])\nown, times = time.process_time() - start, os.times()\n"
    "workers = times.children_user + times.children_system\n"
    "print('CPU', json.dumps([own, own + workers]))\nsys.exit(code)"
)


def main() -> int:
    ratio = _no_op()
    print(f"reported no-op over a bare pair:  {ratio:5.2f} (bar: {NO_OP_BAR})")
    judging_ms, both_ms = _per_test()
    print(f"CPU per measured test, judging:   {judging_ms:5.3f} ms (bar: {JUDGING_BAR_MS} ms)")
    print(f"CPU per measured test, in all:    {both_ms:5.3f} ms (bar: {TEST_BAR_MS} ms)")
    within = judging_ms <= JUDGING_BAR_MS and both_ms <= TEST_BAR_MS
    return 0 if ratio <= NO_OP_BAR and within else 1


def _no_op() -> float:
    """Return the median over interleaved rounds of (our median) / (bare median).

    Ours is sampled in loops, as what is so short is, where there is a warm-up.
    """
    ratios = []
    for _ in range(ROUNDS):
        bare = statistics.median(_bare())
        timings = Timings()
        measure(Workload(_nothing), timings, warmup=WARMUP, iterations=CALLS)
        ratios.append(statistics.median(timings.samples_ns) / bare)
    return statistics.median(ratios)


def _bare() -> list[int]:
    samples = []
    for _ in range(CALLS):
        start = perf_counter_ns()
        _nothing()
        stop = perf_counter_ns()
        samples.append(stop - start)
    return samples


def _nothing() -> None:
    pass


def _per_test() -> tuple[float, float]:
    """Return the CPU that the gate adds per test: in the process that judges, and in both.

    From runs of few and of many tests, so that starting up does not count. That process runs no
    test; plain pytest, which does, is taken off both: the first may be less than nothing.
    """
    gate = ["--ttnn-perf", "--ttnn-perf-missing=ignore"]
    with tempfile.TemporaryDirectory() as name:
        judging_ms, both_ms = _slopes_ms(Path(name), GATED, gate)
        plain_ms, _ = _slopes_ms(Path(name), PLAIN, [])
    return judging_ms - plain_ms, both_ms - plain_ms


def _slopes_ms(folder: Path, source: str, arguments: list[str]) -> tuple[float, float]:
    cpu_s = {}
    for tests in (FEW, MANY):
        (folder / "test_model.py").write_text(source.format(tests=tests))
        runs = [_cpu_s(folder, arguments) for _ in range(5)]
        cpu_s[tests] = [min(part) for part in zip(*runs, strict=True)]
    own, both = (
        (many - few) / (MANY - FEW) * 1e3 for few, many in zip(cpu_s[FEW], cpu_s[MANY], strict=True)
    )
    return own, both


def _cpu_s(folder: Path, arguments: list[str]) -> tuple[float, float]:
    """Return the CPU seconds of a run in its own process, and in its workers too."""
    quiet = ["-p", "no:cacheprovider", "-p", "no:terminal"]
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *quiet, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    own, both = json.loads(done.stdout.rpartition("CPU ")[2])
    return float(own), float(both)


if __name__ == "__main__":
    sys.exit(main())
