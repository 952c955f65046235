"""Finds the regions of a capture: replays of traces, windows of signposts, or everything.

A capture holds loading, compilation, prefill, decode and reference runs. What is gated, explained,
checked and compared is always one of these regions, one step at a time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Final, TypeVar

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.analysis.ops.calls import after_loading, repeated_calls
from pytest_ttnn_perf.analysis.ops.windows import count_replays, measured_calls, replays_in
from pytest_ttnn_perf.records.metric import median
from pytest_ttnn_perf.records.region import (
    Basis,
    Outside,
    Region,
    Regions,
    StepTime,
    region_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.windows import Window
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.region import Step

    #: The replays of traces, each with its rows by device: trace → replay → device → rows.
    Traces = Mapping[int, Mapping[int, Mapping[int, Sequence[int]]]]


_Derived = TypeVar("_Derived")


def once_per_table(derive: Callable[[OpTable], _Derived]) -> Callable[[OpTable], _Derived]:
    """Keep what a function makes of a table with that table, so that it goes when the table goes.

    Whoever asks gets the same object: it must be one that nobody changes.
    """

    @wraps(derive)
    def derived_once(table: OpTable) -> _Derived:
        if derive not in table.derived:
            table.derived[derive] = derive(table)
        known: _Derived = table.derived[derive]
        return known

    return derived_once


#: What ran in a window beside the replays of a trace is a region of its own.
_UNTRACED: Final = "untraced"


@once_per_table
def regions_of(table: OpTable) -> Regions:
    """Return the regions of a capture, and how much is in none of them.

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
    found: list[Region] = []
    basis = Basis.CALLS if table.windowed else Basis.WINDOW
    for name, windows in scopes.items():
        steps = tuple(filter(None, (_untraced(table, window) for window in windows)))
        if basis is Basis.WINDOW and not _are_alike(table, steps):
            steps = (_merged(steps),)
        own = traces.pop(name, {})
        found += _of_traces(name, own)
        if steps and not _warms_up(table, steps, own):
            found.append(Region(_joined(name, _UNTRACED) if own else name, basis, steps))
    for others in traces.values():
        found += _of_traces("", others, alone=not scopes)
    if not found:
        everything = _by_device(table, range(len(table)))
        found = [_unmarked(table, everything)] if everything else []
    found.sort(key=lambda region: min(rows[0] for rows in region.steps[0].values()))
    return Regions(tuple(found), _outside(table, found))


def _unmarked(table: OpTable, everything: Step) -> Region:
    """Return the region of a capture that nothing marks."""
    loaded = after_loading(table, everything)
    calls = repeated_calls(table, loaded)
    return Region("", Basis.WHOLE if calls == (loaded,) else Basis.REPEATS, calls)


def _warms_up(table: OpTable, steps: Sequence[Step], traces: Traces) -> bool:
    """Tell whether ops run all that a trace of their window does: its call before it is captured.

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


def _by_device(table: OpTable, rows: Iterable[int]) -> Step:
    """Return the rows of ops that ran on a device, by device."""
    host, device = table.columns.host, table.columns.device
    found: dict[int, list[int]] = {}
    for row in rows:
        if not host[row]:
            found.setdefault(device[row], []).append(row)
    return found


def _untraced(table: OpTable, window: Window) -> Step:
    replay = table.columns.replay
    return _by_device(table, (at for at in range(window.start, window.stop) if replay[at] is None))


def _are_alike(table: OpTable, steps: Sequence[Step]) -> bool:
    signature = table.columns.signature
    ran = {
        tuple((device, *map(signature.__getitem__, step[device])) for device in sorted(step))
        for step in steps
    }
    return len(ran) <= 1


def _by_scope(table: OpTable, scopes: Mapping[str, Sequence[Window]]) -> dict[str | None, Traces]:
    """Return the replays by the windows that they belong to; None is for those without any."""
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
        named = [name for name in places if name is not None]
        if len(named) == 1:  # replays before the window warm up: they are steps like the others
            every = {r: rows for place in places.values() for r, rows in place.items()}
            by_scope.setdefault(named[0], {})[trace] = dict(sorted(every.items()))
            continue
        for name, replays in places.items():
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
    left = _by_device(table, sorted(rest))
    if not left:
        return Outside()
    times = {device: _sum_ns(table, rows) for device, rows in left.items()}
    most = max(times, key=lambda device: times[device])
    return Outside(len(left[most]), times[most])


def _sum_ns(table: OpTable, rows: Iterable[int]) -> float:
    kernel_ns = table.columns.kernel_ns
    return sum(kernel_ns[row] for row in rows)


def slowest_rows(table: OpTable, step: Step) -> Sequence[int]:
    """Return the rows of the device that took longest: the others of a mesh run beside it."""
    return max(step.values(), key=lambda rows: _sum_ns(table, rows))


def step_times_ns(table: OpTable, region: Region) -> tuple[float, ...]:
    """Return the kernel time of each step, on its slowest device."""
    return tuple(_sum_ns(table, slowest_rows(table, step)) for step in region.steps)


def middle_steps(table: OpTable, region: Region) -> tuple[Step, ...]:
    """Return the step with the median time, or the two whose mean that is."""
    times = step_times_ns(table, region)
    order = sorted(range(len(times)), key=lambda at: times[at])
    middle = order[(len(order) - 1) // 2 : len(order) // 2 + 1]
    return tuple(region.steps[at] for at in middle)


def step_time(table: OpTable, region: Region) -> StepTime:
    """Return what a step of a region takes."""
    middle = middle_steps(table, region)
    devices = sorted({device for step in middle for device in step})
    return StepTime(
        region.name,
        region.basis,
        len(region.steps),
        len(slowest_rows(table, middle[0])),
        median(step_times_ns(table, region)),
        {
            device: sum(_sum_ns(table, step.get(device, ())) for step in middle) / len(middle)
            for device in devices
        },
    )


def region_named(table: OpTable, name: str, file: str) -> Region:
    """Return the region of a name; "" is that of a capture with one alone.

    Raises:
        UsageError: there is none.
    """
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
    """Return the ops of each region: the same tables for all who ask."""
    return tuple(region_table(table, region) for region in regions_of(table).regions)


@once_per_table
def step_of(table: OpTable) -> OpTable:
    """Return the ops of one step of a table's first region, on all devices: that of median time."""
    regions = regions_of(table).regions
    if not regions:
        return table
    step = middle_steps(table, regions[0])[0]
    return _windowed(table, sorted(row for rows in step.values() for row in rows))


@once_per_table
def slowest_step_of(table: OpTable) -> OpTable:
    """Return the same of the slowest device alone: what decides how long the step takes."""
    step = step_of(table)
    by_device = _by_device(step, range(len(step)))
    return _windowed(step, slowest_rows(step, by_device)) if by_device else step


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
