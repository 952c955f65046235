"""A pytest plugin: code of the current folder sleeps by a clock of its own, which others read.

Pages show models that sleep. On a busy machine, how long they slept would decide what is printed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

_HERE = str(Path.cwd())
_really_sleep = time.sleep
_now_ns = 0


def _sleep(seconds: float) -> None:
    global _now_ns  # noqa: PLW0603 (the clock of this process)
    caller = str(sys._getframe(1).f_globals.get("__file__", ""))
    if caller.startswith(_HERE):
        _now_ns += round(seconds * 1e9)
    else:
        _really_sleep(seconds)


def _perf_counter_ns() -> int:
    global _now_ns  # noqa: PLW0603
    # No time is none, and no two times are the same, as on any machine.
    _now_ns += 1_000 + _now_ns // 1_000 % 97 * 100
    return _now_ns


if __name__ == "steady_clock":  # as a plugin, and not looked through for doctests
    time.sleep = _sleep  # type: ignore[assignment]  # of numbers that are floats
    time.perf_counter_ns = _perf_counter_ns
