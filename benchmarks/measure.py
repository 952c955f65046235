"""What measuring costs: the reported time of a no-op, and the CPU per measured test.

Bars: a no-op is reported as at most 1.15 × a bare perf_counter_ns pair around the same call; a
measured test costs at most 0.2 ms of CPU. Both against something measured in the same run: this
process, and the same tests without the gate.
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
NO_OP_BAR, TEST_BAR_MS = 1.15, 0.2

PLAIN = "import pytest\n\n@pytest.mark.parametrize('i', range({tests}))\ndef test_plain(i): pass\n"
GATED = (
    "import pytest\n\ndef nothing(): pass\n\n"
    "@pytest.mark.ttnn_perf(warmup=0, iterations=20)\n"
    "@pytest.mark.parametrize('i', range({tests}))\n"
    "def test_gated(ttnn_perf, i): ttnn_perf.measure(nothing)\n"
)
#: Prints the CPU seconds of a whole pytest run; imports before it are not counted.
COUNTED = (
    "import sys, time, pytest\nstart = time.process_time()\n"
    "code = pytest.main(sys.argv[1:])\nprint('CPU', time.process_time() - start)\nsys.exit(code)"
)


def main() -> int:
    ratio = _no_op()
    print(f"reported no-op over a bare pair:  {ratio:5.2f} (bar: {NO_OP_BAR})")
    cost_ms = _per_test()
    print(f"CPU per measured test:            {cost_ms:5.3f} ms (bar: {TEST_BAR_MS} ms)")
    return 0 if ratio <= NO_OP_BAR and cost_ms <= TEST_BAR_MS else 1


def _no_op() -> float:
    """Return the median over interleaved rounds of (our median) / (bare median)."""
    ratios = []
    for _ in range(ROUNDS):
        bare = statistics.median(_bare())
        timings = Timings()
        measure(Workload(_nothing), timings, warmup=0, iterations=CALLS)
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


def _per_test() -> float:
    """Return the CPU that the gate adds per test, fixture set-up and judging included.

    From runs of few and of many tests, so that starting up does not count.
    """
    gate = ["--ttnn-perf", "--ttnn-perf-missing=ignore"]
    with tempfile.TemporaryDirectory() as name:
        return _slope_ms(Path(name), GATED, gate) - _slope_ms(Path(name), PLAIN, [])


def _slope_ms(folder: Path, source: str, arguments: list[str]) -> float:
    cpu_s = {}
    for tests in (FEW, MANY):
        (folder / "test_model.py").write_text(source.format(tests=tests))
        cpu_s[tests] = min(_cpu_s(folder, arguments) for _ in range(5))
    return (cpu_s[MANY] - cpu_s[FEW]) / (MANY - FEW) * 1e3


def _cpu_s(folder: Path, arguments: list[str]) -> float:
    quiet = ["-p", "no:cacheprovider", "-p", "no:terminal"]
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *quiet, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout.rpartition("CPU ")[2]))


if __name__ == "__main__":
    sys.exit(main())
