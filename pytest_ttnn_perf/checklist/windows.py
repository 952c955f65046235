"""The parts of a capture that signposts enclose."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.ops import OpTable, Signpost

#: By convention, what NAME begins ends at NAME_END.
_END: Final = "_END"
#: The plugin's own signposts number the calls of a test.
_NUMBERED: Final = re.compile(r"ttnn-perf \d+ ")


class Window(NamedTuple):
    """The ops from ``start`` to before ``stop``. Windows of one name are calls of one thing."""

    name: str
    start: int
    stop: int


def signpost_windows(table: OpTable) -> list[Window]:
    """Return what stands between NAME and NAME_END; a window inside another is part of that."""
    last = {signpost.name: at for at, signpost in enumerate(table.signposts)}
    windows: list[Window] = []
    opened: Signpost | None = None
    for at, signpost in enumerate(table.signposts):
        if opened is None:
            opened = signpost if last.get(signpost.name + _END, -1) > at else None
        elif signpost.name == opened.name + _END:
            name = _NUMBERED.sub("", opened.name)
            windows.append(Window(name, opened.position, signpost.position))
            opened = None
    return [window for window in windows if window.start < window.stop]
