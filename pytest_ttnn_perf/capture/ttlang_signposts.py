"""The section SIGNPOST PROFILE of a tt-lang log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.capture.ttlang_lines import WHOLE, is_rule, whole
from pytest_ttnn_perf.model.ttlang import ProblemKind, Signpost, SignpostProfile

if TYPE_CHECKING:
    from pytest_ttnn_perf.capture.ttlang_lines import Lines

_TITLE: Final = "SIGNPOST PROFILE"
_COLUMNS: Final = ("NAME", "THREAD", "COUNT", "TOTAL", "AVG", "MIN", "MAX")
#: The first releases had no more than this.
_EARLY_COLUMNS: Final = ("NAME", "THREAD", "CYCLES")
_THREAD: Final = re.compile(r"[A-Z][A-Z0-9]{0,20}(?:_[0-9]{1,3})?")
_NUMBER: Final = re.compile(WHOLE)


def read_signposts(lines: Lines) -> SignpostProfile:
    """Read a table from its title on; it is complete if its closing line is there."""
    start = lines.number
    columns: tuple[str, ...] | None = None
    found: list[Signpost] = []
    closed = False
    lines.begin()
    while not lines.ends() and not closed:
        line = lines.peek() or ""
        if is_rule(line):
            closed = columns is not None
        elif columns is None and tuple(line.split()) in {_COLUMNS, _EARLY_COLUMNS}:
            columns = tuple(line.split())
        elif line.strip("- "):
            signpost = _row(line, columns)
            if signpost is None:
                lines.skip_unread(_TITLE)
                continue
            found.append(signpost)
        lines.take()
    if not closed:
        lines.report(ProblemKind.CUT, f"{_TITLE}: no closing line", line=start)
    return SignpostProfile(tuple(found), closed)


def _row(line: str, columns: tuple[str, ...] | None) -> Signpost | None:
    """Read a row from its right end: a name may have spaces in it."""
    if columns is None:
        return None
    name, *cells = line.rsplit(None, len(columns) - 1)
    if len(cells) != len(columns) - 1 or not line.startswith("  "):
        return None
    thread, *numbers = cells
    if not _THREAD.fullmatch(thread) or not all(map(_NUMBER.fullmatch, numbers)):
        return None
    name = name.strip()
    values = [whole(number) for number in numbers]
    if columns == _EARLY_COLUMNS:
        return Signpost(name, thread, values[0])
    count, total, average, shortest, longest = values
    return Signpost(name, thread, total, count, average, shortest, longest)
