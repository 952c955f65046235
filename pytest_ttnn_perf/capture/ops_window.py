"""The part of a capture between two signposts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.capture.ops_replays import trace_replays
from pytest_ttnn_perf.model.ops import Signpost, Unread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.model.ops import OpTable

OUTSIDE: Final = "outside the window"
#: By convention, what NAME begins ends at NAME_END.
_END: Final = "_END"

Span = tuple[int, int]  # positions among a table's signposts; the last may be behind the last


def window(table: OpTable, start: str | None, end: str | None) -> OpTable:
    """Return the ops after each signpost ``start`` and before the next ``end``.

    Without ``end``, that is ``start`` + ``_END`` if there is one, else the end of the capture;
    without ``start``, its beginning. What is left out is counted as dropped.

    Raises:
        UsageError: no such signpost, or a start that no end follows.
    """
    names = [signpost.name for signpost in table.signposts]
    for name in (start, end):
        if name is not None and name not in names:
            known = ", ".join(map(repr, dict.fromkeys(names))) or "none"
            message = f"the capture has no signpost {name!r}; its signposts: {known}"
            raise UsageError(message)
    if end is None and start is not None and start + _END in names:
        end = start + _END
    return _between(table, _spans(names, start, end))


def _spans(names: Sequence[str], start: str | None, end: str | None) -> list[Span]:
    spans: list[Span] = []
    opened = -1 if start is None else None
    for at, name in enumerate(names):
        if opened is not None and name == end:
            spans.append((opened, at))
            opened = None
        elif opened is None and name == start:
            opened = at
    if opened is not None:
        if end is not None:
            message = f"the last signpost {start!r} is not followed by {end!r}"
            raise UsageError(message)
        spans.append((opened, len(names)))
    return spans


def _between(table: OpTable, spans: list[Span]) -> OpTable:
    indices: list[int] = []
    signposts: list[Signpost] = []
    calls: list[int] = []
    unread: list[Unread] = []
    for first, last in spans:
        calls.append(len(indices))
        begin = 0 if first < 0 else table.signposts[first].position
        stop = len(table) if last == len(table.signposts) else table.signposts[last].position
        shift = len(indices) - begin
        unread += [
            each._replace(signposts=each.signposts - first - 1 + len(signposts))
            for each in table.unread
            if first < each.signposts <= last
        ]
        inner = table.signposts[first + 1 : last]
        signposts += [Signpost(post.name, post.position + shift) for post in inner]
        indices += range(begin, stop)
    chosen = table.select(indices)
    outside = len(table) + len(table.signposts) - len(indices) - len(signposts)
    dropped = {**table.dropped, OUTSIDE: table.dropped.get(OUTSIDE, 0) + outside}
    return replace(
        chosen,
        rows=table.rows,
        signposts=tuple(signposts),
        traces=trace_replays(chosen.columns),
        dropped={reason: count for reason, count in dropped.items() if count},
        unread=tuple(unread),
        windowed=True,
        calls=tuple(calls) if len(calls) > 1 else (),
    )
