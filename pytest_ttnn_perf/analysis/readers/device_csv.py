"""The metrics of all captures."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.align import group_ops
from pytest_ttnn_perf.analysis.ops.regions import (
    middle_lane,
    regions_of,
    step_times_ns,
    why_invalid,
    window_name,
)
from pytest_ttnn_perf.analysis.readers.report_db import (
    BufferType,
    Scope,
    resident_bytes,
)
from pytest_ttnn_perf.analysis.readers.ttlang import ProblemKind
from pytest_ttnn_perf.core.finding import region_name
from pytest_ttnn_perf.core.metric import (
    CALL_COUNT,
    CB_PEAK,
    DRAM_ADDED,
    KERNEL_TIME,
    L1_ADDED,
    OP_COUNT,
    Better,
    Kind,
    Metric,
    Source,
    metric_in,
    recorded_metric,
)
from pytest_ttnn_perf.core.observation import Limits, MetricObservation
from pytest_ttnn_perf.core.ops import (
    Category,
    OpGroups,
    OpTable,
    category_of,
)
from pytest_ttnn_perf.core.text import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.regions import Region
    from pytest_ttnn_perf.analysis.readers.report_db import Comparison, OperationError, Report
    from pytest_ttnn_perf.analysis.readers.ttlang import (
        Kernel,
        PerfSummary,
        ProgramPerf,
        SimCounters,
        TtlangLog,
    )


#: What belongs to no region, as a metric that is recorded only.
OUTSIDE: Final = "outside"


def device_metrics(table: OpTable, *, file: str) -> Iterator[MetricObservation]:
    """Yield kernel time, op count and category times of each region.

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


class RegionChoice(NamedTuple):
    """A region by its name, or the ops between two signposts.

    Without either it is all that the capture measures.
    """

    region: str | None = None
    start: str | None = None
    end: str | None = None


def missing_region(choice: RegionChoice, why: str) -> MetricObservation:
    """Return the kernel time of a missing region, without samples."""
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
    """Return the ops behind the kernel times; None if there are none.

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
        for group in group_ops(table, middle_lane(table, region)).groups
    ]
    return OpGroups(what, tuple(groups))


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
    """Yield call count, memory and least PCC of one rank.

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
    """Yield call count, added and resident memory of one call.

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
    # Only some device operations report it: this is what the fullest core held at least.
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
    """Return the PCC; minus infinity for NaN or NULL."""
    pcc = comparison.actual_pcc
    return -math.inf if pcc is None or math.isnan(pcc) else pcc


_PREFIX: Final = "sim_"
#: The simulator names a tensor that has no name after its address: another one in every run.
_NAMELESS: Final = re.compile(r"tensor_(?:[0-9]{1,4}|[0-9a-f]{4})")


def sim_metrics(counters: SimCounters) -> Iterator[MetricObservation]:
    """Yield every counter, in total and by named tensor.

    They show that a kernel does something else than before, not that it is slower.
    """
    for counter, value in counters.counters.items():
        yield _observed_counter(counter, value)
    for tensor in counters.tensors:
        if not _NAMELESS.fullmatch(tensor.name):
            for counter, value in tensor.counters.items():
                yield _observed_counter(counter, value, of=f"_{tensor.name}")


def _observed_counter(counter: str, count: int, *, of: str = "") -> MetricObservation:
    name = f"{_PREFIX}{counter.removeprefix(_PREFIX)}{of}"
    kind = Kind.BYTES if counter.endswith("_bytes") else Kind.COUNT
    metric = recorded_metric(name, kind, better=Better.EQUAL, source=Source.SIM)
    return MetricObservation(metric, (count,))


# The metrics of tt-lang kernels.

_OF_TTLANG: Final = "kernel_time"
#: The numbers of a program, in the order of ``_numbers_of``: all but the bandwidth are gated.
_KERNEL_METRICS: Final = (
    recorded_metric(_OF_TTLANG, Kind.TIME),
    recorded_metric("kernel_dram_read_bytes", Kind.BYTES),
    recorded_metric("kernel_dram_write_bytes", Kind.BYTES),
    recorded_metric("kernel_dram_transfers", Kind.COUNT),
    recorded_metric("kernel_cores", Kind.COUNT, better=Better.HIGHER),
    recorded_metric("kernel_barriers", Kind.COUNT),
    Metric("kernel_bandwidth", "GB/s", Better.HIGHER, Kind.THROUGHPUT, Source.DEVICE),
)
#: After these no number of a log is known to be whole, or of this run.
_LOSSES: Final = (ProblemKind.DROPPED, ProblemKind.STALE)
_NO_SUMMARY: Final = (
    "no PERF SUMMARY: it takes TTLANG_PERF_DUMP=1 and TT_METAL_DEVICE_PROFILER_NOC_EVENTS=1"
)
_INSTRUMENTED: Final = "instrumented: an auto-profile slowed the same run"
_NO_BARRIERS: Final = "ttnn 0.77 and newer do not count barriers"
_Numbers = tuple[float | None, ...]


def kernel_metrics(log: TtlangLog, *, file: str) -> Iterator[MetricObservation]:
    """Yield the metrics of each kernel: time, cores, traffic, barriers, cycles.

    Text rounds: bytes are right within 5 %, and the same in every run that moves the same. A log
    that is cut, or whose data were dropped, gives the kernel time without samples, and says why.
    Traffic inside L1 is no metric: to fetch from a neighbour instead of DRAM is no regression.
    """
    lost = next((f"line {p.line}: {p.text}" for p in log.problems if p.kind in _LOSSES), None)
    if lost is None and not all(summary.complete for summary in log.perf_summaries):
        lost = "a PERF SUMMARY is cut, or lacks lines"
    cycles = tuple(_cycle_metrics(log, file=file, lost=lost))
    if lost is not None:
        yield _no_kernel_time(f"{file}: {lost}")
    elif log.perf_summaries:
        doubts = {problem.kind for problem in log.problems}
        for found in _kernel_call_metrics(log.perf_summaries, doubts, file):
            slowed = log.is_instrumented and found.metric.kind in {Kind.TIME, Kind.THROUGHPUT}
            note = f"{file}: {_INSTRUMENTED}"
            yield replace(found, samples=(), note=note) if slowed else found
    elif log.flow_graphs or log.pipe_graphs or not cycles:
        # Graphs are printed with a summary, by one option; a log of profiles alone may have none.
        alone = ", without TTLANG_AUTO_PROFILE" if log.auto_profiles else ""
        yield _no_kernel_time(f"{file}: {_NO_SUMMARY}{alone}")
    yield from cycles


def _no_kernel_time(note: str) -> MetricObservation:
    return MetricObservation(recorded_metric(_OF_TTLANG, Kind.TIME), (), note=note)


def _kernel_call_metrics(
    summaries: Sequence[PerfSummary], doubts: Collection[ProblemKind], file: str
) -> Iterator[MetricObservation]:
    """Yield the metrics of the kernels of all calls.

    Their names end with nothing for the only kernel; else with the name of its operation, where
    there are several, and its place in the call. Ids count all that the process ran before, so they
    would name another program as soon as an op is added; their order stays.
    """
    calls = list(_kernel_calls(summaries, doubts))
    lengths: dict[str | None, set[int]] = defaultdict(set)
    samples: dict[str, list[_Numbers]] = defaultdict(list)
    several = len({name for name, _ in calls}) > 1
    for name, programs in calls:
        lengths[name].add(len(programs))
        label = f"_{name or 'unnamed'}" if several else ""
        for place, numbers in enumerate(programs, start=1):
            samples[label if len(programs) == 1 else f"{label}_{place}"].append(numbers)
    if not calls:
        yield _no_kernel_time(f"{file}: no program ran")
        return
    if any(len(found) > 1 for found in lengths.values()):
        yield _no_kernel_time(f"{file}: calls of one operation ran different numbers of programs")
        return
    for label, own in samples.items():
        for metric, values in zip(_KERNEL_METRICS, zip(*own, strict=True), strict=True):
            known = tuple(value for value in values if value is not None)
            note, gated = None, metric.kind is not Kind.THROUGHPUT
            if len(known) < len(values):
                timed = metric.kind in {Kind.TIME, Kind.THROUGHPUT}
                why = "the clock of the chip is not known" if timed else "it is unknown"
                if metric.name == "kernel_barriers" and ProblemKind.UNREAD not in doubts:
                    why, gated = _NO_BARRIERS, False
                known, note = (), f"{file}: {why}"
            named = replace(metric, name=metric.name + label)
            yield MetricObservation(named, known, gated=gated, note=note)


def _kernel_calls(
    summaries: Sequence[PerfSummary], doubts: Collection[ProblemKind]
) -> Iterator[tuple[str | None, list[_Numbers]]]:
    """Yield the calls of summaries with the numbers of their programs.

    Traces of earlier calls stay, so each summary repeats them; what it repeats is left out.
    """
    seen: set[ProgramPerf] = set()
    for summary in summaries:
        # The name of the operation stands at the program whose trace sorts first as text, 10240
        # before 2048: it names the call, and no program of it.
        names = {program.name for program in summary.programs if program.name is not None}
        own = {replace(kernel.program, name=None): kernel for kernel in summary.kernels}
        new = [own[program] for program in own if program not in seen]
        seen.update(own)
        if new:
            new.sort(key=lambda kernel: kernel.program.program_id)
            yield names.pop() if len(names) == 1 else None, [_numbers_of(k, doubts) for k in new]


def _numbers_of(kernel: Kernel, doubts: Collection[ProblemKind]) -> _Numbers:
    read, write, cores = kernel.program.dram_read, kernel.program.dram_write, kernel.program.cores
    transfers = None
    if read.transfers is not None and write.transfers is not None:
        transfers = read.transfers + write.transfers
    # Of a log that begins below the line of the clock, the time as it was printed.
    timed = kernel.clock_mhz is not None or ProblemKind.UNKNOWN_CHIP not in doubts
    time_ns, gb_s = (kernel.time_ns, kernel.gb_s or None) if timed else (None, None)
    return time_ns, read.bytes, write.bytes, transfers, cores, kernel.barriers, gb_s


def _cycle_metrics(log: TtlangLog, *, file: str, lost: str | None) -> Iterator[MetricObservation]:
    """Yield the cycles of the slowest thread, in total and by zone.

    Sums over cores and iterations, with the profiler's own cycles among them. ``lost`` is why no
    number of the log can be trusted.
    """
    found: dict[str, int | None] = {}
    for report in log.auto_profiles[:1]:
        found["auto_profile_cycles"] = report.longest_thread_cycles
    for profile in log.signpost_profiles:
        for zone in profile.signposts:
            name = f"signpost_cycles_{zone.name}"
            found[name] = max(zone.total_cycles, found.get(name) or 0)
    for name, cycles in found.items():
        is_whole = name == "auto_profile_cycles"
        profiles = log.auto_profiles if is_whole else log.signpost_profiles
        flaw = lost
        if flaw is None and not all(profile.complete for profile in profiles):
            flaw = "the profile is cut"
        elif flaw is None and len(profiles) > 1:
            flaw = "several profiles, each of all calls until then"
        elif flaw is None and cycles is None:
            flaw = "it is unknown"
        metric = Metric(name, unit="cycles", source=Source.DEVICE)
        samples = () if cycles is None or flaw is not None else (cycles,)
        note = None if flaw is None else f"{file}: {flaw}"
        yield MetricObservation(metric, samples, gated=False, note=note)
