"""Sweeps: the best of their points, and the effect of each axis."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 (read with a sweep)
from enum import Enum
from itertools import combinations
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import Omit  # noqa: TC001 (read with a sweep)
from pytest_ttnn_perf.core.hardware import Scalar, first_difference
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source, median, representative
from pytest_ttnn_perf.core.observation import Outcome, value_of
from pytest_ttnn_perf.core.text import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.core.observation import JudgedTest, MetricObservation, Observation
    from pytest_ttnn_perf.core.ops import OpGroup, OpGroups

    #: A value, and the part of it by which one and the same model differs between points.
    Estimate = tuple[float, float]


class Role(Enum):
    """A kind of number that a sweep shows."""

    THROUGHPUT = "throughput"
    LATENCY = "latency"
    COMPILATION = "compilation"
    MEMORY = "memory"
    ACCURACY = "accuracy"


class SweepMetric(Struct, frozen=True):
    """The metric that stands for a role."""

    role: Role
    name: str
    unit: str
    better: Better
    kind: Kind

    @property
    def metric(self) -> Metric:
        return Metric(self.name, self.unit, self.better, self.kind)


class PointResult(Struct, frozen=True):
    """One point. ``values`` are by role, in the unit of its metric.

    ``why`` says what it had no room for, or what it raised. ``unmet`` says which requirements it
    does not meet: such a point is never the best.
    """

    test: str
    axes: Mapping[str, Scalar]
    #: "measured", "out of memory" or "failed".
    state: str
    values: Mapping[str, float] = {}
    why: Omit[str | None] = None
    unmet: Omit[tuple[str, ...]] = ()

    def value(self, role: Role) -> float | None:
        return self.values.get(role.value)


class AxisEffect(Struct, frozen=True):
    """The effect of an axis, by points that differ in nothing else.

    ``compared`` is the number of such pairs: without any, the effect is unknown.
    """

    axis: str
    values: tuple[Scalar, ...]
    compared: int
    took_effect: bool = False


class Sweep(Struct, frozen=True):
    """A sweep with the results of its points.

    ``best`` cannot be told apart from each other in ``best_by``.
    """

    test: str
    axes: tuple[AxisEffect, ...]
    metrics: tuple[SweepMetric, ...]
    points: tuple[PointResult, ...]
    best: tuple[str, ...] = ()
    best_by: Role | None = None
    require: Omit[Mapping[str, Scalar]] = {}


#: Points are measured one after another: by so much a model differs between runs, by its clock.
_NOISE_OF_HOST: Final = 0.07
_NOISE_OF_DEVICE: Final = 0.024
#: What samples show of their median's noise: a limit of 3.4 standard errors, in their MAD.
_OF_MAD: Final = 6.3


def _exceeds(one: Estimate, other: Estimate) -> bool:
    """Return whether a number is more than another by more than noise."""
    return one[0] > other[0] * (1 + max(one[1], other[1]))


def _estimate(judged: JudgedTest, name: str) -> Estimate | None:
    """Return a metric with its noise; None without usable samples."""
    observed = judged.observation.metrics.get(name)
    if observed is None or not observed.samples or not all(map(isfinite, observed.samples)):
        return None
    metric, samples = observed.metric, observed.samples
    value = representative(metric, samples)
    if not metric.compared_by_ratio or value <= 0:
        return None if metric.compared_by_ratio else (value, 0.0)
    usual = _NOISE_OF_HOST if metric.source is Source.WALL else _NOISE_OF_DEVICE
    mad = median(abs(sample - value) for sample in samples)
    noise = max(usual, _OF_MAD * mad / value / sqrt(len(samples)))
    verdict = next((each for each in judged.verdicts if each.metric.name == name), None)
    if verdict is None or verdict.centre is None:
        return value, noise
    value = value_of(observed, verdict) or value
    if verdict.limit and not verdict.provisional and observed.limits.tolerance is None:
        noise = max(noise, verdict.limit)
    return value, noise


def sweeps_of(tests: Iterable[JudgedTest]) -> Iterator[Sweep]:
    """Yield the sweeps of a run, by name and axes."""
    found: dict[tuple[str, tuple[str, ...]], list[JudgedTest]] = {}
    for judged in tests:
        point = judged.observation.sweep
        if point is not None:
            found.setdefault((point.sweep, tuple(point.axes)), []).append(judged)
    for (name, axes), unordered in found.items():
        points = _in_order(unordered, axes)
        observations = [each.observation for each in points if each.observation.reached_end]
        metrics = tuple(_metrics(observations))
        numbers = {each.observation.test: _numbers(each, metrics) for each in points}
        results = []
        for each in points:
            own = each.observation
            state = "measured" if own.reached_end else "failed"
            if own.out_of_memory:
                state = "out of memory"
            values = {role.value: number for role, (number, _) in numbers[own.test].items()}
            unmet = tuple(_unmet(each)) if state == "measured" else ()
            why = own.ended.brief if own.ended and not own.reached_end else None
            results.append(PointResult(own.test, _axes(each), state, values, why, unmet))
        measured = {role for values in numbers.values() for role in values}
        by = next((role for role in (Role.THROUGHPUT, Role.LATENCY) if role in measured), None)
        first = points[0].observation.sweep
        yield Sweep(
            name,
            axes=tuple(_effects(points)),
            metrics=metrics,
            points=tuple(results),
            best=_best(results, numbers, by) if by else (),
            best_by=by,
            require=first.require if first else {},
        )


def _axes(judged: JudgedTest) -> Mapping[str, Scalar]:
    return judged.observation.sweep.axes if judged.observation.sweep else {}


def _in_order(tests: Sequence[JudgedTest], axes: Sequence[str]) -> Sequence[JudgedTest]:
    """Sort points by their axes; several processes report them in any order."""
    order: dict[str, list[Scalar]] = {}
    for axis in axes:
        values = list(dict.fromkeys(_axes(judged)[axis] for judged in tests))
        if all(isinstance(value, (int, float)) for value in values):
            values.sort(key=lambda value: float(value or 0))
        order[axis] = values
    return sorted(tests, key=lambda each: [order[axis].index(_axes(each)[axis]) for axis in axes])


#: The kind of a role, and what stands for it where a test records it, the first there is.
_ROLES: Final = {
    Role.THROUGHPUT: (Kind.THROUGHPUT, ("samples_per_second",)),
    Role.LATENCY: (Kind.TIME, ("wall_time", "sim_time", "device_kernel_time")),
    Role.COMPILATION: (Kind.TIME, ("first_call_time",)),
    Role.MEMORY: (Kind.BYTES, ("dram_added_bytes", "l1_added_bytes")),
    Role.ACCURACY: (Kind.ACCURACY, ("pcc",)),
}
#: What tt-xla alone has: elsewhere the first call says little of the compiler.
_COMPILED: Final = "optimization_level"
#: How tokens of all users are counted: a sweep over users is about those of the machine.
_ALL_TOKENS: Final = "_tokens_per_second"


def _metrics(observations: Sequence[Observation]) -> Iterator[SweepMetric]:
    """Yield the metric of each role, where a point has one."""
    known: dict[str, MetricObservation] = {}
    for observation in observations:
        for name, observed in observation.metrics.items():
            if observed.samples:
                known.setdefault(name, observed)
    compiled = any(_COMPILED in observation.configuration for observation in observations)
    for role, (kind, usual) in _ROLES.items():
        if role is Role.COMPILATION and not (compiled and usual[0] in known):
            continue
        names = [name for name, observed in known.items() if observed.metric.kind is kind]
        recorded = [name for name in usual if name in names]
        tokens = [name for name in names if name.endswith(_ALL_TOKENS)]
        gated = [name for name in names if known[name].gated]
        chosen = next(iter((*recorded, *tokens, *gated)), None)
        if chosen is not None:
            metric = known[chosen].metric
            yield SweepMetric(role, metric.name, metric.unit, metric.better, metric.kind)


def _numbers(judged: JudgedTest, metrics: Sequence[SweepMetric]) -> Mapping[Role, Estimate]:
    """Return the estimate of each role at one point."""
    if not judged.observation.reached_end:
        return {}
    estimates = {each.role: _estimate(judged, each.name) for each in metrics}
    return {role: number for role, number in estimates.items() if number is not None}


def _unmet(judged: JudgedTest) -> Iterator[str]:
    """Yield the reasons why a point cannot be the best."""
    observation = judged.observation
    yield from observation.problems
    for verdict in judged.verdicts:
        failed = verdict.outcome in {Outcome.REGRESSED, Outcome.NO_DATA}
        if failed and verdict.metric.kind is Kind.ACCURACY:
            yield f"{verdict.metric.name} is {verdict.outcome.value}"
    required = observation.sweep.require if observation.sweep else {}
    for name, bound in required.items():
        number = _estimate(judged, name)
        if number is None:
            yield f"{name} was not measured"
            continue
        metric, value = observation.metrics[name].metric, number[0]
        limit = quantity(bound, unit=metric.unit) if isinstance(bound, str) else bound
        if limit is None:
            yield f"{name} cannot be compared with {bound}"
        elif metric.better is not Better.LOWER and value < limit:
            yield f"{name} below {bound}"
        elif metric.better is not Better.HIGHER and value > limit:
            yield f"{name} above {bound}"


def _best(
    points: Sequence[PointResult], numbers: Mapping[str, Mapping[Role, Estimate]], role: Role
) -> tuple[str, ...]:
    """Return the able points that no other exceeds by more than noise."""
    able = {
        point.test: numbers[point.test][role]
        for point in points
        if not point.unmet and role in numbers[point.test]
    }
    if role is Role.LATENCY:
        near = [test for test in able if not _exceeds(able[test], min(able.values()))]
        return tuple(sorted(near, key=lambda test: able[test]))
    near = [test for test in able if not _exceeds(max(able.values()), able[test])]
    return tuple(sorted(near, key=lambda test: able[test], reverse=True))


def _effects(tests: Sequence[JudgedTest]) -> Iterator[AxisEffect]:
    """Yield the effect of each axis on otherwise equal points."""
    points = [
        each for each in tests if each.observation.reached_end or each.observation.out_of_memory
    ]
    for axis in _axes(tests[0]):
        values: dict[Scalar, None] = dict.fromkeys(_axes(each)[axis] for each in tests)
        alike: dict[tuple[Scalar, ...], list[JudgedTest]] = {}
        for each in points:
            others = tuple(value for name, value in _axes(each).items() if name != axis)
            alike.setdefault(others, []).append(each)
        pairs = [pair for line in alike.values() for pair in combinations(line, 2)]
        took_effect = any(_differ(one, other, axis) for one, other in pairs)
        yield AxisEffect(axis, tuple(values), len(pairs), took_effect)


def _differ(first: JudgedTest, second: JudgedTest, axis: str) -> bool:
    """Return whether two points differ in anything but the axis itself.

    A throughput proves nothing, as it may have been reckoned from the axis; neither does a fact
    that only repeats the axis.
    """
    one, other = first.observation, second.observation
    if one.out_of_memory or other.out_of_memory:
        return one.out_of_memory != other.out_of_memory
    of_axis = (_axes(first)[axis], _axes(second)[axis])
    facts = ((fact, other.facts.get(name)) for name, fact in one.facts.items())
    return (
        first_difference(one.configuration, other.configuration) is not None
        or any(pair[0] != pair[1] and pair != of_axis for pair in facts)
        or _ops(one.ops) != _ops(other.ops)
        or any(
            _moved(first, second, name)
            for name, observed in one.metrics.items()
            if observed.metric.kind is not Kind.THROUGHPUT
            # A first call takes what it takes.
            and (observed.gated or observed.metric.kind is not Kind.TIME)
        )
    )


def _ops(table: OpGroups | None) -> list[OpGroup] | None:
    """Return the ops that ran, without their times."""
    untimed = {"total_ns": 0.0, "median_ns": 0.0}
    return None if table is None else [replace(each, **untimed) for each in table.groups]


def _moved(first: JudgedTest, second: JudgedTest, name: str) -> bool:
    one, other = _estimate(first, name), _estimate(second, name)
    if one is None or other is None:
        return False
    return _exceeds(one, other) or _exceeds(other, one)
