"""A capture as Chrome trace events, which Perfetto and chrome://tracing open.

A process stands for each device, and one for the host. Times are in microseconds.
"""

from __future__ import annotations

import json
from enum import Enum
from heapq import heappop, heappush
from itertools import chain
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.analysis.ops.names import op_rows
from pytest_ttnn_perf.analysis.ops.regions import rows_by_device
from pytest_ttnn_perf.analysis.ops.roofline import rooflines
from pytest_ttnn_perf.core.files import write_parts
from pytest_ttnn_perf.core.ops import Category, category_of
from pytest_ttnn_perf.core.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.analysis.ops.names import OpRow
    from pytest_ttnn_perf.analysis.ops.regions import Step
    from pytest_ttnn_perf.core.ops import OpTable

    Event = Mapping[str, object]


# Devices count cycles by clocks of their own, which began seconds apart. Collectives align them: no
# device leaves one much before the others.


class Clock(Enum):
    """Sources of starts, in words after "starts are"."""

    CYCLES = "those that the devices counted"
    GAPS = "reckoned from the gaps between ops: the capture has no start cycles"
    NONE = "not known: ops are shown one right after the other"


class Alignment(Enum):
    """Ways to align devices, in words after "devices are put"."""

    ALONE = "nowhere: there is one"
    COLLECTIVES = "side by side by the ends of their collectives"
    FIRST = "side by side by their first ops: nothing tells which of them began earlier"


class Span(NamedTuple):
    """An op on a device; ``start_ns`` is from the first start.

    The first ``waits_ns`` of it went into waiting for other devices.
    """

    row: int
    start_ns: float
    kernel_ns: float
    waits_ns: float = 0.0

    @property
    def end_ns(self) -> float:
        return self.start_ns + self.kernel_ns


class Timeline(Struct, frozen=True):
    """Ops of devices in order of starts, and their reliability."""

    lanes: Mapping[int, Sequence[Span]]
    clock: Clock
    alignment: Alignment


def timeline_of(table: OpTable, step: Step) -> Timeline:
    clock = _clock(table, step)
    own = {device: _starts_ns(table, rows, clock) for device, rows in sorted(step.items())}
    alignment, later_ns = _aligned(table, step, own)
    waits_ns = _waits_ns(table, step)
    kernel_ns = table.columns.kernel_ns
    lanes = {
        device: sorted(
            (
                Span(row, start + later_ns[device], kernel_ns[row], waits_ns.get(row, 0.0))
                for row, start in zip(step[device], starts, strict=True)
            ),
            key=lambda span: span.start_ns,
        )
        for device, starts in own.items()
    }
    return Timeline(lanes, clock, alignment)


def _clock(table: OpTable, step: Step) -> Clock:
    columns = table.columns
    if table.clock_mhz and all(
        columns.start_cycle[row] is not None for rows in step.values() for row in rows
    ):
        return Clock.CYCLES
    gaps = [columns.gap_ns[row] for rows in step.values() for row in rows[1:]]
    return Clock.GAPS if gaps and None not in gaps else Clock.NONE


def _starts_ns(table: OpTable, rows: Sequence[int], clock: Clock) -> list[float]:
    """Return the starts of a device's ops, from its first."""
    columns = table.columns
    if clock is Clock.CYCLES and table.clock_mhz:
        cycles = [columns.start_cycle[row] or 0 for row in rows]
        first = min(cycles, default=0)
        return [(cycle - first) * 1000 / table.clock_mhz for cycle in cycles]
    starts: list[float] = []
    now_ns = 0.0
    for row in rows:
        if starts and clock is Clock.GAPS:  # one below zero is an artefact of clocks
            now_ns += max(columns.gap_ns[row] or 0.0, 0.0)
        starts.append(now_ns)
        now_ns += columns.kernel_ns[row]
    return starts


def _aligned(
    table: OpTable, step: Step, own: Mapping[int, Sequence[float]]
) -> tuple[Alignment, dict[int, float]]:
    """Return how much later each device began, and the evidence."""
    later_ns = dict.fromkeys(own, 0.0)
    if len(own) < 2:
        return Alignment.ALONE, later_ns
    ends = {device: _collective_ends(table, step[device], own[device]) for device in own}
    codes = {tuple(code for code, _ in each) for each in ends.values()}
    if len(codes) > 1 or codes == {()}:
        return Alignment.FIRST, later_ns
    reference = next(iter(ends.values()))
    for device, each in ends.items():
        apart = (mine - other for (_, other), (_, mine) in zip(each, reference, strict=True))
        later_ns[device] = median(apart)
    earliest_ns = min(later_ns.values())
    return Alignment.COLLECTIVES, {device: ns - earliest_ns for device, ns in later_ns.items()}


def _collective_ends(
    table: OpTable, rows: Sequence[int], starts: Sequence[float]
) -> list[tuple[str, float]]:
    """Return the codes of a device's collectives, and when each ended."""
    columns = table.columns
    return [
        (signature.op, start + columns.kernel_ns[row])
        for row, start in zip(rows, starts, strict=True)
        if (signature := table.signatures[columns.signature[row]]).category is Category.COLLECTIVE
    ]


def _waits_ns(table: OpTable, step: Step) -> dict[int, float]:
    """Return how long each collective waits, beyond the fastest device.

    Nothing is known of devices that ran different ops.
    """
    columns = table.columns
    devices = list(step.values())
    codes = [[table.signatures[columns.signature[row]].op for row in rows] for rows in devices]
    if len(devices) < 2 or any(each != codes[0] for each in codes):
        return {}
    waits: dict[int, float] = {}
    for code, rows in zip(codes[0], zip(*devices, strict=True), strict=True):
        if category_of(code) is Category.COLLECTIVE:
            least = min(columns.kernel_ns[row] for row in rows)
            waits |= {row: columns.kernel_ns[row] - least for row in rows}
    return waits


#: Numbers of processes; that of a device is added to the last. Viewers keep 0 for themselves.
_HOST: Final = 1
_DEVICES: Final = 2
#: Numbers of threads: signposts and ops of the host; gaps, and then ops, of a device.
_SIGNPOSTS, _HOST_OPS = 1, 2
_GAPS, _OPS = 1, 2
#: Shorter ones are the grain of clocks.
_LEAST_GAP_NS: Final = 1.0


def write_trace(table: OpTable, file: Path, *, name: str) -> None:
    timeline = timeline_of(table, rows_by_device(table, range(len(table))))
    notes = {
        "capture": name,
        "format": table.format,
        "starts": f"starts are {timeline.clock.value}",
    }
    if timeline.alignment is not Alignment.ALONE:
        notes["devices"] = f"devices are put {timeline.alignment.value}"
    head = {
        "displayTimeUnit": "ns",
        "otherData": {key: visible(text) for key, text in notes.items()},
    }
    begin = json.dumps(head)[:-1] + ', "traceEvents": [\n'
    events = ",\n".join(json.dumps(event) for event in trace_events(table, timeline))
    write_parts(file, (part.encode() for part in (begin, events, "\n]}\n")))


def trace_events(table: OpTable, timeline: Timeline) -> Iterator[Event]:
    """Yield names of processes and threads, then events."""
    rows, lines = op_rows(table), rooflines(table)
    for device, spans in timeline.lanes.items():
        process = _DEVICES + device
        threads = _threads(spans)
        names = {_GAPS: "gaps", _OPS: "ops"}
        for thread in range(1, max(threads, default=0) + 1):
            names[_OPS + thread] = f"ops beside them ({thread + 1})"
        yield from _names(process, f"device {device}", names)
        for span, thread in zip(spans, threads, strict=True):
            ideal_ns = lines[span.row].least_ns
            yield from _op_events(rows[span.row], span, (process, _OPS + thread), ideal_ns)
        yield from _gap_events(spans, process)
    yield from _host_events(table, timeline, rows)


def _threads(spans: Sequence[Span]) -> list[int]:
    """Return a thread for each op, so that none overlap.

    A device may begin an op while the one before is still running on other cores.
    """
    found: list[int] = []
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    used = 0
    for span in spans:
        while busy and busy[0][0] <= span.start_ns:
            heappush(free, heappop(busy)[1])
        if not free:
            heappush(free, used)
            used += 1
        thread = heappop(free)
        heappush(busy, (span.end_ns, thread))
        found.append(thread)
    return found


def _op_events(
    row: OpRow, span: Span, place: tuple[int, int], ideal_ns: float | None
) -> Iterator[Event]:
    facts = {
        **{
            name: getattr(row, name)
            for name in ("number", "region", "step", "cores", "fidelity", "bound")
        },
        "operands": row.operands or None,
        "ideal_us": None if ideal_ns is None else _us(ideal_ns),
        "dram_gb_s": None if row.dram_gb_s is None else round(row.dram_gb_s, 1),
        "tflops": None if row.tflops is None else round(row.tflops, 2),
        "waits_us": _us(span.waits_ns) if span.waits_ns else None,
        "stale": "with these shapes it would be faster than the chip" if row.stale else None,
    }
    args = {
        name: visible(v) if isinstance(v, str) else v for name, v in facts.items() if v is not None
    }
    yield _complete(row.name, category_of(row.op).value, place, span.start_ns, span.kernel_ns, args)
    if span.waits_ns:
        what = "waits for other devices"
        yield _complete(what, "wait", place, span.start_ns, span.waits_ns, {})


def _gap_events(spans: Sequence[Span], process: int) -> Iterator[Event]:
    until_ns = spans[0].end_ns if spans else 0.0
    for span in spans[1:]:
        gap_ns = span.start_ns - until_ns
        if gap_ns >= _LEAST_GAP_NS:
            yield _complete("gap", "gap", (process, _GAPS), until_ns, gap_ns, {})
        until_ns = max(until_ns, span.end_ns)


def _host_events(table: OpTable, timeline: Timeline, rows: Sequence[OpRow]) -> Iterator[Event]:
    """Yield signposts and host ops, where the next op starts."""
    host = [row for row, is_host in enumerate(table.columns.host) if is_host]
    if not (table.signposts or host):
        return
    threads = {_SIGNPOSTS: "signposts"} if table.signposts else {}
    threads |= {_HOST_OPS: "ops on the host"} if host else {}
    yield from _names(_HOST, "host", threads)
    starts = {span.row: span.start_ns for spans in timeline.lanes.values() for span in spans}
    ends = (span.end_ns for spans in timeline.lanes.values() for span in spans)
    next_ns = [max(ends, default=0.0)] * (len(table) + 1)
    for row in range(len(table) - 1, -1, -1):
        next_ns[row] = starts.get(row, next_ns[row + 1])
    posts = ((post.name, post.position, _SIGNPOSTS) for post in table.signposts)
    ops = ((rows[row].name, row, _HOST_OPS) for row in host)
    for name, position, thread in chain(posts, ops):
        yield {
            "name": visible(name),
            "ph": "i",
            "s": "p",
            "ts": _us(next_ns[position]),
            "pid": _HOST,
            "tid": thread,
            "args": {"placed": "before the op that follows it: it has no time of its own"},
        }


def _complete(
    name: str,
    category: str,
    place: tuple[int, int],
    start_ns: float,
    ns: float,
    args: Mapping[str, object],
) -> Event:
    process, thread = place
    return {
        "name": visible(name),
        "cat": category,
        "ph": "X",
        "ts": _us(start_ns),
        "dur": _us(ns),
        "pid": process,
        "tid": thread,
        "args": args,
    }


def _names(process: int, name: str, threads: Mapping[int, str]) -> Iterator[Event]:
    yield {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": name}}
    for thread, what in threads.items():
        yield {"name": "thread_name", "ph": "M", "pid": process, "tid": thread,
               "args": {"name": what}}  # fmt: skip


def _us(ns: float) -> float:
    """Return microseconds to the picosecond: what is rounded more would overlap."""
    return round(ns / 1000, 6)
