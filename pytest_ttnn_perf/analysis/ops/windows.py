"""Windows between signposts, replays of traces, and the ops that are inside of them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.records.ops import Signpost, TraceReplays
from pytest_ttnn_perf.records.region import region_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.records.ops import Columns, OpTable, Unread


Replay = tuple[int, int, int]  # device, trace, replay


def replays_in(columns: Columns) -> dict[Replay, list[int]]:
    """Return the places of the ops of each replay; what the capture does not tell apart is none."""
    found: dict[Replay, list[int]] = {}
    traced = zip(columns.device, columns.trace, columns.replay, strict=True)
    for at, (device, trace, replay) in enumerate(traced):
        if trace is not None and replay is not None:
            found.setdefault((device, trace, replay), []).append(at)
    return found


def count_replays(
    columns: Columns, replays: Mapping[Replay, list[int]]
) -> tuple[TraceReplays, ...]:
    """Count the executions of each trace on each device; complete if all have the same ops."""
    sequences: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for (device, trace, _), places in replays.items():
        ran = tuple([columns.signature[at] for at in places])
        sequences.setdefault((device, trace), []).append(ran)
    return tuple(
        TraceReplays(device, trace, len(ran), complete=len(set(ran)) == 1)
        for (device, trace), ran in sorted(sequences.items())
    )


#: How the name of a signpost ends that opens a window, and of one that closes it: behind NAME, or
#: alone, as tt-metal's start and stop. A NAME without such an end opens what NAME_END closes.
_OPENS: Final = re.compile(r"(?:(.*)[\W_])?(?:start|started|begin)", re.IGNORECASE | re.DOTALL)
_CLOSES: Final = re.compile(
    r"(?:(.*)[\W_])?(?:end|ended|stop|stopped|finish|finished)", re.IGNORECASE | re.DOTALL
)
#: The plugin's own signposts number the calls of a test.
_OURS: Final = re.compile(r"ttnn-perf (begin|end) (?P<call>\d+\.\d+ (?P<test>.*))", re.DOTALL)
_SEPARATORS: Final = re.compile(r"[\W_]+")
_MEASURED: Final = "measured call"


class Window(NamedTuple):
    """The ops from ``start`` to before ``stop``. Windows of one name are calls of one thing."""

    name: str
    start: int
    stop: int


class _Mark(NamedTuple):
    """A signpost: what it opens or closes, by a key, and what that is called."""

    key: str
    name: str
    opens: bool


def _mark(signpost: str) -> _Mark:
    ours = _OURS.fullmatch(signpost)
    if ours is not None:
        return _Mark(f"ttnn-perf {ours['call']}", ours["test"], opens=ours[1] == "begin")
    closes, opens = _CLOSES.fullmatch(signpost), _OPENS.fullmatch(signpost)
    name = signpost
    if closes or opens:
        name = (closes or opens)[1] or ""  # type: ignore[index]
    return _Mark(_SEPARATORS.sub("_", name).strip("_").lower(), name, opens=not closes)


def measured_calls(table: OpTable) -> list[Window]:
    """Return the calls of a table: all of it where it is windowed and does not tell them apart."""
    if not table.windowed:
        return signpost_windows(table)
    bounds = (*(table.calls or (0,)), len(table))
    return [Window(_MEASURED, start, stop) for start, stop in pairwise(bounds) if start < stop]


def signpost_windows(table: OpTable) -> list[Window]:
    """Return what stands between signposts that belong together; what is inside one is part of it.

    These are NAME and NAME_END or NAME_STOP, NAME_START and NAME_END or NAME_STOP, start and stop,
    however they are spelled, e.g. "encoder started" and "encoder finished".
    """
    marks = [_mark(signpost.name) for signpost in table.signposts]
    last = {mark.key: at for at, mark in enumerate(marks) if not mark.opens}
    windows: list[Window] = []
    opened: int | None = None
    for at, mark in enumerate(marks):
        if opened is None:
            opened = at if mark.opens and last.get(mark.key, -1) > at else None
        elif not mark.opens and mark.key == marks[opened].key:
            start, stop = table.signposts[opened].position, table.signposts[at].position
            windows.append(Window(marks[opened].name, start, stop))
            opened = None
    return [window for window in windows if window.start < window.stop]


OUTSIDE: Final = "outside the window"
Span = tuple[int, int]  # positions among a table's signposts; the last may be behind the last


def window(table: OpTable, start: str | None, end: str | None) -> OpTable:
    """Return the ops after each signpost ``start`` and before the next ``end``.

    Without ``end``, that is the one that closes what ``start`` opens, if there is one, else the end
    of the capture; without ``start``, its beginning. What is left out is counted as dropped.

    Raises:
        UsageError: no such signpost, or a start that no end follows.
    """
    names = [signpost.name for signpost in table.signposts]
    for name in (start, end):
        if name is not None and name not in names:
            known = ", ".join(map(repr, dict.fromkeys(names))) or "none"
            message = f"the capture has no signpost {name!r}; its signposts: {known}"
            raise UsageError(message)
    if end is None and start is not None and (opening := _mark(start)).opens:
        closing = _Mark(opening.key, opening.name, opens=False)
        end = next((name for name in names if _mark(name) == closing), None)
    part = between(table, _spans(names, start, end))
    return replace(part, region=window_name(start, end))


def window_name(start: str | None, end: str | None) -> str:
    """Return the name of the region between two signposts.

    >>> window_name("PERF_DECODE_START", None), window_name("start", "stop")
    ('decode', '')
    """
    return region_name(_mark(start or end or "").name)


def calls_between(table: OpTable, marks: Sequence[tuple[str, str]]) -> OpTable:
    """Return the ops between pairs of signposts, each pair a call.

    Raises:
        UsageError: a first one that no second follows.
    """
    names = [signpost.name for signpost in table.signposts]
    return between(table, [span for pair in marks for span in _spans(names, *pair)])


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


def between(table: OpTable, spans: Sequence[Span]) -> OpTable:
    """Return the ops inside of spans of signposts, each span a call."""
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
        traces=count_replays(chosen.columns, replays_in(chosen.columns)),
        dropped={reason: count for reason, count in dropped.items() if count},
        unread=tuple(unread),
        windowed=True,
        calls=tuple(calls) if len(calls) > 1 else (),
    )
