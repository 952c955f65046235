"""What tt-lang says about kernels, as metrics that are gated like any other."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.metric import Kind
from pytest_ttnn_perf.model.observation import MetricObservation
from pytest_ttnn_perf.model.ttlang import ProblemKind
from pytest_ttnn_perf.workflow.cycle_metrics import cycle_metrics
from pytest_ttnn_perf.workflow.kernel_calls import calls_of
from pytest_ttnn_perf.workflow.recorded import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.model.metric import Metric
    from pytest_ttnn_perf.model.ttlang import PerfSummary, TtlangLog
    from pytest_ttnn_perf.workflow.kernel_calls import Call, Measured

_TIME: Final = "kernel_time"
#: What is gated of a program, in the order of its record.
_KINDS: Final = {
    _TIME: Kind.TIME,
    "kernel_dram_read_bytes": Kind.BYTES,
    "kernel_dram_write_bytes": Kind.BYTES,
    "kernel_dram_transfers": Kind.COUNT,
    "kernel_barriers": Kind.COUNT,
}
#: After these no number of a log is known to be whole, or of this run.
_LOSSES: Final = (ProblemKind.DROPPED, ProblemKind.STALE)
_NO_SUMMARY: Final = (
    "no PERF SUMMARY: it takes TTLANG_PERF_DUMP=1 and TT_METAL_DEVICE_PROFILER_NOC_EVENTS=1"
)


def kernel_metrics(log: TtlangLog, *, file: str) -> Iterator[MetricObservation]:
    """Yield what a log says of each kernel: time, DRAM traffic, barriers, profiled cycles.

    Text rounds: bytes are right within 5 %, and the same in every run that moves the same. A log
    that is cut, or whose data were dropped, gives the kernel time without samples, and says why.
    Traffic inside L1 is no metric: to fetch from a neighbour instead of DRAM is no regression.
    """
    lost = _lost(log)
    cycles = tuple(cycle_metrics(log, file=file, lost=lost))
    if lost is not None:
        yield _nothing(f"{file}: {lost}")
    elif log.perf_summaries:
        doubts = {problem.kind for problem in log.problems}
        yield from _of_calls(list(calls_of(log.perf_summaries, doubts)), file)
    elif log.flow_graphs or log.pipe_graphs or not cycles:
        # Graphs are printed with a summary, by one option; a log of profiles alone may have none.
        yield _nothing(f"{file}: {_NO_SUMMARY}")
    yield from cycles


def summary_metrics(summary: PerfSummary, *, file: str) -> Iterator[MetricObservation]:
    """Yield what the exact form of a summary says of each kernel: as a log, without profiles."""
    if summary.complete:
        # It has a clock unless tt-lang did not know the chip, and then its times are made up.
        yield from _of_calls(list(calls_of([summary], {ProblemKind.UNKNOWN_CHIP})), file)
    else:
        yield _nothing(f"{file}: the summary is not whole")


def _lost(log: TtlangLog) -> str | None:
    for problem in log.problems:
        if problem.kind in _LOSSES:
            return f"line {problem.line}: {problem.text}"
    whole = all(summary.complete for summary in log.perf_summaries)
    return None if whole else "a PERF SUMMARY is cut, or lacks lines"


def _of_calls(calls: list[Call], file: str) -> Iterator[MetricObservation]:
    lengths: dict[str | None, set[int]] = defaultdict(set)
    for call in calls:
        lengths[call.name].add(len(call.programs))
    if not calls:
        yield _nothing(f"{file}: no program ran")
    elif any(len(found) > 1 for found in lengths.values()):
        yield _nothing(f"{file}: calls of one operation ran different numbers of programs")
    else:
        for label, samples in _by_label(calls).items():
            columns = zip(*samples, strict=True)
            for (name, kind), values in zip(_KINDS.items(), columns, strict=True):
                yield _observed(recorded(name + label, kind), values, file)


def _by_label(calls: list[Call]) -> Mapping[str, list[Measured]]:
    """Return the samples of each kernel, by what is added to the names of its metrics.

    Nothing for the only one; else the name of its operation, where there are several, and its
    place in the call. Ids count all that the process ran before, so they would name another
    program as soon as an op is added; their order stays.
    """
    several = len({call.name for call in calls}) > 1
    samples: dict[str, list[Measured]] = defaultdict(list)
    for call in calls:
        name = f"_{call.name or 'unnamed'}" if several else ""
        for place, program in enumerate(call.programs, start=1):
            samples[name if len(call.programs) == 1 else f"{name}_{place}"].append(program)
    return samples


def _observed(metric: Metric, values: tuple[float | None, ...], file: str) -> MetricObservation:
    samples = tuple(value for value in values if value is not None)
    if len(samples) == len(values):
        return MetricObservation(metric, samples)
    missing = "the clock of the chip is not known" if metric.kind is Kind.TIME else "it is not told"
    return MetricObservation(metric, (), note=f"{file}: {missing}")


def _nothing(note: str) -> MetricObservation:
    return MetricObservation(recorded(_TIME, Kind.TIME), (), note=note)
