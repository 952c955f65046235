"""Where a plan starts: what a step takes now, as a capture or a run record tells it."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import NANOSECONDS_IN
from pytest_ttnn_perf.analysis.checklist.plan import Start
from pytest_ttnn_perf.records.finding import ModelKind
from pytest_ttnn_perf.records.metric import (
    KERNEL_TIME,
    SIM_THROUGHPUT_TIME,
    SIM_TIME,
    THROUGHPUT_TIME,
    WALL_TIME,
    median,
    metric_in,
)
from pytest_ttnn_perf.records.ops import CALLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.observation import MetricObservation, Observation
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.settings import RuleSettings


def start_of(subject: Subject, settings: Mapping[str, RuleSettings]) -> Start | None:
    """Return what a step of a region takes; None where nothing has a time."""
    if subject.ops is not None and subject.ops.devices:
        return _of_ops(subject, settings)
    if subject.kernels is not None:
        from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of

        kernels = kernels_of(subject.kernels)
        if not isinstance(kernels, str):
            now = sum(kernel.time_ns for kernel in kernels)
            return Start(subject.region, now, noise_ns=noise_ns(now))
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
    seen = _differences(subject.ops)
    return Start(
        subject.region,
        kernels + gaps,
        ideal_of_step(step),
        gaps,
        replayed=not isinstance(told, str) and told.replayed,
        waits=kind is ModelKind.HOST_BOUND,
        noise_ns=noise_ns(kernels, seen),
        repeats=seen.repeats,
    )


#: What a step is thought to differ from the next before two have been seen; the replays of real
#: captures differ by up to 0.5 %.
_UNSEEN: Final = 0.01


class Differences(NamedTuple):
    """The variance of a step between its repetitions, and how many differences that rests on."""

    repeats: int = 1
    variance: float = 0.0
    rests_on: int = 0


#: A step alone tells nothing of that.
_ALONE: Final = Differences()


def noise_ns(step_ns: float, seen: Differences = _ALONE) -> float:
    """Return by how much one step differs from the next, as a standard deviation.

    What is thought before counts as one more difference.

    >>> noise_ns(1000.0), round(noise_ns(1000.0, Differences(2, 2.0**2, 99)), 1)
    (10.0, 2.2)
    """
    return sqrt((seen.rests_on * seen.variance + (_UNSEEN * step_ns) ** 2) / (seen.rests_on + 1))


def _differences(table: OpTable) -> Differences:
    """Return how the repetitions of a step differ.

    The variances of its ops add up: they are many, and there are two or three repetitions.
    """
    from pytest_ttnn_perf.analysis.ops.regions import regions_of, slowest_rows

    regions, times = regions_of(table).regions, table.columns.kernel_ns
    steps = [slowest_rows(table, step) for step in regions[0].steps] if regions else []
    if len(steps) < 2 or len({len(rows) for rows in steps}) > 1:
        return _ALONE
    ops = [[times[row] for row in rows] for rows in zip(*steps, strict=True)]
    return Differences(len(steps), sum(map(_variance, ops)), len(ops) * (len(steps) - 1))


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


#: Findings on what a call takes by the clock, beyond the kernels.
_OF_CALLS: Final = frozenset({"TTP402", "TTP404", "TTP502", "TTP503"})
_BY_CLOCK: Final = (WALL_TIME, THROUGHPUT_TIME)
#: The same by the clock of a simulated device.
_SIMULATED: Final = (SIM_TIME, SIM_THROUGHPUT_TIME)


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
            samples = _samples_ns(observation, metric_in(region, KERNEL_TIME))
            count = len(samples)
            seen = Differences(count, _variance(samples), count - 1) if count > 1 else _ALONE
            noise = noise_ns(now, seen)
            yield Start(region, now, ideal, waits=waits, noise_ns=noise, repeats=seen.repeats)


def aims_of(observation: Observation, region: str, *, alone: bool) -> Iterator[Aim]:
    """Yield the targets that a test has for the times of a region.

    Those of whole calls as well where it stands ``alone``: what it saves, they save.
    """
    names = (*_BY_CLOCK, *_SIMULATED, KERNEL_TIME)
    metrics = {metric_in(region, name): name for name in names}
    if alone:
        metrics |= {name: name for name in (*_BY_CLOCK, *_SIMULATED)}
    for metric, name in metrics.items():
        now = _time_ns(observation, metric)
        if now is None:
            continue
        observed = observation.metrics[metric]
        if observed.limits.target is not None:
            target = observed.limits.target * _scale(observed)
            yield Aim(metric, now, target, name == KERNEL_TIME)


def _time_ns(observation: Observation, metric: str) -> float | None:
    samples = _samples_ns(observation, metric)
    return median(samples) if samples else None


def _samples_ns(observation: Observation, metric: str) -> list[float]:
    observed = observation.metrics.get(metric)
    if observed is None or observed.metric.unit not in NANOSECONDS_IN:
        return []
    scale = _scale(observed)
    return [one * scale for one in observed.samples if isfinite(one) and one > 0]


def _scale(observed: MetricObservation) -> float:
    return NANOSECONDS_IN[observed.metric.unit]
