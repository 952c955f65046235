"""Metrics of captures: op tables, device logs, reports, graphs and the simulator."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.report_calls import resident_bytes
from pytest_ttnn_perf.analysis.captures.validity import why_invalid
from pytest_ttnn_perf.analysis.ops.grouping import group_ops
from pytest_ttnn_perf.analysis.ops.lanes import middle_lanes
from pytest_ttnn_perf.analysis.ops.regions import regions_of, step_times_ns
from pytest_ttnn_perf.analysis.ops.windows import window_name
from pytest_ttnn_perf.records.metric import (
    CB_PEAK,
    DRAM_ADDED,
    KERNEL_TIME,
    L1_ADDED,
    Better,
    Kind,
    Metric,
    Source,
    metric_in,
)
from pytest_ttnn_perf.records.observation import Limits, MetricObservation
from pytest_ttnn_perf.records.ops import Category, OpGroups, category_of
from pytest_ttnn_perf.records.region import region_name
from pytest_ttnn_perf.records.ttnn_report import BufferType, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.region import Region, RegionChoice
    from pytest_ttnn_perf.records.ttlang import SimCounters
    from pytest_ttnn_perf.records.ttnn_report import (
        Comparison,
        DeviceLog,
        OperationError,
        Report,
    )


_UNITS: Final = {Kind.TIME: "ns", Kind.BYTES: "B"}


def recorded_metric(
    name: str, kind: Kind, *, better: Better | None = None, source: Source = Source.DEVICE
) -> Metric:
    """Return the metric of a recorded quantity; its kind tells the unit and which way is better.

    >>> recorded_metric("l1_peak_bytes", Kind.BYTES).unit
    'B'
    """
    return Metric(name, _UNITS.get(kind, ""), better or kind.usual_direction, kind, source)


OP_COUNT: Final = "op_count"
#: The calls of a report, and so of a captured graph.
CALL_COUNT: Final = "report_op_count"
#: What belongs to no region, as a metric that is recorded only.
OUTSIDE: Final = "outside"


def device_metrics(table: OpTable, *, file: str) -> Iterator[MetricObservation]:
    """Yield the metrics of each region: kernel time, op count, and the time of every category.

    One sample per step, of the slowest device: the devices of a mesh run side by side. What is in
    no region is recorded, with its size. The times of an invalid capture have no samples, and say
    why. ``file`` is the name of the capture.
    """
    found = regions_of(table)
    flaw = why_invalid(table, file) or (None if found.regions else f"{file}: no op has a time")
    if flaw is not None:
        for name in found.names or ("",):
            yield MetricObservation(_time_in(name), (), note=flaw)
        return
    for region in found.regions:
        yield from _region_metrics(table, region)
    outside = found.outside
    if outside.ops:
        size = f"{outside.kernel_ns / 1000:,.1f} µs in {counted(outside.ops, 'op')}"
        note = f"recorded, not gated: {size} in no region (loading, compilation, warm-up)"
        yield MetricObservation(_time_in(OUTSIDE), (outside.kernel_ns,), gated=False, note=note)


def missing_region(choice: RegionChoice, why: str) -> MetricObservation:
    """Return the time of what a capture does not have, which says so."""
    name = region_name(choice.region) if choice.region else window_name(choice.start, choice.end)
    return MetricObservation(_time_in(name), (), note=why)


def _time_in(region: str) -> Metric:
    return recorded_metric(metric_in(region, KERNEL_TIME), Kind.TIME)


def _region_metrics(table: OpTable, region: Region) -> Iterator[MetricObservation]:
    categories = [category_of(signature.op) for signature in table.signatures]
    signature, kernel_ns = table.columns.signature, table.columns.kernel_ns
    steps: list[dict[Category, float]] = []
    for step in region.steps:
        slowest: dict[Category, float] = {}
        for rows in step.values():
            times: dict[Category, float] = defaultdict(float)
            for row in rows:
                times[categories[signature[row]]] += kernel_ns[row]
            # Of each category as well the slowest device: none waits for the sum of another.
            slowest |= {c: max(ns, slowest.get(c, 0.0)) for c, ns in times.items()}
        steps.append(slowest)
    yield MetricObservation(_time_in(region.name), step_times_ns(table, region))
    most = float(max(len(rows) for step in region.steps for rows in step.values()))
    count = recorded_metric(metric_in(region.name, OP_COUNT), Kind.COUNT)
    yield MetricObservation(count, (most,))
    for category in Category:
        samples = tuple(times.get(category, 0.0) for times in steps)
        if all(samples):  # a category that not every step has is no time to compare
            name = metric_in(region.name, f"{KERNEL_TIME}_{category.name.lower()}")
            yield MetricObservation(recorded_metric(name, Kind.TIME), samples)


def gated_ops(table: OpTable) -> OpGroups | None:
    """Return the ops that make up the kernel times of a table's regions; None where it has none.

    Such a time is that of the middle step, on its slowest device: so are these, or the mean of the
    two in the middle. Their times add up to the metric. ``kernel_time`` says what they are of, as
    the ops of a whole capture are another quantity.
    """
    regions = regions_of(table).regions
    if not regions or why_invalid(table, "") is not None:
        return None
    what = table.kernel_time
    what += " of one replay" if table.traces else ""
    what += " on the slowest device" if len(table.devices) > 1 else ""
    groups = [
        replace(group, region=region.name)
        for region in regions
        for group in group_ops(table, middle_lanes(table, region)).groups
    ]
    return OpGroups(what, tuple(groups))


PROGRAM_COUNT: Final = "program_count"


def log_metrics(log: DeviceLog, *, file: str) -> Iterator[MetricObservation]:
    """Yield the kernel time and the number of programs, of the device that has most of each.

    The time of a program is from its first kernel's start to the last one's end, which is what an
    op table calls its kernel duration: both are the same metric. Replays of traces are its samples,
    and what ran outside of them is none; without traces the whole log is one sample. A log that
    lacks a marker gives no samples, and says why.
    """
    time = recorded_metric(KERNEL_TIME, Kind.TIME)
    lost = _lost(log)
    if lost is not None:
        yield MetricObservation(time, (), note=f"{file}: {lost}")
        return
    runs = _runs_in_log(log).values()
    yield MetricObservation(time, tuple(max(map(sum, times.values())) for times in runs))
    most = max(len(own) for times in runs for own in times.values())
    yield MetricObservation(recorded_metric(PROGRAM_COUNT, Kind.COUNT), (most,))


def _lost(log: DeviceLog) -> str | None:
    if not log.programs:
        return "no kernel ran"
    for program in log.programs:
        if not program.complete:
            place = f"program {program.run_host_id} on device {program.device}"
            return f"{place} lacks a marker: the profiler dropped it, or the log is cut"
    ran: dict[tuple[int, int | None], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for program in log.programs:
        if program.replay is not None:
            ran[program.device, program.trace][program.replay].append(program.run_host_id)
    for (device, trace), replays in ran.items():
        first, *others = map(sorted, replays.values())
        if any(other != first for other in others):
            return f"the replays of trace {trace} on device {device} ran different programs"
    return None


def _runs_in_log(log: DeviceLog) -> Mapping[int | None, Mapping[int, list[float]]]:
    """Return the times of the programs by replay and device; None is the replay of a whole log."""
    replayed = any(program.replay is not None for program in log.programs)
    runs: dict[int | None, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for program in log.programs:
        if program.kernel_ns is not None and (program.replay is not None or not replayed):
            runs[program.replay][program.device].append(program.kernel_ns)
    return runs


#: What a report lists as alive, at the op that has most of it.
_PEAKS: Final = {
    "l1_peak_bytes": BufferType.L1,
    "dram_peak_bytes": BufferType.DRAM,
    "trace_buffer_bytes": BufferType.TRACE,
}
#: What one call allocates, at the moment at which it holds most of it.
_ADDED: Final = {
    L1_ADDED: BufferType.L1,
    DRAM_ADDED: BufferType.DRAM,
    "trace_buffer_bytes": BufferType.TRACE,
}
_RESIDENT: Final = {
    "l1_resident_bytes": BufferType.L1,
    "dram_resident_bytes": BufferType.DRAM,
}


def report_metrics(report: Report) -> Iterator[MetricObservation]:
    """Yield the calls, the memory and, where tensors were compared, the least PCC of one rank.

    A report does not tell how many banks a buffer takes: its sizes are those in one bank, and so
    are its peaks. Memory is left out where no buffer was recorded. A program in which an operation
    failed was not run to its end: its metrics have no samples, and say why.
    """
    yield from _program(CALL_COUNT, report, _PEAKS)
    for scope in Scope:
        compared = [each for each in report.comparisons if each.scope is scope]
        if compared:
            yield _least_pcc(scope, compared)


def call_metrics(report: Report, held: Mapping[BufferType, int]) -> Iterator[MetricObservation]:
    """Yield the metrics of one call of a model: its calls, what it adds, what it finds there.

    What it ``held`` was allocated after the capture began, in bytes per bank. Weights and inputs
    lay there before: those that the call reads are counted with all their bytes on one device.
    """
    yield from _program(CALL_COUNT, report, {})
    note = _failures(report.errors)
    for name, kind in _ADDED.items() if held else ():
        # Another source than that of older baselines, which have what is left after each op.
        metric = recorded_metric(name, Kind.BYTES, source=Source.GRAPH)
        yield MetricObservation(metric, () if note else (held.get(kind, 0),), note=note)
    resident = resident_bytes(report)
    for name, kind in _RESIDENT.items():
        if kind in resident:
            metric, samples = recorded_metric(name, Kind.BYTES), (resident[kind],)
            yield MetricObservation(metric, () if note else samples, note=note)


def graph_metrics(graph: Report) -> Iterator[MetricObservation]:
    """Yield the calls and the memory of a captured graph; bytes are those in one bank.

    It has calls that a report made of it leaves out: their numbers are metrics of their own.
    """
    yield from _program("graph_op_count", graph, _PEAKS)


def _program(
    counter: str, program: Report, named: Mapping[str, BufferType]
) -> Iterator[MetricObservation]:
    operations, peaks = program.operations, program.peak_bytes_per_bank
    note = _failures(program.errors)
    count = recorded_metric(counter, Kind.COUNT)
    # A report without operations is one of errors alone: nothing was counted.
    counted = (len(operations),) if operations and note is None else ()
    yield MetricObservation(count, counted, note=note)
    sizes = {name: peaks.get(kind, 0) for name, kind in named.items()} if peaks else {}
    # Only some device operations tell: this is what the fullest core held at least.
    circular = [op.cb_bytes_per_core for op in operations if op.cb_bytes_per_core is not None]
    if circular:
        sizes[CB_PEAK] = max(circular)
    for name, size in sizes.items():
        metric = recorded_metric(name, Kind.BYTES)
        samples = () if note else (size,)
        yield MetricObservation(metric, samples, gated=not metric.only_recorded, note=note)


def _failures(errors: Sequence[OperationError]) -> str | None:
    if not errors:
        return None
    first = errors[0]
    shown = ": ".join(part for part in (first.name, first.reason or first.kind) if part)
    others = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
    return f"an operation failed: {shown or 'unnamed'}{others}"


def _least_pcc(scope: Scope, compared: Sequence[Comparison]) -> MetricObservation:
    worst = min(compared, key=_pcc)
    # Each tensor has a limit of its own: one that falls short of it must not pass by another's.
    limits = [(each.desired_pcc, _pcc(each)) for each in compared]
    short = [limit for limit, pcc in limits if limit is not None and pcc < limit]
    return MetricObservation(
        recorded_metric(f"comparison_pcc_{scope.value}", Kind.ACCURACY),
        (math.nan if worst.actual_pcc is None else worst.actual_pcc,),
        limits=Limits(at_least=max(short, default=worst.desired_pcc)),
        note=f"tensor {worst.tensor}, the worst of {len(compared)}",
    )


def _pcc(comparison: Comparison) -> float:
    """Return the PCC; minus infinity where it is NaN, or NULL, as a database stores NaN."""
    pcc = comparison.actual_pcc
    return -math.inf if pcc is None or math.isnan(pcc) else pcc


_PREFIX: Final = "sim_"
#: The simulator names a tensor that has no name after its address: another one in every run.
_NAMELESS: Final = re.compile(r"tensor_(?:[0-9]{1,4}|[0-9a-f]{4})")


def sim_metrics(counters: SimCounters) -> Iterator[MetricObservation]:
    """Yield every counter, in all and of each tensor that has a name: the same in every run.

    They tell that a kernel does something else than before, not whether it is slower.
    """
    for counter, count in counters.counters.items():
        yield _observed_counter(counter, count)
    for tensor in counters.tensors:
        if not _NAMELESS.fullmatch(tensor.name):
            for counter, count in tensor.counters.items():
                yield _observed_counter(counter, count, of=f"_{tensor.name}")


def _observed_counter(counter: str, count: int, *, of: str = "") -> MetricObservation:
    name = f"{_PREFIX}{counter.removeprefix(_PREFIX)}{of}"
    kind = Kind.BYTES if counter.endswith("_bytes") else Kind.COUNT
    metric = recorded_metric(name, kind, better=Better.EQUAL, source=Source.SIM)
    return MetricObservation(metric, (count,))
