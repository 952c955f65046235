"""Where a plan starts: what a step takes now, as a capture or a run record tells it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import NANOSECONDS_IN
from pytest_ttnn_perf.analysis.checklist.plan import Start
from pytest_ttnn_perf.records.finding import ModelKind
from pytest_ttnn_perf.records.metric import (
    KERNEL_TIME,
    THROUGHPUT_TIME,
    WALL_TIME,
    median,
    metric_in,
)
from pytest_ttnn_perf.records.ops import CALLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.observation import MetricObservation, Observation
    from pytest_ttnn_perf.records.settings import RuleSettings


def start_of(subject: Subject, settings: Mapping[str, RuleSettings]) -> Start | None:
    """Return what a step of a region takes; None where nothing has a time."""
    if subject.ops is not None and subject.ops.devices:
        return _of_ops(subject, settings)
    if subject.kernels is not None:
        from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of

        kernels = kernels_of(subject.kernels)
        if not isinstance(kernels, str):
            return Start(subject.region, sum(kernel.time_ns for kernel in kernels))
    return None


def _of_ops(subject: Subject, settings: Mapping[str, RuleSettings]) -> Start | None:
    from pytest_ttnn_perf.analysis.checklist.bottleneck import bottleneck_of, model_kind
    from pytest_ttnn_perf.analysis.checklist.op_times import gaps_of
    from pytest_ttnn_perf.analysis.checklist.savings import step_ns
    from pytest_ttnn_perf.analysis.checklist.waiting import told_gaps_ns
    from pytest_ttnn_perf.analysis.ops.ideal import ideal_of_step
    from pytest_ttnn_perf.analysis.ops.regions import step_of

    assert subject.ops is not None
    step = step_of(subject.ops)
    kernels, gaps = step_ns(step), told_gaps_ns(subject) or 0.0
    if not kernels:
        return None
    kind = model_kind(subject.ops, bottleneck_of(subject, settings), subject.report)
    told = gaps_of(subject)
    return Start(
        subject.region,
        kernels + gaps,
        ideal_of_step(step),
        gaps,
        replayed=not isinstance(told, str) and told.replayed,
        waits=kind is ModelKind.HOST_BOUND,
    )


#: Findings on what a call takes by the clock, beyond the kernels.
_OF_CALLS: Final = frozenset({"TTP402", "TTP404", "TTP502", "TTP503"})
_BY_CLOCK: Final = (WALL_TIME, THROUGHPUT_TIME)


class Aim(NamedTuple):
    """A target that a test has for a metric: what it is now, and ``ns``, what it should be."""

    metric: str
    now_ns: float
    ns: float
    of_kernels: bool


def starts_of_test(observation: Observation, arch: str | None) -> Iterator[Start]:
    """Yield what a step of each region of a recorded test takes, where the record tells it."""
    told = [one for one in observation.findings if one.stands and one.saving_ns is not None]
    groups = observation.ops if observation.ops and observation.ops.kernel_time != CALLS else None
    regions = dict.fromkeys((*(groups.regions if groups else ()), *(one.region for one in told)))
    waits = observation.model_kind == ModelKind.HOST_BOUND.value
    for region in regions:
        own = [one for one in told if one.region == region]
        steps = [one.step_ns for one in own if one.step_ns is not None]
        now = max([*steps, _time_ns(observation, metric_in(region, KERNEL_TIME)) or 0.0])
        if any(one.code in _OF_CALLS and not one.at_most for one in own):
            clock = (_time_ns(observation, metric_in(region, name)) for name in _BY_CLOCK)
            now = max(now, next(filter(None, clock), 0.0))
        if now:
            ideal = None
            if groups is not None:
                from pytest_ttnn_perf.analysis.ops.ideal import ideal_of_groups

                ideal = ideal_of_groups(groups.of(region), arch)
            yield Start(region, now, ideal, waits=waits)


def aims_of(observation: Observation, region: str) -> Iterator[Aim]:
    """Yield the targets that a test has for the times of a region."""
    for name in (*_BY_CLOCK, KERNEL_TIME):
        metric = metric_in(region, name)
        now = _time_ns(observation, metric)
        if now is None:
            continue
        observed = observation.metrics[metric]
        if observed.limits.target is not None:
            target = observed.limits.target * _scale(observed)
            yield Aim(metric, now, target, name == KERNEL_TIME)


def _time_ns(observation: Observation, metric: str) -> float | None:
    observed = observation.metrics.get(metric)
    if observed is None or observed.metric.unit not in NANOSECONDS_IN:
        return None
    samples = [sample for sample in observed.samples if isfinite(sample) and sample > 0]
    return median(samples) * _scale(observed) if samples else None


def _scale(observed: MetricObservation) -> float:
    return NANOSECONDS_IN[observed.metric.unit]
