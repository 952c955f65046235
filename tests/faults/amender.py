"""A process that changes baselines, to be killed, or run eight times at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import (
    Acceptance,
    MetricBaseline,
    Session,
    TestBaseline,
)
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.gate.store import BaselineStore

if TYPE_CHECKING:
    from collections.abc import Callable

HARDWARE = Hardware("host", "x86_64")
FILE = "test_model.py"
METRIC = Metric("wall_time", "ns")


def stored(*medians: int) -> TestBaseline:
    """Return a baseline with one session per median."""
    sessions = tuple(Session(median, 0, 10) for median in medians)
    return TestBaseline(Acceptance("now"), {METRIC.name: MetricBaseline(METRIC, sessions)})


def appending(median: int) -> Callable[[TestBaseline | None], TestBaseline]:
    """Return the change that adds a session."""

    def change(found: TestBaseline | None) -> TestBaseline:
        if found is None:
            return stored(median)
        metric = found.metrics[METRIC.name]
        longer = replace(metric, sessions=(*metric.sessions, Session(median, 0, 10)))
        return replace(found, metrics={METRIC.name: longer})

    return change


def append(root: Path, name: str, first: str, count: str) -> None:
    """Add sessions to a test of this process' own and to one that all processes share."""
    store = BaselineStore(root)
    store.find(HARDWARE, f"{FILE}::shared")  # as a run does at its start, long before it writes
    _say("ready")
    sys.stdin.readline()
    for median in range(int(first), int(first) + int(count)):
        change = appending(median)
        store.amend_keys({HARDWARE: {f"{FILE}::{name}": change, f"{FILE}::shared": change}})


def hold(root: Path) -> None:
    """Hold the lock until told to end, or killed."""
    with FileLock(root / ".lock"):
        _say("ready")
        sys.stdin.readline()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _modes: dict[str, Callable[..., None]] = {
        "append": append,
        "hold": hold,
    }
    _modes[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
