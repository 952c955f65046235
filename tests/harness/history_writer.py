"""One of several programs that send runs at once: ``python -m tests.harness.history_writer 3 100``.

Prints the ids of runs that could not be sent, for somebody to send them later.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pytest_ttnn_perf.core.observation import Run, decode_run
from pytest_ttnn_perf.core.settings import HISTORY_VARIABLE, database_url
from pytest_ttnn_perf.history.database import Database, HistoryError, send
from pytest_ttnn_perf.history.runs import RecordFile

TESTS = 4
METRICS = ("latency", "throughput")


def run_of(writer: int, number: int) -> Run:
    """Return a run whose numbers are found nowhere else."""
    tests = {
        f"models/test_{test}.py::test_x": {
            "metrics": {
                name: {"unit": "ms", "samples": [value_of(writer, number, test)]}
                for name in METRICS
            }
        }
        for test in range(TESTS)
    }
    environment = {
        "started_at": f"2026-10-{1 + number % 28:02}T02:00:00Z", "runner": f"runner-{writer}",
        "commit": f"{number:040x}", "parents": [f"{number - 1:040x}"] if number else [],
        "branch": "main", "attempt": 1, "shard": f"{writer}/8",
    }  # fmt: skip
    # Shards of one run have one id.
    return decode_run(
        {
            "format": 1, "id": f"night-{number:03}", "environment": environment, "tests": tests,
            "hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"},
        }
    )  # fmt: skip


def hostile_run(name: str | None, metric: str) -> Run:
    """Return a run whose texts are longer than an index takes, and have in them what none may."""
    test = "a.py::test['; DROP TABLE ttnn_perf_run; --\x1b[31m\ud800]" + "y" * 9000
    return decode_run(
        {
            "format": 1, "id": name, "label": "\0\udfff",
            "environment": {"runner": "::error::\0 %s {} :x" + "\0" * 9000, "commit": "'",
                            "started_at": "yesterday", "attempt": 10**30, "parents": ["\0"]},
            "hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"},
            "tests": {test: {"metrics": {metric: {"unit": "\0ms", "samples": [1.5]}},
                             "facts": {f"\0{n}": "\ud800" * 99 for n in range(99)}}},
        }
    )  # fmt: skip


def value_of(writer: int, number: int, test: int) -> float:
    """Return what a run measures of a test."""
    return 1.0 + writer * 100_000 + number * 100 + test


def main() -> int:
    """Send the runs of one writer."""
    writer, count = int(sys.argv[1]), int(sys.argv[2])
    database = Database(database_url(os.environ[HISTORY_VARIABLE], Path.cwd()))
    for number in range(count):
        problem = problem_of_sending(database, run_of(writer, number))
        if problem is not None:
            sys.stderr.write(f"{problem}\n")
            sys.stdout.write(f"{number}\n")
    return 0


def problem_of_sending(database: Database, run: Run) -> str | None:
    """Send a run; return why it could not be sent."""
    try:
        send(database, run, RecordFile(Path("-")))
    except HistoryError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
