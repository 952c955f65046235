"""Analyses of waiting between ops, traces, command queues and devices."""

from __future__ import annotations

from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.analyses.analysis import (
    Kind,
    Numbers,
    Part,
    by_time,
    section,
    with_rules,
)
from pytest_ttnn_perf.analysis.checklist.measurements import NO_IO_TIMES
from pytest_ttnn_perf.analysis.checklist.op_times import (
    device_ops,
    differences,
    executions,
    gaps_of,
    op_name,
)
from pytest_ttnn_perf.analysis.checklist.residency import crossings
from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.records.finding import Figure, Input, Row, Section
from pytest_ttnn_perf.records.ops import Category, category_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.analysis.checklist.op_times import Gaps
    from pytest_ttnn_perf.analysis.checklist.residency import Crossing
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Op, OpTable


#: What gaps are called up to how many nanoseconds.
_LENGTHS: Final = {
    "below 1 us": 1e3,
    "1 to 10 us": 1e4,
    "10 to 100 us": 1e5,
    "100 us to 1 ms": 1e6,
    "1 ms and more": float("inf"),
}


def _look_at_host_overhead(subject: Subject) -> Numbers | Answer:
    assert subject.ops is not None
    gaps = gaps_of(subject)
    if isinstance(gaps, str):
        return Answer.not_measured(gaps)
    figures = (
        Figure("devices wait (TTP401)", gaps.share, "of the time"),
        Figure("waited, all devices", gaps.waited_ns, "ns"),
        Figure("worked, all devices", gaps.worked_ns, "ns"),
    )
    notes = (f"counted in {gaps.place}, without the gap before the first op of each",)
    caveats = (gaps.caveat,) if gaps.caveat else ()
    return Numbers(figures, tuple(_sections(subject.ops, gaps)), (*notes, *caveats))


def _sections(table: OpTable, gaps: Gaps) -> Iterator[Section]:
    waits = [(table.op(at), max(table.columns.gap_ns[at] or 0.0, 0.0)) for at in gaps.waits]
    counts = {name: [ns for _, ns in waits if _length(ns) == name] for name in _LENGTHS}
    parts = (Part(name, sum(each), len(each)) for name, each in counts.items() if each)
    yield section("lengths of gaps", parts, unit="ns", of="of the gaps", ranked=False)
    before = (Part(op_name(op), ns) for op, ns in waits)
    yield section("waits before", before, unit="ns", of="of the gaps")


def _length(nanoseconds: float) -> str:
    return next(name for name, most in _LENGTHS.items() if nanoseconds < most)


HOST_OVERHEAD: Final = Kind(
    "host-overhead", "how long devices wait for their next op", (Input.OPS,), _look_at_host_overhead
)
#: How many executions that differ are named.
_NAMED: Final = 3


def _look_at_trace(subject: Subject) -> Numbers:
    assert subject.ops is not None
    table = subject.ops
    ops = list(device_ops(table))
    outside = [op for op in ops if op.trace is None]
    partly = outside if len(outside) < len(ops) else []
    return with_rules(
        subject,
        {"waiting without a trace": "TTP402", "executions unlike the first": "TTP403"},
        by_time("ops", ops, _origin),
        _executions(table),
        by_time("ops that are in no trace", partly, op_name, whole=sum(op.kernel_ns for op in ops)),
        notes=tuple(f"differs: {each}" for each in islice(differences(table), _NAMED)),
    )


def _origin(op: Op) -> str:
    return "not traced" if op.trace is None else f"trace {op.trace}, device {op.device}"


def _executions(table: OpTable) -> Section:
    """Return the median kernel time of what ran at least twice."""
    times = table.columns.kernel_ns
    rows = (
        Row(
            what.rpartition(", ")[0],
            median(sum(times[at] for at in run.places) for run in runs),
            count=len(runs),
        )
        for what, runs in sorted(executions(table).items())
    )
    return Section("executions, median time of one", "ns", tuple(rows))


TRACE: Final = Kind(
    "trace", "what runs from a trace, and its replays", (Input.OPS,), _look_at_trace
)
_QUEUES_OF: Final = "of the bytes"


def _look_at_queues(subject: Subject) -> Numbers | Answer:
    assert subject.report is not None
    crossing = crossings(subject.report)
    if not crossing:
        return Answer.not_applicable("the report has no transfer between host and device")
    ways = (Part(_way(each), each.sent) for each in crossing)
    tensors = (Part(str(each), each.sent) for each in crossing)
    return with_rules(
        subject,
        {"padding": "TTP504", "outputs to the host": "TTP505"},
        section("ways", ways, unit="B", of=_QUEUES_OF),
        section("transfers", tensors, unit="B", of=_QUEUES_OF),
        notes=(f"times of transfers: not measured: {NO_IO_TIMES}",),
    )


def _way(crossing: Crossing) -> str:
    way = "to the host" if crossing.outward else "to the device"
    return f"{way}, queue {'not told' if crossing.queue is None else crossing.queue}"


QUEUES: Final = Kind(
    "queues",
    "transfers between host and device, and their command queues",
    (Input.REPORT,),
    _look_at_queues,
    "no op table tells transfers or command queues",
)


def _look_at_devices(subject: Subject) -> Numbers:
    assert subject.ops is not None
    ops = list(device_ops(subject.ops))
    exchanging = [op for op in ops if category_of(op.signature.op) is Category.COLLECTIVE]
    computing = [op for op in ops if category_of(op.signature.op) is not Category.COLLECTIVE]
    apart = computing if exchanging else []
    return with_rules(
        subject,
        {"collectives": "TTP703", "slowest device": "TTP704"},
        by_time("devices", ops, _device),
        by_time("devices without collectives", apart, _device, of="of such time"),
        by_time("collectives", exchanging, op_name, whole=sum(op.kernel_ns for op in ops)),
    )


def _device(op: Op) -> str:
    return f"device {op.device}"


DEVICES: Final = Kind(
    "devices", "kernel time by device, and collectives", (Input.OPS,), _look_at_devices
)
