"""A pytest plugin: time flies for a run while its worker hangs, and only then.

A worker may be silent for longer than any machine takes to start one; no test waits for so long.
Several runs in one process load it: PYTEST_DONT_REWRITE keeps the later ones from warning of that.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn

import pytest

from pytest_ttnn_perf.machine import processes as worker
from pytest_ttnn_perf.machine.processes import WorkerProcess

if TYPE_CHECKING:
    import selectors

_HOUR_S = 3600.0


def hang() -> NoReturn:
    """Hang, and let those who wait know."""
    _place().write_text(str(os.getpid()))
    while True:
        time.sleep(_HOUR_S)


def _place() -> Path:
    """Return where a process that hangs writes its id."""
    return Path(os.environ.get("FAKE_TTNN_CHIPS", ".")) / "hangs"


def _something_hangs() -> bool:
    try:
        os.kill(int(_place().read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


def pytest_configure(config: pytest.Config) -> None:
    ahead_s = 0.0
    really_ready = WorkerProcess._ready

    def ready(process: WorkerProcess, selector: selectors.BaseSelector) -> set[int]:
        nonlocal ahead_s
        found = really_ready(process, selector)
        if not found and _something_hangs():
            ahead_s += _HOUR_S
        return found

    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + ahead_s, sleep=time.sleep)
    patch.setattr(WorkerProcess, "_ready", ready)
    patch.setattr(worker, "time", clock)
    patch.setattr(worker, "_POLL_S", 0.1)
