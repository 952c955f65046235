"""A pytest plugin: what is timed takes as long as it says, however busy the machine is.

Code of the current folder, and programs on the stand-in for a device, sleep by a clock of their
own, which those who time them read. The clock of the machine would decide what is printed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

_HERE = str(Path.cwd())
_really_sleep = time.sleep
_really_open = os.open
_now_ns = 0


def _sleep(seconds: float) -> None:
    global _now_ns  # noqa: PLW0603 (the clock of this process)
    caller = sys._getframe(1).f_globals
    steady = caller["__name__"] == "ttnn._programs"
    if steady or str(caller.get("__file__", "")).startswith(_HERE):
        _now_ns += round(seconds * 1e9)
    else:
        _really_sleep(seconds)


def _perf_counter_ns() -> int:
    global _now_ns  # noqa: PLW0603
    # No time is none, and no two times are the same, as on any machine.
    _now_ns += 1_000 + _now_ns // 1_000 % 97 * 100
    return _now_ns


def _open(path: Any, *arguments: Any, **keywords: Any) -> int:
    # What a thread waits for a processor depends on the machine.
    if str(path).endswith("/schedstat"):
        raise FileNotFoundError(path)
    return _really_open(path, *arguments, **keywords)


if __name__ == "steady_clock":  # as a plugin, and not looked through for doctests
    os.open = _open
    time.sleep = _sleep  # type: ignore[assignment]  # of numbers that are floats
    time.perf_counter_ns = _perf_counter_ns
    for _name, _module in list(sys.modules.items()):  # those that have the other clock already
        if _name.startswith("pytest_ttnn_perf.") and hasattr(_module, "perf_counter_ns"):
            vars(_module)["perf_counter_ns"] = _perf_counter_ns
