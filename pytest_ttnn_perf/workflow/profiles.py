"""What a profiler saw of a measured model, as metrics and an op table."""

from __future__ import annotations

from dataclasses import replace
from statistics import median_low
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.artifact import Artifact
from pytest_ttnn_perf.model.metric import KERNEL_TIME, Kind, Source
from pytest_ttnn_perf.model.observation import MetricObservation
from pytest_ttnn_perf.workflow.device_metrics import OP_COUNT, device_metrics, gated_ops
from pytest_ttnn_perf.workflow.recorded import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.ops import OpTable
    from pytest_ttnn_perf.model.profile import Profile

#: How the profiler's report may round a time.
_ROUNDING_NS: Final = 1.0


def profile_artifact(profile: Profile, *, source: Source, report: OpTable | None) -> Artifact:
    """Return the metrics of a profile; with the profiler's own report, also the op table.

    A sample per iteration, of the slowest chip. Iterations that ran different numbers of programs
    are told as such: data was dropped, or the model does not do the same each time.
    """
    time = recorded(KERNEL_TIME, Kind.TIME, source=source)
    problem = profile.problem or _uneven(profile)
    if problem is not None:
        return Artifact((MetricObservation(time, (), note=problem),))
    metrics = [
        MetricObservation(time, tuple(each.kernel_ns for each in profile.iterations)),
        MetricObservation(
            recorded(OP_COUNT, Kind.COUNT, source=source),
            (float(profile.iterations[-1].op_count),),
        ),
    ]
    named = _middle_iteration(profile, report) if report is not None else None
    if named is None:
        return Artifact(tuple(metrics))
    metrics += _categories(named, source)
    return Artifact(tuple(metrics), ops=gated_ops(named), table=named)


def _uneven(profile: Profile) -> str | None:
    counts = [each.op_count for each in profile.iterations]
    if len(set(counts)) <= 1:
        return None if counts else "no iteration was profiled"
    told = ", ".join(map(str, counts))
    return f"the iterations ran different numbers of programs: {told}"


def _middle_iteration(profile: Profile, report: OpTable) -> OpTable | None:
    """Return the rows of an iteration that took the median time, the last of them if several did.

    A report is of all that the process ran. Iterations are its last rows on each chip, if their
    times are those that the profiler told; otherwise the report is of something else.
    """
    times_ns = [each.kernel_ns for each in profile.iterations]
    chosen = len(times_ns) - 1 - times_ns[::-1].index(median_low(times_ns))
    later = profile.iterations[chosen + 1 :]
    rows_of: dict[int, list[int]] = {}
    for row, device in enumerate(report.columns.device):
        rows_of.setdefault(device, []).append(row)
    kept: list[int] = []
    for chip, programs in profile.iterations[chosen].by_chip.items():
        rows = rows_of.get(chip, [])
        end = max(len(rows) - sum(len(each.by_chip.get(chip, ())) for each in later), 0)
        rows = rows[max(end - len(programs), 0) : end]
        told = [report.columns.kernel_ns[row] for row in rows]
        if len(told) != len(programs) or any(
            abs(ns - program.kernel_ns) > _ROUNDING_NS
            for ns, program in zip(told, programs, strict=True)
        ):
            return None
        kept += rows
    return replace(report.select(sorted(kept)), windowed=True)


def _categories(table: OpTable, source: Source) -> Iterator[MetricObservation]:
    """Yield the times by category; the whole and the count are known from all iterations."""
    for observed in device_metrics(table, file="report"):
        if observed.metric.is_part_of_kernel_time:
            metric = recorded(observed.metric.name, Kind.TIME, source=source)
            yield MetricObservation(metric, observed.samples)
