"""Lines of output."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """A line of output; ``bad`` and ``good`` ones may be coloured."""

    text: str
    bad: bool = False
    good: bool = False
