"""Calls of a model under a profiler of its devices, and the metrics of that."""

from __future__ import annotations

from dataclasses import replace
from statistics import median_low
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.analysis.captures.device_metrics import (
    OP_COUNT,
    device_metrics,
    gated_ops,
    recorded_metric,
)
from pytest_ttnn_perf.analysis.captures.validity import why_invalid
from pytest_ttnn_perf.device.profilers import Profile, ProfilerError
from pytest_ttnn_perf.measure.timing import Timings, measure
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Kind
from pytest_ttnn_perf.records.observation import Artifact, MetricObservation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.device.profilers import Profiler
    from pytest_ttnn_perf.measure.timing import Workload
    from pytest_ttnn_perf.records.metric import Source
    from pytest_ttnn_perf.records.ops import OpTable


#: A profiler slows a model down and fills up: few calls tell what a device does.
PROFILED_ITERATIONS: Final = 3


def profile_calls(profiler: Profiler, workload: Workload, result: Any) -> tuple[Profile, Any]:
    """Call a warm model some times and profile each call; return the last result as well.

    Of a model with a smaller part, that is called, and the result is the one from before.
    """
    iterations = []
    timings = Timings()  # nobody asks for them
    called, before = workload.part or workload, result
    try:
        profiler.begin()
        for _ in range(PROFILED_ITERATIONS):
            result = None
            result = measure(called, timings, warmup=0, iterations=1)
            iterations.append(profiler.take())
    except ProfilerError as error:
        if result is None:
            result = measure(called, timings, warmup=0, iterations=1)
        profile = Profile(problem=str(error))
    else:
        profile = Profile(tuple(iterations), inputs=called.inputs)
    finally:
        profiler.end()
    return profile, before if workload.part else result


#: How the profiler's report may round a time.
_ROUNDING_NS: Final = 1.0


def profile_artifact(profile: Profile, *, source: Source, report: OpTable | None) -> Artifact:
    """Return the metrics of a profile; with the profiler's own report, also the op table.

    A sample per iteration, of the slowest chip. Iterations that ran different numbers of programs
    are told as such: data was dropped, or the model does not do the same each time. What served
    several inputs is told per input, and its ops are not: they come in no order of inputs.
    """
    inputs = profile.inputs
    time = recorded_metric(KERNEL_TIME, Kind.TIME, source=source)
    problem = profile.problem or _uneven(profile)
    if problem is not None:
        return Artifact((MetricObservation(time, (), note=problem),))
    metrics = [
        MetricObservation(time, tuple(each.kernel_ns / inputs for each in profile.iterations))
    ]
    ops, left_over = divmod(profile.iterations[-1].op_count, inputs)
    if not left_over:
        count = recorded_metric(OP_COUNT, Kind.COUNT, source=source)
        metrics.append(MetricObservation(count, (float(ops),)))
    named = _middle_iteration(profile, report) if report is not None and inputs == 1 else None
    if named is None:
        return Artifact(tuple(metrics))
    invalid = why_invalid(named, "the profiler's report")
    if invalid is not None:
        return Artifact((MetricObservation(time, (), note=invalid),), table=named)
    whole = _without_traces(named)
    metrics += _categories(whole, source)
    return Artifact(tuple(metrics), ops=gated_ops(whole), table=named)


def _without_traces(call: OpTable) -> OpTable:
    """Return a call as one step: TTNN numbers the traces of a process, whichever test they are of.

    A region that is named after a trace would have another name when the test runs alone.
    """
    untraced: list[int | None] = [None] * len(call)
    columns = replace(call.columns, trace=untraced, replay=untraced)
    return replace(call, columns=columns)


def _uneven(profile: Profile) -> str | None:
    counts = [iteration.op_count for iteration in profile.iterations]
    if len(set(counts)) <= 1:
        return None if counts else "no iteration was profiled"
    listed = ", ".join(map(str, counts))
    return f"the iterations ran different numbers of programs: {listed}"


def _middle_iteration(profile: Profile, report: OpTable) -> OpTable | None:
    """Return the rows of an iteration that took the median time, the last of them if several did.

    A report is of all that the process ran. Iterations are its last rows on each chip, if their
    times are those that the profiler told; otherwise the report is of something else.
    """
    times_ns = [iteration.kernel_ns for iteration in profile.iterations]
    chosen = len(times_ns) - 1 - times_ns[::-1].index(median_low(times_ns))
    later = profile.iterations[chosen + 1 :]
    rows_of: dict[int, list[int]] = {}
    for row, device in enumerate(report.columns.device):
        rows_of.setdefault(device, []).append(row)
    kept: list[int] = []
    for chip, programs in profile.iterations[chosen].by_chip.items():
        rows = rows_of.get(chip, [])
        end = max(len(rows) - sum(len(iteration.by_chip.get(chip, ())) for iteration in later), 0)
        rows = rows[max(end - len(programs), 0) : end]
        times = [report.columns.kernel_ns[row] for row in rows]
        if len(times) != len(programs) or any(
            abs(ns - program.kernel_ns) > _ROUNDING_NS
            for ns, program in zip(times, programs, strict=True)
        ):
            return None
        kept += rows
    return replace(report.select(sorted(kept)), windowed=True)


def _categories(table: OpTable, source: Source) -> Iterator[MetricObservation]:
    """Yield the times by category; the whole and the count are known from all iterations."""
    for observed in device_metrics(table, file="report"):
        if observed.metric.is_part_of_kernel_time:
            metric = recorded_metric(observed.metric.name, Kind.TIME, source=source)
            yield MetricObservation(metric, observed.samples)
