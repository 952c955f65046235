"""A sweep in words: a table of its points, and the best of them."""

from __future__ import annotations

from itertools import combinations
from math import hypot, inf, isfinite, log, log1p, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.text import NANOSECONDS_IN, counted, digits, quantity
from pytest_ttnn_perf.core.verdict import (
    AxisEffect,
    Outcome,
    PointResult,
    PointState,
    Role,
    Sweep,
    SweepMetric,
)
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY, representative
from pytest_ttnn_perf.gate.ratios import MAD_TO_SIGMA, MEDIAN_ERROR, mad
from pytest_ttnn_perf.report.tables import Fit, Line, format_value, table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.observation import JudgedTest, MetricObservation, Observation
    from pytest_ttnn_perf.core.ops import OpGroups
    from pytest_ttnn_perf.report.tables import Table


# The points of a sweep side by side: the best of them, and whether each axis took effect.


class Measured(NamedTuple):
    """A value, and its standard error as a fraction of it."""

    value: float
    error: float

    def exceeds(self, other: Measured) -> bool:
        """Tell whether this is more than another by more than noise."""
        if not (self.value > 0 and other.value > 0):
            return self.value > other.value
        reach = DEFAULT_POLICY.deviations * hypot(self.error, other.error)
        return log(self.value / other.value) > max(reach, log1p(DEFAULT_POLICY.floor))


def measured(judged: JudgedTest, name: str) -> Measured | None:
    """Return the value of a metric with its noise; None without usable samples.

    Points are measured one after another, and a machine is not the same all the time: the noise
    between runs is part of it, beside what the samples show. It is what the gate assumes, or more
    where the runs of the baseline show more.
    """
    observed = judged.observation.metrics.get(name)
    if observed is None or not observed.samples or not all(map(isfinite, observed.samples)):
        return None
    metric, samples = observed.metric, observed.samples
    value = representative(metric, samples)
    if not metric.compared_by_ratio:
        return Measured(value, 0.0)
    if value <= 0:
        return None
    policy = DEFAULT_POLICY
    within = MEDIAN_ERROR * MAD_TO_SIGMA * mad(samples, value) / value / sqrt(len(samples))
    by_clock = metric.source is Source.WALL
    error = hypot(within, policy.prior_wall if by_clock else policy.prior_device)
    verdict = next((each for each in judged.verdicts if each.metric.name == name), None)
    if verdict is None or verdict.centre is None:
        return Measured(value, error)
    if verdict.confirmed and verdict.observed:
        value = verdict.observed  # all that was measured, as the gate sees it
    if verdict.limit and not verdict.provisional and observed.limits.tolerance is None:
        error = max(error, log1p(verdict.limit) / policy.deviations)
    return Measured(value, error)


def sweeps_of(tests: Iterable[JudgedTest]) -> Iterator[Sweep]:
    """Yield the sweeps that tests of a run are points of; with other axes, it is another sweep."""
    found: dict[tuple[str, tuple[str, ...]], list[JudgedTest]] = {}
    for judged in tests:
        point = judged.observation.sweep
        if point is not None:
            found.setdefault((point.sweep, tuple(point.axes)), []).append(judged)
    for (test, axes), points in found.items():
        yield _sweep(test, _in_order(points, axes))


def _axes(judged: JudgedTest) -> Mapping[str, Scalar]:
    return judged.observation.sweep.axes if judged.observation.sweep else {}


def _in_order(tests: Sequence[JudgedTest], axes: Sequence[str]) -> Sequence[JudgedTest]:
    """Return points with their numbers rising; several processes tell them in any order."""
    order: dict[str, list[Scalar]] = {}
    for axis in axes:
        values = list(dict.fromkeys(_axes(judged)[axis] for judged in tests))
        if all(isinstance(value, (int, float)) for value in values):
            values.sort(key=lambda value: float(value or 0))
        order[axis] = values

    def places(judged: JudgedTest) -> list[int]:
        return [order[axis].index(_axes(judged)[axis]) for axis in axes]

    return sorted(tests, key=places)


def _sweep(test: str, tests: Sequence[JudgedTest]) -> Sweep:
    observations = [judged.observation for judged in tests if not _ended(judged.observation)]
    metrics = tuple(_metrics(observations))
    numbers = {judged.observation.test: _numbers(judged, metrics) for judged in tests}
    points = tuple(_point(judged, numbers[judged.observation.test]) for judged in tests)
    measured_roles = {role for values in numbers.values() for role in values}
    by = (role for role in (Role.THROUGHPUT, Role.LATENCY) if role in measured_roles)
    best_by = next(by, None)
    first = tests[0].observation.sweep
    return Sweep(
        test,
        axes=tuple(_effects(tests)),
        metrics=metrics,
        points=points,
        best=_sweeps_best(points, numbers, best_by) if best_by else (),
        best_by=best_by,
        require=first.require if first else {},
    )


def _ended(observation: Observation) -> str | None:
    """Return why a test did not come to its end; None if it did."""
    return observation.out_of_memory or observation.error or observation.lost


#: The kind of a role, and what stands for it where a test records it, the first there is.
_ROLES: Final = {
    Role.THROUGHPUT: (Kind.THROUGHPUT, ("samples_per_second",)),
    Role.LATENCY: (Kind.TIME, ("wall_time", "sim_time", "device_kernel_time")),
    Role.MEMORY: (Kind.BYTES, ("dram_added_bytes", "l1_added_bytes")),
    Role.ACCURACY: (Kind.ACCURACY, ("pcc",)),
}
#: How tokens of all users are counted: a sweep over users is about those of the machine.
_ALL_TOKENS: Final = "_tokens_per_second"
_RATE: Final = Metric("samples_per_second", "samples/s", Better.HIGHER, Kind.THROUGHPUT)


def _metrics(observations: Sequence[Observation]) -> Iterator[SweepMetric]:
    """Yield the metric that stands for each role, where a point has one."""
    known: dict[str, MetricObservation] = {}
    for observation in observations:
        for name, observed in observation.metrics.items():
            if observed.samples:
                known.setdefault(name, observed)
    for role, (kind, usual) in _ROLES.items():
        names = [name for name, observed in known.items() if observed.metric.kind is kind]
        gated = [name for name in names if known[name].gated]
        tokens = [name for name in names if name.endswith(_ALL_TOKENS)]
        recorded = [name for name in usual if name in names]
        chosen = next(iter((*recorded, *tokens, *gated)), None)
        if chosen is not None:
            metric = known[chosen].metric
        elif role is Role.THROUGHPUT and any(map(_batch, observations)):
            metric = _RATE  # follows from the time of a batch
        else:
            continue
        yield SweepMetric(role, metric.name, metric.unit, metric.better, metric.kind)


def _batch(observation: Observation) -> float:
    batch = observation.environment.get("batch")
    return batch if isinstance(batch, (int, float)) else 0


def _numbers(judged: JudgedTest, metrics: Sequence[SweepMetric]) -> Mapping[Role, Measured]:
    """Return what was measured of each role at one point."""
    observation = judged.observation
    if _ended(observation):
        return {}
    found: dict[Role, Measured] = {}
    for each in metrics:
        number = measured(judged, each.name)
        if number is not None:
            found[each.role] = number
    time, batch = found.get(Role.LATENCY), _batch(observation)
    if Role.THROUGHPUT not in found and time is not None and batch:
        unit = next(each.unit for each in metrics if each.role is Role.LATENCY)
        seconds = time.value * NANOSECONDS_IN.get(unit, inf) / 1e9
        if isfinite(seconds):
            found[Role.THROUGHPUT] = Measured(batch / seconds, time.error)
    return found


def _point(judged: JudgedTest, numbers: Mapping[Role, Measured]) -> PointResult:
    observation = judged.observation
    state = PointState.MEASURED
    if observation.out_of_memory is not None:
        state = PointState.OUT_OF_MEMORY
    elif _ended(observation):
        state = PointState.FAILED
    return PointResult(
        observation.test,
        _axes(judged),
        state,
        {role.value: number.value for role, number in numbers.items()},
        _ended(observation),
        tuple(_unmet(judged)) if state is PointState.MEASURED else (),
    )


def _unmet(judged: JudgedTest) -> Iterator[str]:
    """Yield what keeps a point from being the best."""
    observation = judged.observation
    yield from observation.problems
    for verdict in judged.verdicts:
        failed = verdict.outcome in {Outcome.REGRESSED, Outcome.NO_DATA}
        if failed and verdict.metric.kind is Kind.ACCURACY:
            yield f"{verdict.metric.name} is {verdict.outcome.value}"
    required = observation.sweep.require if observation.sweep else {}
    for name, bound in required.items():
        number = measured(judged, name)
        if number is None:
            yield f"{name} was not measured"
            continue
        metric = observation.metrics[name].metric
        limit = quantity(bound, unit=metric.unit) if isinstance(bound, str) else bound
        if limit is None:
            yield f"{name} cannot be compared with {bound}"
        elif metric.better is Better.HIGHER and not number.value >= limit:
            yield f"{name} below {bound}"
        elif metric.better is Better.LOWER and not number.value <= limit:
            yield f"{name} above {bound}"
        elif metric.better is Better.EQUAL and number.value != limit:
            yield f"{name} not {bound}"


def _sweeps_best(
    points: Sequence[PointResult],
    numbers: Mapping[str, Mapping[Role, Measured]],
    role: Role,
) -> tuple[str, ...]:
    """Return the points that no other exceeds by more than noise, of those that may be best."""
    able = {
        point.test: numbers[point.test][role]
        for point in points
        if not point.unmet and role in numbers[point.test]
    }
    if not able:
        return ()
    if role is Role.LATENCY:
        least = min(able.values())
        near = [test for test, value in able.items() if not value.exceeds(least)]
        return tuple(sorted(near, key=lambda test: able[test].value))
    most = max(able.values())
    near = [test for test, value in able.items() if not most.exceeds(value)]
    return tuple(sorted(near, key=lambda test: -able[test].value))


def _effects(tests: Sequence[JudgedTest]) -> Iterator[AxisEffect]:
    """Yield for each axis whether points that differ in it alone differ in anything."""
    points = [each for each in tests if not (each.observation.raised or each.observation.lost)]
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
    """Tell whether two points differ in anything that an axis did not tell by itself.

    A throughput proves nothing: it may have been reckoned from the axis. Neither does a fact that
    only repeats the axis.
    """
    one, other = first.observation, second.observation
    if one.out_of_memory is not None or other.out_of_memory is not None:
        return (one.out_of_memory is None) != (other.out_of_memory is None)
    told = (_axes(first)[axis], _axes(second)[axis])
    facts = ((fact, other.facts.get(name)) for name, fact in one.facts.items())
    return (
        one.configuration.first_difference(other.configuration) is not None
        or any(pair[0] != pair[1] and pair != told for pair in facts)
        or _ops(one.ops) != _ops(other.ops)
        or any(
            _moved(first, second, name)
            for name, observed in one.metrics.items()
            if observed.metric.kind is not Kind.THROUGHPUT
            # A first call takes what it takes.
            and (observed.gated or observed.metric.kind is not Kind.TIME)
        )
    )


def _ops(table: OpGroups | None) -> list[tuple[object, ...]] | None:
    """Return what ran, without its times."""
    if table is None:
        return None
    return [
        (each.region, each.signature, each.cores, each.fidelity, each.settings, each.count)
        for each in table.groups
    ]


def _moved(first: JudgedTest, second: JudgedTest, name: str) -> bool:
    """Tell whether a metric differs between two points by more than noise."""
    one, other = measured(first, name), measured(second, name)
    if one is None or other is None:
        return False
    if not first.observation.metrics[name].metric.compared_by_ratio:
        return one.value != other.value
    return one.exceeds(other) or other.exceeds(one)


#: So many points are listed; all are in the record.
_MOST: Final = 40
#: How many points are named where they are a list of their own.
_MOST_NAMED: Final = 6


def sweep_lines(sweep: Sweep) -> Iterator[Line | Table]:
    """Lay out a sweep for a terminal."""
    yield Line(heading(sweep))
    headings, rows = sweep_table(sweep)
    values = range(len(sweep.axes), len(headings) - 1)
    numeric = (
        place
        for place, axis in enumerate(sweep.axes)
        if all(isinstance(value, (int, float)) for value in axis.values)
    )
    fits = [*(Fit() for _ in headings[:-1]), Fit(least=13)]
    yield table_of(headings, rows[:_MOST], right=frozenset({*numeric, *values}), fits=fits)
    if len(rows) > _MOST:
        yield Line(f"... and {len(rows) - _MOST} more points; the run record has them")
    yield from (Line(f"  {text}") for text in sweep_sentences(sweep))
    yield Line("")


def heading(sweep: Sweep) -> str:
    """Say what was swept, and how many points came to what."""
    axes = ", ".join(axis.axis for axis in sweep.axes)
    ended = [
        f"{count} {state.value}"
        for state in (PointState.OUT_OF_MEMORY, PointState.FAILED)
        if (count := sum(point.state is state for point in sweep.points))
    ]
    text = f"sweep {sweep.test} over {axes}: {counted(len(sweep.points), 'point')}"
    return "; ".join([text, *ended])


def sweep_table(sweep: Sweep) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows: the axes, what was measured, and what it amounts to."""
    headings = [axis.axis for axis in sweep.axes]
    columns = [(each.role, each.metric) for each in sweep.metrics]
    headings += [
        metric.unit if metric.kind is Kind.THROUGHPUT and metric.unit else metric.name
        for _, metric in columns
    ]
    largest = {
        role: max((abs(v) for p in sweep.points if (v := p.value(role)) is not None), default=None)
        for role, _ in columns
    }
    rows = []
    for point in sweep.points:
        row = [str(point.axes[axis.axis]) for axis in sweep.axes]
        for role, metric in columns:
            value = point.value(role)
            if value is not None and metric.kind is Kind.THROUGHPUT:
                row.append(digits(value))
            else:
                row.append(format_value(metric, value, beside=largest[role]))
        said = [*(["best"] if point.test in sweep.best else []), *point.unmet]
        measured = point.state is PointState.MEASURED
        rows.append([*row, ", ".join(said) if measured else point.state.value])
    return [*headings, "point"], rows


def sweep_sentences(sweep: Sweep) -> Iterator[str]:
    """Say which point is best, and which axes changed nothing."""
    if len(sweep.points) < 2:
        return  # of one point, nothing
    yield from _best(sweep)
    for axis in sweep.axes:
        if axis.compared and not axis.took_effect:
            yield f"axis {axis.axis}: changed nothing that was observed (TTP013)"


def _best(sweep: Sweep) -> Iterator[str]:
    if sweep.best_by is None:
        yield "best: cannot tell: no point has a throughput or a time"
        return
    required = ", ".join(f"{name} {bound}" for name, bound in sweep.require.items())
    if not sweep.best:
        yield f"best: none: no point meets what is required{f' ({required})' if required else ''}"
        return
    metric = next(each.metric for each in sweep.metrics if each.role is sweep.best_by)
    points = {point.test: point for point in sweep.points}
    best = [points[test] for test in sweep.best[:_MOST_NAMED]]
    named = []
    for point in best:
        axes = " ".join(f"{axis}={value}" for axis, value in point.axes.items())
        named.append(f"{axes} ({format_value(metric, point.value(sweep.best_by))})")
    more = len(sweep.best) - _MOST_NAMED
    named += [f"and {more} more"] if more > 0 else []
    of = f" of those that meet {required}" if required else ""
    alike = ", within noise of each other" if len(sweep.best) > 1 else ""
    yield f"best {sweep.best_by.value}{of}{alike}: {'; '.join(named)}"
