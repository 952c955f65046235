"""A capture as Chrome trace events, which Perfetto and chrome://tracing open.

A process stands for each device, and one for the host. Times are in microseconds.
"""

from __future__ import annotations

import json
from heapq import heappop, heappush
from itertools import chain
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.files import write_parts
from pytest_ttnn_perf._base.text import visible
from pytest_ttnn_perf.analysis.ops.op_rows import op_rows
from pytest_ttnn_perf.analysis.ops.roofline import rooflines
from pytest_ttnn_perf.analysis.ops.timeline import Alignment, all_rows, timeline_of
from pytest_ttnn_perf.records.ops import category_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.analysis.ops.op_rows import OpRow
    from pytest_ttnn_perf.analysis.ops.timeline import Span, Timeline
    from pytest_ttnn_perf.records.ops import OpTable

    Event = Mapping[str, object]

#: Numbers of processes; that of a device is added to the last. Viewers keep 0 for themselves.
_HOST: Final = 1
_DEVICES: Final = 2
#: Numbers of threads: signposts and ops of the host; gaps, and then ops, of a device.
_SIGNPOSTS, _HOST_OPS = 1, 2
_GAPS, _OPS = 1, 2
#: Shorter ones are the grain of clocks.
_LEAST_GAP_NS: Final = 1.0


def write_trace(table: OpTable, file: Path, *, name: str) -> None:
    """Write all ops of a table to a file, event by event; ``name`` is what it is of.

    Raises:
        WriteError: the folder or the disk refused.
    """
    timeline = timeline_of(table, all_rows(table))
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
    write_parts(file, (text.encode() for text in _text(begin, trace_events(table, timeline))))


def _text(begin: str, events: Iterable[Event]) -> Iterator[str]:
    yield begin
    between = ""
    for event in events:
        yield between + json.dumps(event)
        between = ",\n"
    yield "\n]}\n"


def trace_events(table: OpTable, timeline: Timeline) -> Iterator[Event]:
    """Yield what names processes and threads, then what devices and the host did."""
    rows, lines = op_rows(table), rooflines(table)
    for device, spans in timeline.lanes.items():
        process = _DEVICES + device
        threads = _threads(spans)
        yield from _names(process, f"device {device}", {_GAPS: "gaps"})
        for thread in range(max(threads, default=0) + 1):
            beside = f" beside them ({thread + 1})" if thread else ""
            yield from _thread_name(process, _OPS + thread, f"ops{beside}")
        for span, thread in zip(spans, threads, strict=True):
            ideal_ns = lines[span.row].least_ns
            yield from _op_events(rows[span.row], span, (process, _OPS + thread), ideal_ns)
        yield from _gap_events(spans, process)
    yield from _host_events(table, timeline, rows)


def _threads(spans: Sequence[Span]) -> list[int]:
    """Return a thread for each op, so that none overlaps with another on the same.

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
    told = {
        "number": row.number,
        "region": row.region,
        "step": row.step,
        "operands": row.operands or None,
        "cores": row.cores,
        "fidelity": row.fidelity,
        "ideal_us": None if ideal_ns is None else _us(ideal_ns),
        "bound": row.bound,
        "dram_gb_s": None if row.dram_gb_s is None else round(row.dram_gb_s, 1),
        "tflops": None if row.tflops is None else round(row.tflops, 2),
        "waits_us": _us(span.waits_ns) if span.waits_ns else None,
        "stale": "with these shapes it would be faster than the chip" if row.stale else None,
    }
    args = {
        name: visible(v) if isinstance(v, str) else v for name, v in told.items() if v is not None
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
    """Yield what has no time of its own: it stands where the next op of a device starts."""
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
        yield from _thread_name(process, thread, what)


def _thread_name(process: int, thread: int, name: str) -> Iterator[Event]:
    yield {"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _us(ns: float) -> float:
    """Return microseconds to the picosecond: what is rounded more would overlap."""
    return round(ns / 1000, 6)
