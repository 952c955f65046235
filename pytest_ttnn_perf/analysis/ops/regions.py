"""Regions of a capture: replays of traces, windows of signposts, or everything.

A capture holds loading, compilation, prefill, decode and reference runs. What is gated, explained,
checked and compared is always one of these regions, one step at a time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from enum import Enum
from functools import wraps
from itertools import groupby, pairwise
from operator import eq
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.finding import region_name
from pytest_ttnn_perf.core.metric import median
from pytest_ttnn_perf.core.ops import Category, Signpost, TraceReplays
from pytest_ttnn_perf.core.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.ops import Columns, OpTable, Unread

    #: The rows of each device.
    Step = Mapping[int, Sequence[int]]
    #: Steps by replay, by trace.
    Traces = Mapping[int, Mapping[int, Step]]


T = TypeVar("T")


class Basis(Enum):
    """The reason why ops are a region, in words of reports."""

    REPLAYS = "replay"
    WINDOW = "window"
    CALLS = "measured call"
    REPEATS = "call"
    WHOLE = "whole capture"


class Outside(Struct, frozen=True):
    """Ops of no region (loading, compilation, warm-up), on the device with most."""

    ops: int = 0
    kernel_ns: float = 0.0


class StepTime(Struct, frozen=True):
    """The time of a region's middle step on its slowest device.

    Of two in the middle, the mean. ``devices_ns`` are the times of all devices in the same steps,
    ``ops`` is the count on the slowest, ``gaps_ns`` the time between them; None where unknown. Of
    replays that differ, those count that ran what most did: ``complete`` of them.
    """

    region: str
    basis: Basis
    steps: int
    ops: int
    step_ns: float
    devices_ns: Mapping[int, float]
    gaps_ns: float | None = None
    complete: int | None = None


class Region(Struct, frozen=True):
    """Ops that are measured as one, in steps: replays, windows or calls.

    ``name`` is "" for what needs none: the measured calls of a test, the one trace of a capture, or
    all of it. ``steps`` are in the order in which they ran.
    """

    name: str
    basis: Basis
    steps: tuple[Step, ...]

    @property
    def rows(self) -> list[int]:
        """All rows of the region, in their order."""
        return sorted(row for step in self.steps for rows in step.values() for row in rows)


class Regions(Struct, frozen=True):
    """The regions of a capture in their order, and the rest."""

    regions: tuple[Region, ...]
    outside: Outside = Outside()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(region.name for region in self.regions)


# Calls of a model that no signpost and no trace marks: what is loaded before them, and repeats.

#: Ops that weights go through when they are loaded: none of them computes anything.
_CONVERTS: Final = re.compile(
    r"tilize|to_?layout|typecast|copy|move|clone|interleaved_?to|sharded_?to|reshard|permute|"
    r"transpose|reshape|view|pad|concat",
    re.IGNORECASE,
)
#: So many at least are weights that are loaded, and not the input of a call.
_LEAST_LOADED: Final = 8
#: Between calls the host does something else: so many times as long as between the ops of one.
_APART: Final = 10.0
#: Between ops the host takes some 10 to 200 µs; the first call of a program, which compiles it,
#: milliseconds. Gaps of real windows are of one kind or the other.
COMPILING_NS: Final = 1e6


def _after_loading(table: OpTable, everything: Step) -> Step:
    """Return the ops after the loading of weights.

    Loading is what a capture begins with if it only converts, up to its longest gap: there the host
    turned from weights to the input of the first call.
    """
    signature, gap_ns = table.columns.signature, table.columns.gap_ns
    converts = [bool(_CONVERTS.search(each.op)) for each in table.signatures]
    starts = set()
    for rows in everything.values():
        leading = next((at for at, row in enumerate(rows) if not converts[signature[row]]), 0)
        gaps = [gap_ns[row] or 0.0 for row in rows[:leading]]
        longest = max(range(1, leading), key=gaps.__getitem__, default=0)
        loads = longest >= _LEAST_LOADED and gaps[longest] >= COMPILING_NS
        starts.add(longest if loads else 0)
    if len(starts) != 1:
        return everything  # devices that begin differently leave it open
    (first,) = starts
    return {device: rows[first:] for device, rows in everything.items()}


def _repeated_calls(table: OpTable, everything: Step) -> tuple[Step, ...]:
    """Split ops into equal calls, if they are several.

    They run the same ops on all devices, with a long gap before each call but the first: layers of
    a model follow each other without one. Calls in which programs were compiled warm up those that
    follow, and are left out.
    """
    signature, gap_ns = table.columns.signature, table.columns.gap_ns
    ran = [[signature[row] for row in rows] for rows in everything.values()]
    length = len(ran[0]) if len(set(map(len, ran))) == 1 else 0
    for count in range(length // 2, 1, -1):
        size = length // count
        if length % count or any(ops[size:] != ops[:-size] for ops in ran):
            continue
        calls = tuple(
            {device: rows[at : at + size] for device, rows in everything.items()}
            for at in range(0, length, size)
        )
        gaps = [[gap_ns[row] for row in rows] for call in calls[1:] for rows in call.values()]
        if all(
            first is not None and first >= _APART * max(median([gap or 0.0 for gap in within]), 1.0)
            for first, *within in gaps
        ):
            return tuple(call for call in calls if not _is_cold(table, call)) or calls
    return (everything,)


def _is_cold(table: OpTable, call: Step) -> bool:
    """Return whether devices mostly waited for the compilation of programs."""
    gap_ns = table.columns.gap_ns
    gaps = [gap_ns[row] or 0.0 for rows in call.values() for row in rows[1:]]
    return sum(gap for gap in gaps if gap >= COMPILING_NS) > sum(gaps) / 2


# The ops whose times are compared: those of a region's middle step.


class Lane(NamedTuple):
    """The ops of one device: rows of the table, and times."""

    rows: Sequence[int] = ()
    kernel_ns: Sequence[float] = ()


def middle_lane(table: OpTable, region: Region) -> Lane:
    """Return the middle step on its slowest device.

    Of two in the middle, each op has the mean of both. A collective has fewer cores at the end of a
    line than in its middle, and shapes may differ from device to device: it is the code of an op
    that counts. Of two steps that ran different ops, it is the first.
    """
    kernel_ns, signature = table.columns.kernel_ns, table.columns.signature
    chosen = [slowest_rows(table, step) for step in middle_steps(table, region)]
    ran = {tuple(table.signatures[signature[row]].op for row in rows) for rows in chosen}
    chosen = chosen if len(ran) == 1 else chosen[:1]
    places = zip(*chosen, strict=True)
    return Lane(chosen[0], [sum(kernel_ns[row] for row in at) / len(chosen) for at in places])


def _most_common(sequences: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    """Return what ran most often, of equals the longest, the first."""
    counts = Counter(sequences)
    return max(counts, key=lambda ops: (counts[ops], len(ops)))


# Layers: blocks of ops that a model runs several times, one right after the other.

#: So many ops in a row show where a block begins anew.
_CONTEXT: Final = 4
#: How many distances between equal contexts are tried as the length of a block.
_LENGTHS: Final = 12
#: A block of so many ops is a layer where it runs twice. Shorter ones must run more often: two
#: equal reshapes follow each other by chance.
_LONG: Final = 8
_OFTEN: Final = 4


class Layers(NamedTuple):
    """A block of ``length`` ops that runs ``times`` times from ``start`` on."""

    start: int
    length: int
    times: int

    @property
    def is_long(self) -> bool:
        """True if it may be a layer of a model."""
        return self.length >= _LONG

    @property
    def stop(self) -> int:
        """The place behind the last of them."""
        return self.start + self.length * self.times


def find_layers(ops: Sequence[int]) -> list[Layers]:
    """Return the blocks of ops that repeat, in their order.

    What repeats most is found first, then what repeats before and after it. A block is as short as
    it can be.

    >>> find_layers([7, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 8])
    [Layers(start=1, length=3, times=4)]
    """
    found: list[Layers] = []
    waiting = [(0, len(ops))]
    while waiting:
        start, stop = waiting.pop()
        best = _best(ops[start:stop])
        if best is not None:
            layers = best._replace(start=start + best.start)
            found.append(layers)
            waiting += [(start, layers.start), (layers.stop, stop)]
    return sorted(found)


def _best(ops: Sequence[int]) -> Layers | None:
    found = (layers for length in _lengths(ops) for layers in _repeats(ops, length))
    layers = (each for each in found if each.is_long or each.times >= _OFTEN)
    return max(layers, key=lambda each: each.length * each.times, default=None)


def _lengths(ops: Sequence[int]) -> list[int]:
    """Return the likely lengths of blocks, ascending."""
    distances: Counter[int] = Counter()
    for context in (1, _CONTEXT):
        last: dict[tuple[int, ...], int] = {}
        for at in range(len(ops) - context + 1):
            seen = tuple(ops[at : at + context])
            if seen in last:
                distances[at - last[seen]] += context
            last[seen] = at
    return sorted(length for length, _ in distances.most_common(_LENGTHS))


def _repeats(ops: Sequence[int], length: int) -> Iterator[Layers]:
    """Yield blocks of a length that are repeated."""
    at = 0
    for same, run in groupby(map(eq, ops, ops[length:])):
        count = sum(1 for _ in run)
        if same and count >= length:
            yield Layers(at, length, count // length + 1)
        at += count


# Windows between signposts, replays of traces, and the ops that are inside of them.

Replay = tuple[int, int, int]  # device, trace, replay


def replays_in(columns: Columns) -> dict[Replay, list[int]]:
    found: dict[Replay, list[int]] = {}
    traced = zip(columns.device, columns.trace, columns.replay, strict=True)
    for at, (device, trace, replay) in enumerate(traced):
        if trace is not None and replay is not None:
            found.setdefault((device, trace, replay), []).append(at)
    return found


def count_replays(
    columns: Columns, replays: Mapping[Replay, list[int]]
) -> tuple[TraceReplays, ...]:
    sequences: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for (device, trace, _), places in replays.items():
        ran = tuple([columns.signature[at] for at in places])
        sequences.setdefault((device, trace), []).append(ran)
    return tuple(
        TraceReplays(device, trace, len(ran), ran.count(_most_common(ran)))
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
    """The ops from ``start`` to before ``stop``; a call of ``name``."""

    name: str
    start: int
    stop: int


class _Mark(NamedTuple):
    """A signpost: the key and name of a window."""

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
    """Return the calls of a table as windows."""
    if not table.windowed:
        return signpost_windows(table)
    bounds = (*(table.calls or (0,)), len(table))
    return [Window(_MEASURED, start, stop) for start, stop in pairwise(bounds) if start < stop]


def signpost_windows(table: OpTable) -> list[Window]:
    """Return the windows between signposts that belong together.

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
    if not len(part):
        ends = " and ".join(repr(name) for name in (start, end) if name is not None)
        message = f"no op ran in the window of {ends}: leave the signposts out to see all that ran"
        raise UsageError(message)
    return replace(part, region=window_name(start, end))


def window_name(start: str | None, end: str | None) -> str:
    """Return the name of the region between two signposts.

    >>> window_name("PERF_DECODE_START", None), window_name("start", "stop")
    ('decode', '')
    """
    return region_name(_mark(start or end or "").name)


def calls_between(table: OpTable, marks: Sequence[tuple[str, str]]) -> OpTable:
    """Return the ops between pairs of signposts, each pair a call."""
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


def once_per_table(derive: Callable[[OpTable], T]) -> Callable[[OpTable], T]:
    """Cache the result of a function with its table.

    All callers get the same object: it must not be changed.
    """

    @wraps(derive)
    def derived_once(table: OpTable) -> T:
        if derive not in table.derived:
            table.derived[derive] = derive(table)
        known: T = table.derived[derive]
        return known

    return derived_once


#: What ran in a window beside the replays of a trace is a region of its own.
_UNTRACED: Final = "untraced"


@once_per_table
def regions_of(table: OpTable) -> Regions:
    """Return the regions of a capture, and the size of the rest.

    The replays of a trace are a region, called by the window that they run in: all of them, unless
    the trace runs in several windows. So are the other ops in windows of one name, but for those
    that warm up a trace, and, if there are neither replays nor windows, all ops after loading.
    Traces that are replayed in turns are one region, a step of which has a replay of each.
    """
    scopes: dict[str, list[Window]] = defaultdict(list)
    for window in measured_calls(table):
        name = table.region if table.windowed else region_name(window.name)
        scopes[name].append(window)
    traces = _by_scope(table, scopes)
    signature, replay = table.columns.signature, table.columns.replay
    found: list[Region] = []
    basis = Basis.CALLS if table.windowed else Basis.WINDOW
    for name, windows in scopes.items():
        rows = (range(window.start, window.stop) for window in windows)
        untraced = (rows_by_device(table, (at for at in own if replay[at] is None)) for own in rows)
        steps = tuple(filter(None, untraced))
        ran = {
            tuple((device, *[signature[at] for at in step[device]]) for device in sorted(step))
            for step in steps
        }
        if basis is Basis.WINDOW and len(ran) > 1:
            steps = (_merged(steps),)
        own = traces.pop(name, {})
        found += _of_traces(name, own)
        if steps and not _warms_up(table, steps, own):
            found.append(Region(_joined(name, _UNTRACED) if own else name, basis, steps))
    for others in traces.values():
        found += _of_traces("", others, alone=not scopes)
    if not found:
        loaded = _after_loading(table, rows_by_device(table, range(len(table))))
        calls = _repeated_calls(table, loaded) if loaded else ()
        basis = Basis.WHOLE if calls == (loaded,) else Basis.REPEATS
        found = [Region("", basis, calls)] if calls else []
    found.sort(key=lambda region: min(rows[0] for rows in region.steps[0].values()))
    return Regions(tuple(found), _outside(table, found))


def _warms_up(table: OpTable, steps: Sequence[Step], traces: Traces) -> bool:
    """Return whether ops run all that a trace of their window does.

    What else a window runs beside its replays, as the lookup of a token, is part of the step.
    """
    codes = [table.signatures[number].op for number in table.columns.signature]

    def ran(step: Step, device: int) -> str:
        return "".join(f"{codes[row]};" for row in step.get(device, ()))

    return any(
        ran(replay, device) in ran(step, device)
        for replays in traces.values()
        for replay in list(replays.values())[:1]
        for step in steps
        for device in replay
    )


def _joined(name: str, part: str) -> str:
    return f"{name}_{part}" if name else part


def rows_by_device(table: OpTable, rows: Iterable[int]) -> Step:
    """Return rows by device, without those of the host."""
    host, device = table.columns.host, table.columns.device
    found: dict[int, list[int]] = {}
    for row in rows:
        if not host[row]:
            found.setdefault(device[row], []).append(row)
    return found


def _by_scope(table: OpTable, scopes: Mapping[str, Sequence[Window]]) -> dict[str | None, Traces]:
    """Return the replays by window; None for those outside."""
    inside: dict[int, str] = {}
    found: dict[int, dict[str | None, dict[int, dict[int, list[int]]]]] = {}
    if table.traces:
        inside = {
            at: name
            for name, windows in scopes.items()
            for window in windows
            for at in range(window.start, window.stop)
        }
    for (device, trace, replay), rows in replays_in(table.columns).items():
        in_trace = found.setdefault(trace, {}).setdefault(inside.get(rows[0]), {})
        in_trace.setdefault(replay, {})[device] = rows
    by_scope: dict[str | None, dict[int, Mapping[int, Mapping[int, Sequence[int]]]]] = {}
    for trace, places in found.items():
        for name, replays in places.items():
            if name is not None or len(places) == 1:  # what runs before its window warms up
                by_scope.setdefault(name, {})[trace] = replays
    return dict(by_scope)


def _of_traces(name: str, traces: Traces, *, alone: bool = True) -> Iterator[Region]:
    """Yield the region of traces that take turns, or one for each."""
    if not traces:
        return
    counts = {len(replays) for replays in traces.values()}
    if len(counts) == 1 and alone:
        turns = zip(*(replays.values() for replays in traces.values()), strict=True)
        yield Region(name, Basis.REPLAYS, tuple(map(_merged, turns)))
        return
    for trace, replays in traces.items():
        steps = tuple(dict(step) for step in replays.values())
        yield Region(_joined(name, f"trace_{trace}"), Basis.REPLAYS, steps)


def _merged(replays: Iterable[Mapping[int, Sequence[int]]]) -> Step:
    merged: dict[int, list[int]] = {}
    for replay in replays:
        for device, rows in replay.items():
            merged.setdefault(device, []).extend(rows)
    return merged


def _outside(table: OpTable, regions: Iterable[Region]) -> Outside:
    rest = set(range(len(table)))
    for region in regions:
        rest.difference_update(region.rows)
    left = rows_by_device(table, sorted(rest))
    if not left:
        return Outside()
    times = {device: _sum_ns(table, rows) for device, rows in left.items()}
    most = max(times, key=lambda device: times[device])
    return Outside(len(left[most]), times[most])


def _sum_ns(table: OpTable, rows: Iterable[int]) -> float:
    kernel_ns = table.columns.kernel_ns
    return sum(kernel_ns[row] for row in rows)


def slowest_rows(table: OpTable, step: Step) -> Sequence[int]:
    """Return the rows of the device that took longest."""
    return max(step.values(), key=lambda rows: _sum_ns(table, rows))


def critical_rows(table: OpTable, step: Step) -> Sequence[int]:
    """Return the rows of the device with most work outside collectives.

    In a collective, the devices that are there early wait for the last one.
    """
    kernel_ns, signature = table.columns.kernel_ns, table.columns.signature
    waits = [each.category is Category.COLLECTIVE for each in table.signatures]

    def work_ns(rows: Sequence[int]) -> float:
        return sum(kernel_ns[row] for row in rows if not waits[signature[row]])

    return max(step.values(), key=lambda rows: (work_ns(rows), _sum_ns(table, rows)))


def step_times_ns(table: OpTable, region: Region) -> tuple[float, ...]:
    """Return the kernel time of each step, on its slowest device."""
    return tuple(_sum_ns(table, slowest_rows(table, step)) for step in region.steps)


def middle_steps(table: OpTable, region: Region) -> tuple[Step, ...]:
    """Return the step of median time, or the middle two."""
    times = step_times_ns(table, region)
    order = sorted(complete_steps(table, region), key=lambda at: times[at])
    middle = order[(len(order) - 1) // 2 : len(order) // 2 + 1]
    return tuple(region.steps[at] for at in middle)


def complete_steps(table: OpTable, region: Region) -> Sequence[int]:
    """Return the places of the steps that ran what most did."""
    if region.basis is not Basis.REPLAYS:
        return range(len(region.steps))
    signature = table.columns.signature
    ran = [
        tuple((device, *(signature[row] for row in step[device])) for device in sorted(step))
        for step in region.steps
    ]
    usual = _most_common(ran)
    return [at for at, ops in enumerate(ran) if ops == usual]


def step_time(table: OpTable, region: Region) -> StepTime:
    complete, times = complete_steps(table, region), step_times_ns(table, region)
    middle = middle_steps(table, region)
    devices = sorted({device for step in middle for device in step})
    return StepTime(
        region.name,
        region.basis,
        len(region.steps),
        len(slowest_rows(table, middle[0])),
        median([times[at] for at in complete]),
        {
            device: sum(_sum_ns(table, step.get(device, ())) for step in middle) / len(middle)
            for device in devices
        },
        complete=len(complete),
    )


def region_named(table: OpTable, name: str, file: str) -> Region:
    """Return a region by name; "" for the only one."""
    regions = regions_of(table).regions
    wanted = region_name(name)
    for region in regions:
        if region.name in {name, wanted}:
            return region
    known = ", ".join(repr(region.name) for region in regions if region.name) or "none with a name"
    message = f"{file} has no region {name!r}; its regions: {known}"
    raise UsageError(message)


def region_table(table: OpTable, region: Region) -> OpTable:
    """Return the ops of a region alone, of all its steps."""
    rows = region.rows
    if region.basis is Basis.WHOLE and len(rows) == len(table):
        return table
    places = {row: at for at, row in enumerate(rows)}
    calls = (
        ()
        if region.basis is Basis.REPLAYS or len(region.steps) == 1
        else tuple(places[min(rows[0] for rows in step.values())] for step in region.steps)
    )
    return replace(_windowed(table, rows), calls=calls, region=region.name)


@once_per_table
def region_tables(table: OpTable) -> tuple[OpTable, ...]:
    return tuple(region_table(table, region) for region in regions_of(table).regions)


@once_per_table
def step_of(table: OpTable) -> OpTable:
    """Return the median step of the first region, on all devices."""
    regions = regions_of(table).regions
    if not regions:
        return table
    step = middle_steps(table, regions[0])[0]
    return _windowed(table, sorted(row for rows in step.values() for row in rows))


@once_per_table
def critical_step_of(table: OpTable) -> OpTable:
    """Return the median step of the first region, on its critical device."""
    step = step_of(table)
    by_device = rows_by_device(step, range(len(step)))
    return _windowed(step, critical_rows(step, by_device)) if by_device else step


def _windowed(table: OpTable, rows: Sequence[int]) -> OpTable:
    chosen = table.select(rows)
    return replace(
        chosen,
        rows=table.rows,
        traces=count_replays(chosen.columns, replays_in(chosen.columns)),
        dropped=table.dropped,
        unread=table.unread,
        windowed=True,
    )


#: Why ops have no time, with the article that a sentence wants.
_FLAWS: Final = {
    "negative kernel duration": "a negative kernel duration",
    "kernel duration of 0": "a kernel duration of 0",
    "impossible gap": "an impossible gap",
}
#: Fewer ops, or ops of one kind only, may well take the same time.
_FEWEST_OPS: Final = 8
_FEWEST_KINDS: Final = 2
#: Of real captures, the most common duration is that of one op in a hundred, mostly.
MOST_ALIKE: Final = 0.9
_MOST_KINDS: Final = 0.5


def why_invalid(table: OpTable, file: str | None = None) -> str | None:
    """Say why a capture cannot be trusted; None if it can.

    ``file`` is its name, if it is to be said. An invalid capture gives no metric, is no baseline,
    and is compared with nothing. What makes one kind of conclusion doubtful is not meant here:
    rules warn of that.
    """
    if table.unread:
        of_file = f" of {file}" if file else ""
        return f"{unread_ops(table)}, first in line {first_unread(table)}{of_file}"
    for flaw in (different_replays(table), alike_durations(table), no_processor(table)):
        if flaw is not None:
            return f"{file}: {flaw}" if file else flaw
    return None


def unread_ops(table: OpTable) -> str:
    """Say how many ops have no usable time."""
    reasons = Counter(each.reason for each in table.unread)
    flaws = [
        f"{_FLAWS.get(why, why)} ({n})" if len(reasons) > 1 else _FLAWS.get(why, why)
        for why, n in reasons.items()
    ]
    several, ops = len(table.unread), len(table.unread) + table.columns.host.count(False)
    share = f"{several} of {counted(ops, 'device op')} {'has' if several == 1 else 'have'}"
    return f"{share} {' or '.join(flaws)}"


def first_unread(table: OpTable) -> int:
    return min(each.line for each in table.unread)


def different_replays(table: OpTable) -> str | None:
    broken = next((trace for trace in table.traces if not trace.complete), None)
    if broken is None:
        return None
    which = f"the replays of trace {broken.trace} on device {broken.device} ran different ops"
    return f"{which}: {broken.alike} of {broken.replays} complete"


class Alike(NamedTuple):
    """The most common duration, and how many ``ops`` have it.

    ``kinds`` is the part of the kinds of ops that have it.
    """

    duration_ns: float
    having_it: int
    ops: int
    kinds: float

    @property
    def share(self) -> float:
        """The part of the ops that has it."""
        return self.having_it / self.ops

    @property
    def is_made_up(self) -> bool:
        """True if nearly all ops of several kinds have it."""
        return self.share >= MOST_ALIKE and self.kinds > _MOST_KINDS


@once_per_table
def most_common_duration(table: OpTable) -> Alike | None:
    """Return the most common duration; None for too few ops."""
    columns = table.columns
    rows = zip(columns.signature, columns.kernel_ns, columns.host, strict=True)
    ran = [(kind, kernel_ns) for kind, kernel_ns, host in rows if not host]
    if len(ran) < _FEWEST_OPS or len({kind for kind, _ in ran}) < _FEWEST_KINDS:
        return None
    ((duration_ns, count),) = Counter(kernel_ns for _, kernel_ns in ran).most_common(1)
    all_kinds = {kind for kind, _ in ran}
    kinds = {kind for kind, kernel_ns in ran if kernel_ns == duration_ns}
    return Alike(duration_ns, count, len(ran), len(kinds) / len(all_kinds))


def alike_durations(table: OpTable) -> str | None:
    alike = most_common_duration(table)
    if alike is None or not alike.is_made_up:
        return None
    return (
        f"{alike.having_it} of {alike.ops} ops took exactly {alike.duration_ns:g} ns: not measured"
    )


def no_processor(table: OpTable) -> str | None:
    """Say that kernels have times, and no processor does.

    A profiler that was asked for the kernel duration alone leaves out the firmware's, too.
    """
    has_firmware_times = any(fw_ns is not None for fw_ns in table.columns.fw_ns)
    if table.processors is not False or not has_firmware_times:
        return None
    return "no processor ran a kernel, though ops have kernel durations"


def odd_devices(table: OpTable) -> Mapping[int, str]:
    """Return the devices that ran other ops than most, and where.

    Looked at is the first step of each region. A device that ran nothing there takes no part.
    """
    codes = [signature.op for signature in table.signatures]
    found: dict[int, str] = {}
    for region in regions_of(table).regions:
        sequences = {
            device: tuple([codes[table.columns.signature[at]] for at in places])
            for device, places in sorted(region.steps[0].items())
        }
        ((usual, _),) = Counter(sequences.values()).most_common(1)
        for device, sequence in sequences.items():
            if sequence != usual:
                ran = f"{counted(len(sequence), 'op')}, most {len(usual)}"
                found.setdefault(device, f"{region.name or region.basis.value}: {ran}")
    return found
