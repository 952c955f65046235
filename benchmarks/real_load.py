"""Unchanged and slowed tests in real processes, while other processes keep the machine busy.

    python benchmarks/real_load.py [--busy 4] [--runs 15] [--trials 5] [--nights 3] [--projects ...]

Each project is recorded three times and then run with ``--ttnn-perf-update``; after that, in each
trial, one sleeping test is 10 % and one computing test 40 % slower, in a copy of the baselines.
It takes about an hour with the defaults. The figures are those of this machine and this hour: what
they stand on is printed first.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from xml.etree import ElementTree as ET

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Products of two matrices of 260 × 260 and milliseconds of sleep in one call of each test.
PROJECTS: Final = {
    "half": [(30 * k, 0) for k in (1, 1, 2, 2, 3)] + [(0, ms) for ms in (10, 20, 20, 30, 40)],
    "sleepy": [(2, ms) for ms in (10, 15, 20, 20, 25, 30, 40)] + [(5, 0), (10, 0), (15, 0)],
}
SLOWED: Final = {"sleep": 1.1, "matmul": 1.4}
RECORDED: Final = 3
#: A limit beyond this cannot notice a slow-down of 20 %.
BLIND: Final = 0.20
LOAD: Final = re.compile(r"\bload \d")

_TESTS: Final = """\
import os, time
import numpy as np
import pytest

SLOWED = dict(each.split("=") for each in os.environ.get("SLOWED", "").split())
MATRIX = np.random.default_rng(1).standard_normal((260, 260))

@pytest.mark.parametrize(("products", "ms"), {cases}, ids={ids})
def test(ttnn_perf, request, products, ms):
    factor = float(SLOWED.get(request.node.callspec.id, 1))
    products, seconds = round(products * factor), ms * factor / 1000
    def call():
        time.sleep(seconds)
        for _ in range(products):
            MATRIX @ MATRIX
    ttnn_perf.measure(call)
"""


class Night(NamedTuple):
    """One run: its exit code, its failing tests with their messages, its widest limits by test."""

    code: int
    failures: dict[str, str]
    limits: dict[str, float]
    outcomes: Counter[str]
    load: float
    seconds: float

    @property
    def says_load(self) -> bool:
        """Whether every failing test says how busy the machine was."""
        return all(map(LOAD.search, self.failures.values()))


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep so many processes computing."""
    program = "while True: sum(range(10_000))"
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def names(project: str) -> list[str]:
    """Return the ids of a project's tests."""
    cases = enumerate(PROJECTS[project])
    return [f"{'sleep' if ms else 'matmul'}{number}" for number, (_, ms) in cases]


def run(folder: Path, *options: str, slowed: str = "") -> Night:
    """Run the project in ``folder``."""
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--ttnn-perf", "--junitxml=junit.xml", *options,
         "--ttnn-perf-json=run.json", "--ttnn-perf-checklist=off", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "SLOWED": slowed, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if done.returncode not in {0, 1, 6}:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    cases = ET.parse(folder / "junit.xml").iter("testcase")
    failures = {
        str(case.get("name"))[5:-1]: str(found.get("message"))
        for case in cases
        if (found := case.find("failure")) is not None and str(case.get("name")).endswith("]")
    }
    tests = msgspec.json.decode((folder / "run.json").read_bytes())["tests"]
    verdicts = {
        test.rpartition("[")[2][:-1]: list(judged.get("verdicts", {}).values())
        for test, judged in tests.items()
    }
    limits = {
        test: max((each.get("limit") or 0.0 for each in found), default=0.0)
        for test, found in verdicts.items()
    }
    outcomes = Counter(each["outcome"] for found in verdicts.values() for each in found)
    load = os.getloadavg()[0]
    return Night(done.returncode, failures, limits, outcomes, load, time.monotonic() - start)


def live(project: str, options: argparse.Namespace) -> None:
    """Record a project, run it unchanged, then slow it, and print what came out."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = _TESTS.format(cases=PROJECTS[project], ids=names(project))
        (folder / "test_load.py").write_text(text)
        (folder / "pytest.ini").write_text("[pytest]\n")
        nights = []
        for number in range(RECORDED + options.runs):
            nights.append(run(folder, "--ttnn-perf-update"))
            _print_night(f"{project} {number + 1}", nights[-1])
        unchanged = nights[RECORDED:]
        failed = [night for night in unchanged if night.failures]
        failures, tests = sum(len(night.failures) for night in failed), len(PROJECTS[project])
        blind = sum(limit > BLIND for limit in unchanged[-1].limits.values())
        print(
            f"{project}: {failures} of {len(unchanged) * tests} innocent failures;"
            f" after {len(nights)} runs {blind} of {tests} tests cannot notice 20 %; "
            f"exit 6 in {sum(night.code == 6 for night in unchanged)} of {len(unchanged)} runs; "
            f"{sum(night.says_load for night in failed)} of {len(failed)} red runs say the load",
            flush=True,
        )
        for kind, factor in SLOWED.items():
            trials = range(options.trials)
            found = sum(_named(folder, project, kind, trial, options) for trial in trials)
            print(f"{project}: {kind} × {factor} named in {found} of {len(trials)}", flush=True)


def _named(folder: Path, project: str, kind: str, trial: int, options: argparse.Namespace) -> bool:
    """Return whether a slowed test fails by name within so many nights."""
    factor = SLOWED[kind]
    own = [test for test in names(project) if test.startswith(kind)]
    test = own[trial % len(own)]
    kept = folder / "kept"
    shutil.copytree(folder / "baselines", kept)
    try:
        for number in range(options.nights):
            night = run(folder, "--ttnn-perf-update", slowed=f"{test}={factor}")
            _print_night(f"{project} {test} × {factor}, night {number + 1}", night)
            if test in night.failures:
                return True
        return False
    finally:
        shutil.rmtree(folder / "baselines")
        kept.rename(folder / "baselines")


def _print_night(title: str, night: Night) -> None:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(night.outcomes.items()))
    widest = max(night.limits.values(), default=0.0)
    print(
        f"{title}: exit {night.code}, {outcomes}; failed: {' '.join(night.failures) or '-'}; "
        f"widest limit {widest:.0%}; load {night.load:.1f}, {night.seconds:.0f} s",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--busy", type=int, default=4, help="processes that compute beside the tests"
    )
    parser.add_argument(
        "--runs", type=int, default=15, help="unchanged runs after the recorded ones"
    )
    parser.add_argument("--trials", type=int, default=5, help="slowed tests of each kind")
    parser.add_argument(
        "--nights", type=int, default=3, help="runs in which a slowed test is to fail"
    )
    parser.add_argument("--projects", nargs="*", default=list(PROJECTS), choices=PROJECTS)
    options = parser.parse_args()
    print(
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before, {options.busy} busy "
        f"processes, one thread per test; Python {sys.version.split()[0]}"
    )
    with busy(options.busy):
        for project in options.projects:
            live(project, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
