"""Reading an ops CSV: beside pandas, beside tt-perf-report, and from 1,000 to 1,000,000 rows.

    python benchmarks/capture.py [--rows 1_000_000] [--rounds 9] [--peer PYTHON | --without-peer]

Bars: at most 2 × ``pandas.read_csv`` of the same columns over all files, which has then only split
and converted them; at least 5 × faster than tt-perf-report in process; time per row that does not
grow with the file, and at most 1 GB resident for a million rows; and attributing the change between
two files at most half of the time of reading both. Files are made here, as a profiler would write
them, and those of the corpus of real captures come on top.

CPU time, both sides in turn, round after round; only ratios mean anything. tt-perf-report pins the
packages that it needs, so it runs in an environment of its own, installed for the occasion unless
``--peer`` names the Python of one.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.ops.align import attribute
from pytest_ttnn_perf.analysis.ops.names import settings_in
from pytest_ttnn_perf.analysis.ops.regions import regions_of
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from tests.harness.corpus import corpus_folder, op_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ttnn_perf.core.ops import OpTable

PANDAS_BAR: Final = 2.0
PEER_BAR: Final = 5.0
GROWTH_BAR: Final = 1.3  # time per row of the largest file over that of the file of 10,000 rows
MEMORY_BAR_MB: Final = 1000.0
ATTRIBUTION_BAR: Final = 0.5
OPS: Final = 3_000
SMALLEST_BYTES: Final = 500_000  # smaller files measure how long it takes to begin
WANTED: Final = (
    "OP CODE", "OP TYPE", "DEVICE ID", "DEVICE ARCH", "ATTRIBUTES", "MATH FIDELITY", "CORE COUNT",
    "AVAILABLE WORKER CORE COUNT", "DEVICE FW START CYCLE", "OP TO OP LATENCY [ns]",
    "DEVICE FW DURATION [ns]", "DEVICE KERNEL DURATION [ns]", "METAL TRACE ID",
    "METAL TRACE REPLAY SESSION ID", "PM IDEAL [ns]",
    "DEVICE KERNEL DURATION PER CORE MIN [ns]", "DEVICE KERNEL DURATION PER CORE MAX [ns]",
    "GLOBAL CALL COUNT", "HOST DURATION [ns]",
)  # fmt: skip

#: Reads one file and says how long it took and how much memory the process ever had.
READ_ONCE: Final = """
import pathlib, sys, time
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
start = time.process_time()
table = read_ops_csv(pathlib.Path(sys.argv[1]))
seconds = time.process_time() - start
status = pathlib.Path("/proc/self/status").read_text()
print(len(table), seconds, next(s for s in status.splitlines() if "VmHWM" in s).split()[1])
"""

#: Runs tt-perf-report on files, in process, several times, and prints the CPU seconds of each.
PEER: Final = """
import contextlib, inspect, io, json, sys, time
from tt_perf_report.perf_report import generate_perf_report as report
options = {"csv_output_file": "/dev/null", "no_advice": True, "no_summary": True,
           "no_stacked_report": True, "ignore_signposts": True, "min_percentage": 0.5,
           "csv_files": None}
names = inspect.signature(report).parameters
for file in sys.argv[2:]:
    seconds, problem = [], None
    for _ in range(int(sys.argv[1])):
        arguments = {name: options.get(name) for name in names} | {"csv_files": [file]}
        start = time.process_time()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                report(**arguments)
        except (Exception, SystemExit) as cause:
            problem = f"{type(cause).__name__}: {cause}"
            break
        seconds.append(time.process_time() - start)
    print(json.dumps([file, seconds, problem]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Reading an ops CSV, side by side")
    parser.add_argument("--rows", type=int, default=1_000_000, help="Rows of the largest file")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peer", help="The Python of an environment with tt-perf-report")
    parser.add_argument("--without-peer", action="store_true", help="Leave tt-perf-report out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [write_capture(folder / "generated.csv", rows=OPS), *corpus_files()]
        met = [beside_pandas(files, rounds=options.rounds)]
        if not options.without_peer:
            python = options.peer or install_peer(folder)
            met.append(beside_peer(files, python, rounds=3))
        met += [growth(folder, most=options.rows), attribution_cost(folder, rounds=options.rounds)]
    print("all bars met" if all(met) else "A BAR WAS MISSED OR NOT MEASURED")
    return 0 if all(met) else 1


def corpus_files() -> list[Path]:
    found = op_tables()
    if not found:
        print(
            f"no corpus at {corpus_folder()}: generated files only (TTNN_PERF_CORPUS names another)"
        )
    return [file for file in found if file.stat().st_size >= SMALLEST_BYTES]


def beside_pandas(files: list[Path], *, rounds: int) -> bool:
    """Compare with the time pandas takes for the same columns."""
    import pandas as pd

    print(f"\nread_ops_csv / pandas.read_csv of the same columns (bar {PANDAS_BAR:.2f})")
    total_ours = total_pandas = 0.0
    for file in files:
        header = pd.read_csv(file, nrows=0).columns
        columns = [c for c in header if c in WANTED or c.startswith(("INPUT_", "OUTPUT_"))]
        ours, pandas = in_turn(
            partial(read_ops_csv, file), partial(pd.read_csv, file, usecols=columns), rounds=rounds
        )
        ratio = statistics.median(a / b for a, b in zip(ours, pandas, strict=True))
        print(f"  {file.stem:40}{1e3 * statistics.median(ours):9.1f} ms", end="")
        print(f"{1e3 * statistics.median(pandas):9.1f} ms{ratio:8.2f}")
        total_ours += statistics.median(ours)
        total_pandas += statistics.median(pandas)
    print(f"  all files{total_ours / total_pandas:62.2f}")
    return total_ours / total_pandas <= PANDAS_BAR


def in_turn(*sides: Callable[[], object], rounds: int) -> list[list[float]]:
    """Return the CPU seconds of each side, round by round; the first round warms up."""
    seconds: list[list[float]] = [[] for _ in sides]
    for number in range(rounds + 1):
        for own, side in zip(seconds, sides, strict=True):
            start = time.process_time()
            side()
            if number:
                own.append(time.process_time() - start)
    return seconds


def install_peer(folder: Path) -> str | None:
    """Install tt-perf-report into an environment of its own; None where that cannot be done."""
    python = folder / "peer" / "bin" / "python"
    commands = (
        [sys.executable, "-m", "venv", str(folder / "peer")],
        [str(python), "-m", "pip", "install", "--quiet", "tt-perf-report"],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr.strip()[-300:])
            return None
    return str(python)


def beside_peer(files: list[Path], python: str | None, *, rounds: int) -> bool:
    """Compare with tt-perf-report's own reading and analysis, its printing left out."""
    print(f"\ntt-perf-report in process / read_ops_csv (bar {PEER_BAR:.1f})")
    if python is None:
        print("  NOT MEASURED: tt-perf-report could not be installed here (--peer PYTHON)")
        return False
    command = [python, "-c", PEER, str(rounds), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  NOT MEASURED: {done.stderr.strip()[-300:]}")
        return False
    ratios = []
    for line in done.stdout.splitlines():
        name, theirs, problem = json.loads(line)
        ((*ours,),) = in_turn(partial(read_ops_csv, Path(name)), rounds=rounds)
        if problem:
            print(f"  {Path(name).stem:40}it cannot read this: {problem[:60]}")
            continue
        ratios.append(statistics.median(theirs) / statistics.median(ours))
        print(f"  {Path(name).stem:40}{1e3 * statistics.median(theirs):9.1f} ms{ratios[-1]:8.1f}")
    return bool(ratios) and min(ratios) >= PEER_BAR


def growth(folder: Path, *, most: int) -> bool:
    """Read ever larger files, each in a process of its own."""
    print(f"\ntime per row and memory (bars: {GROWTH_BAR:.1f} x, {MEMORY_BAR_MB:.0f} MB)")
    per_row: dict[int, float] = {}
    megabytes = 0.0
    for rows in (1_000, 10_000, 100_000, 1_000_000):
        if rows > most:
            break
        file = write_capture(folder / "large.csv", rows=rows)
        runs = [read_once(file) for _ in range(3 if rows < most else 1)]
        per_row[rows] = min(seconds for seconds, _ in runs) / rows
        megabytes = max(own for _, own in runs)
        print(f"  {rows:>9,} rows{file.stat().st_size / 1e6:9.1f} MB file", end="")
        print(f"{1e6 * per_row[rows]:8.2f} µs a row{megabytes:9.0f} MB resident")
        file.unlink()
    grown = per_row[max(per_row)] / per_row.get(10_000, per_row[min(per_row)])
    print(f"  time per row has grown to {grown:.2f} x")
    return grown <= GROWTH_BAR and megabytes <= MEMORY_BAR_MB


def read_once(file: Path) -> tuple[float, float]:
    """Read a file in a process of its own; return its CPU seconds and peak megabytes."""
    command = [sys.executable, "-c", READ_ONCE, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    _, seconds, kibibytes = done.stdout.split()
    return float(seconds), float(kibibytes) * 1024 / 1e6


def attribution_cost(folder: Path, *, rounds: int) -> bool:
    """Compare what naming the differences of two captures costs with reading both."""
    print(f"\nattribution of {OPS:,} ops to {OPS:,} / reading both (bar {ATTRIBUTION_BAR:.2f})")
    layer = tuple(range(30))
    more = (*layer[:15], 7, *layer[15:])  # an op that is in the layer already: the harder to align
    ratios = []
    for name, seed, ours, theirs in (("repeated layers", 0, layer, more), ("unrelated", 1, (), ())):
        before = write_capture(folder / "before.csv", rows=OPS, layer=ours)
        after = write_capture(folder / "after.csv", rows=OPS, seed=seed, layer=theirs)
        own, reading = in_turn(
            partial(attribute_afresh, *map(read_ops_csv, (before, after))),
            partial(lambda *files: list(map(read_ops_csv, files)), before, after),
            rounds=rounds,
        )
        ratios.append(statistics.median(a / b for a, b in zip(own, reading, strict=True)))
        print(f"  {name:40}{1e3 * statistics.median(own):9.1f} ms{ratios[-1]:8.2f}")
    return max(ratios) <= ATTRIBUTION_BAR


def attribute_afresh(before: OpTable, after: OpTable) -> None:
    settings_in.cache_clear()  # what an earlier round has read must not help
    regions = (regions_of(before).regions[0], regions_of(after).regions[0])
    attribute(before, after, regions)


def write_capture(file: Path, *, rows: int, seed: int = 0, layer: tuple[int, ...] = ()) -> Path:
    """Write a capture as a profiler would: many columns, few different ops, long attributes."""
    chance = random.Random(seed)
    kinds = [make_kind(chance, number) for number in range(80)]
    with file.open("w", encoding="utf-8", newline="") as stream:
        stream.write(",".join(HEADER) + "\r\n")
        cycle = 12_482_573_256_535
        for number in range(rows):
            kernel_ns, gap_ns = chance.randrange(900, 400_000), chance.randrange(500, 2_000)
            cycle += kernel_ns + gap_ns
            kind = chance.randrange(80) if number % 7 == 0 else number % 80
            kind, device = (layer[number % len(layer)], 0) if layer else (kind, number % 2)
            times = cycle, cycle + kernel_ns, gap_ns, kernel_ns + 700, kernel_ns
            stream.write(kinds[kind] % (number, device, *times))
    return file


HEADER: Final = (
    "OP CODE", "OP TYPE", "GLOBAL CALL COUNT", "DEVICE ID", "DEVICE ARCH", "ATTRIBUTES",
    "MATH FIDELITY", "CORE COUNT", "AVAILABLE WORKER CORE COUNT", "HOST START TS", "HOST END TS",
    "HOST DURATION [ns]", "DEVICE FW START CYCLE", "DEVICE FW END CYCLE", "OP TO OP LATENCY [ns]",
    "DEVICE FW DURATION [ns]", "DEVICE KERNEL DURATION [ns]",
    "DEVICE KERNEL DURATION PER CORE MIN [ns]", "DEVICE KERNEL DURATION PER CORE MAX [ns]",
    *(f"DEVICE {name} KERNEL DURATION [ns]" for name in ("BRISC", "NCRISC", "TRISC0", "TRISC1")),
    *(
        f"{name}_{part}"
        for name in ("INPUT_0", "INPUT_1", "INPUT_2", "INPUT_3", "OUTPUT_0", "OUTPUT_1")
        for part in (*(f"{d}_PAD[LOGICAL]" for d in "WZYX"), "LAYOUT", "DATATYPE", "MEMORY")
    ),
    "METAL TRACE ID", "METAL TRACE REPLAY SESSION ID", "COMPUTE KERNEL SOURCE",
    "COMPUTE KERNEL HASH", "DATA MOVEMENT KERNEL SOURCE", "DATA MOVEMENT KERNEL HASH",
    "PROGRAM HASH", "PROGRAM CACHE HIT", "PM IDEAL [ns]", "PM COMPUTE [ns]", "PM BANDWIDTH [ns]",
    "PM FPU UTIL (%)", "NOC UTIL (%)", "DRAM BW UTIL (%)",
)  # fmt: skip


def make_kind(chance: random.Random, number: int) -> str:
    """Return a row with places for what differs between rows of one kind."""

    def tensor() -> str:
        dims = ",".join(f"{n}[{n}]" for n in (1, 1, 32 * chance.randrange(1, 40), 4096))
        memory = chance.choice(("L1_WIDTH_SHARDED", "DRAM_INTERLEAVED"))
        return f"{dims},TILE,{chance.choice(('BFLOAT16', 'BFLOAT8_B'))},DEV_1_{memory}"

    inputs = chance.randrange(1, 5)
    operands = ",".join([tensor() for _ in range(inputs)] + ["," * 6] * (4 - inputs))
    outputs = f"{tensor()},{',' * 6}"
    values = (f"'key_{k}': 'Config(value={number * k};mode=Mode::SOME)'" for k in range(20))
    attributes = "; ".join(values)
    sources = "['ttnn/cpp/ttnn/operations/some/device/kernels/dataflow/reader_of_some_kind.cpp']"
    code = "MatmulDeviceOperation" if inputs > 1 else "LayerNormDeviceOperation"
    return (
        f"{code},tt_dnn_device,%d,%d,wormhole_b0,{{{attributes}}},HiFi2,"
        f"{chance.randrange(1, 64)},64,11514394038,12173005399,658611361,%d,%d,%d,%d,%d,,,,,,,"
        f"{operands},{outputs},,,"
        f"{sources},['some/10108888427113733463/'],{sources},['some/524187247213118731/'],"
        f"{chance.getrandbits(60)},False,{chance.randrange(1, 3000)},1190,1,31.144,,\r\n"
    )


if __name__ == "__main__":
    sys.exit(main())
