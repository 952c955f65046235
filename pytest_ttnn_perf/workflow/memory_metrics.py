"""What TTNN recorded of a program: its calls, its memory and its accuracy, as gated metrics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.metric import CB_PEAK, Kind
from pytest_ttnn_perf.model.observation import Limits, MetricObservation
from pytest_ttnn_perf.model.report import BufferType, Scope
from pytest_ttnn_perf.workflow.recorded import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.model.report import Comparison, GraphCapture, OperationError, Report

_PEAKS: Final = {
    "l1_peak_bytes": BufferType.L1,
    "dram_peak_bytes": BufferType.DRAM,
    "trace_buffer_bytes": BufferType.TRACE,
}


def report_metrics(report: Report) -> Iterator[MetricObservation]:
    """Yield the calls, the memory and, where tensors were compared, the least PCC of one rank.

    A report does not tell how many banks a buffer takes: its sizes are those in one bank, and so
    are these. Memory is left out where no buffer was recorded.
    """
    yield from _program("report_op_count", report, _failures(report.errors))
    for scope in Scope:
        compared = [each for each in report.comparisons if each.scope is scope]
        if compared:
            yield _least_pcc(scope, compared)


def graph_metrics(graph: GraphCapture) -> Iterator[MetricObservation]:
    """Yield the calls and the memory of a captured graph; bytes are those in one bank.

    It has calls that a report made of it leaves out: their numbers are metrics of their own.
    """
    yield from _program("graph_op_count", graph, None)


def _program(
    counter: str, program: Report | GraphCapture, note: str | None
) -> Iterator[MetricObservation]:
    operations, peaks = program.operations, program.peak_bytes_per_bank
    count = recorded(counter, Kind.COUNT)
    # A report without operations is one of errors alone: nothing was counted.
    yield MetricObservation(count, (len(operations),) if operations else (), note=note)
    sizes = {name: peaks.get(kind, 0) for name, kind in _PEAKS.items()} if peaks else {}
    # Only some device operations tell: this is what the fullest core held at least.
    circular = [op.cb_bytes_per_core for op in operations if op.cb_bytes_per_core is not None]
    if circular:
        sizes[CB_PEAK] = max(circular)
    for name, size in sizes.items():
        metric = recorded(name, Kind.BYTES)
        yield MetricObservation(metric, (size,), gated=not metric.only_recorded, note=note)


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
        recorded(f"comparison_pcc_{scope.value}", Kind.ACCURACY),
        (math.nan if worst.actual_pcc is None else worst.actual_pcc,),
        limits=Limits(at_least=max(short, default=worst.desired_pcc)),
        note=f"tensor {worst.tensor}, the worst of {len(compared)}",
    )


def _pcc(comparison: Comparison) -> float:
    """Return the PCC, below all others if it is none: a database has no other word for NaN."""
    pcc = comparison.actual_pcc
    return -math.inf if pcc is None or math.isnan(pcc) else pcc
