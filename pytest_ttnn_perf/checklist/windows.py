"""The parts of a capture that are calls of something: those that signposts enclose."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.ops import OpTable, Signpost

#: By convention, what NAME begins ends at NAME_END.
_END: Final = "_END"
#: The plugin's own signposts number the calls of a test.
_OURS: Final = re.compile(r"ttnn-perf begin (?P<number>\d+\.\d+) (?P<test>.*)", re.DOTALL)
_MEASURED: Final = "measured call"


class Window(NamedTuple):
    """The ops from ``start`` to before ``stop``. Windows of one name are calls of one thing."""

    name: str
    start: int
    stop: int


def measured_calls(table: OpTable) -> list[Window]:
    """Return the calls of a table: all of it where it is windowed and does not tell them apart."""
    if not table.windowed:
        return signpost_windows(table)
    bounds = (*(table.calls or (0,)), len(table))
    return [Window(_MEASURED, start, stop) for start, stop in pairwise(bounds) if start < stop]


def signpost_windows(table: OpTable) -> list[Window]:
    """Return what stands between NAME and NAME_END; a window inside another is part of that."""
    last = {signpost.name: at for at, signpost in enumerate(table.signposts)}
    windows: list[Window] = []
    opened: Signpost | None = None
    for at, signpost in enumerate(table.signposts):
        if opened is None:
            opened = signpost if last.get(_end_of(signpost.name), -1) > at else None
        elif signpost.name == _end_of(opened.name):
            ours = _OURS.fullmatch(opened.name)
            name = ours["test"] if ours else opened.name
            windows.append(Window(name, opened.position, signpost.position))
            opened = None
    return [window for window in windows if window.start < window.stop]


def _end_of(name: str) -> str:
    ours = _OURS.fullmatch(name)
    return f"ttnn-perf end {ours['number']} {ours['test']}" if ours else name + _END
