"""Pairs of metrics, and statistics of rounds.

Two versions are measured in turns, in random order. Each round gives one ratio, and what drifts is
in both of its halves. Rounds are judged at looks: after the fourth, and after every later one. A
verdict needs an interval of Student's at a level of its look. All looks together are wrong as often
as one would be, so that looking often is no way to find something.

All changes, limits and standard deviations are natural logarithms: 0.05 is about 5 %.
"""

from __future__ import annotations

import random
from functools import lru_cache
from math import erfc, exp, expm1, hypot, inf, isfinite, log, log1p, pi, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.core.hardware import first_difference
from pytest_ttnn_perf.core.metric import Better, median
from pytest_ttnn_perf.core.observation import (
    NO_LIMITS,
    Limits,
    Outcome,
    Reason,
    Verdict,
    value_of,
)
from pytest_ttnn_perf.core.settings import MIN_ROUNDS
from pytest_ttnn_perf.gate.judging import observed_change_by_op
from pytest_ttnn_perf.gate.ratios import MAD_TO_SIGMA, MEDIAN_ERROR, POLICY, mad, t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import JudgedTest, Observation


# One metric of one test in two runs, or on both sides of a comparison.


class Difference(Struct, frozen=True):
    """A field that differs between two runs; None if it is missing."""

    field: str
    before: Scalar
    after: Scalar


class Reading(Struct, frozen=True):
    """One run's value of a metric; None without a finite number."""

    metric: Metric
    value: float | None


class Pair(Struct, frozen=True):
    """One metric of one test in both runs.

    A run that does not have it has None. ``obstacle`` forbids comparing the two.
    """

    test: str
    metric: str
    before: Reading | None
    after: Reading | None
    obstacle: Difference | None = None

    @property
    def unit(self) -> str | None:
        units = {reading.metric.unit for reading in (self.before, self.after) if reading}
        return units.pop() if len(units) == 1 else None

    @property
    def values(self) -> tuple[float, float] | None:
        if self.obstacle or self.before is None or self.after is None:
            return None
        before, after = self.before.value, self.after.value
        return None if before is None or after is None else (before, after)

    @property
    def change(self) -> float | None:
        """Relative change (0.05 = 5 % more); None from zero."""
        if self.values is None:
            return None
        before, after = self.values
        if before == after:
            return 0.0
        change = (after - before) / abs(before) if before else inf
        return change if isfinite(change) else None


def pairs_of(before: JudgedTest, after: JudgedTest) -> list[Pair]:
    """Join two observations of a test, metric by metric."""
    first, second = before.observation, after.observation
    differs = first_difference(first.setting, second.setting)
    obstacle = _other_hardware(first, second) or (Difference(*differs) if differs else None)
    pairs = []
    for name in dict.fromkeys([*first.metrics, *second.metrics]):
        then, now = (_reading(side, name) for side in (before, after))
        in_the_way = (obstacle or _other_metric(then.metric, now.metric)) if then and now else None
        pairs.append(Pair(first.test, name, then, now, in_the_way))
    return pairs


def by_op_of(first: Observation, second: Observation) -> str | None:
    return None if _other_hardware(first, second) else observed_change_by_op(first, second)


def _reading(judged: JudgedTest, name: str) -> Reading | None:
    observed = judged.observation.metrics.get(name)
    if observed is None:
        return None
    own = (verdict for verdict in judged.verdicts if verdict.metric.name == name)
    return Reading(observed.metric, value_of(observed, next(own, None)))


def _other_hardware(first: Observation, second: Observation) -> Difference | None:
    before, after = first.hardware, second.hardware
    if before is None or after is None or before.key == after.key:
        return None
    return Difference("hardware", before.key, after.key)


def _other_metric(before: Metric, after: Metric) -> Difference | None:
    part = before.differs_from(after)
    if part:
        return Difference(part, before.part(part), after.part(part))
    if before.source is not after.source:
        return Difference("source", before.source.value, after.source.value)
    return None


# Rounds.


class Round(NamedTuple):
    """Samples of one metric from two processes, one right after the other.

    ``before_first`` says which of them was the first: it may be faster for that alone.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    before_first: bool


#: Fewer rounds are judged only if there are no more: three leave an interval that is too wide.
_FIRST_LOOK: Final = 4
#: Rounds of which half have either order.
_BLOCK: Final = 10
#: The step of the grid for the walk, whose own steps have a standard deviation of 1.
_GRID: Final = 0.5


class Plan(NamedTuple):
    """The most ``rounds``, and the ``comparisons`` that share one error rate.

    ``seed`` decides which version is measured first in each round.
    """

    rounds: int
    seed: int = 0
    comparisons: int = 1

    def looks(self, done: int | None = None) -> range:
        """Return the rounds of the looks, up to the last one.

        >>> [[*Plan(6).looks()], [*Plan(3).looks()], [*Plan(20).looks(done=3)]]
        [[4, 5, 6], [3], [3]]
        """
        last = self.rounds if done is None else done
        return range(min(_FIRST_LOOK, last), last + 1)

    def orders(self) -> list[bool]:
        """Return for each round whether the version before is measured first.

        Half of every ten rounds have either order, in a random arrangement: any pattern that the
        machine repeats would coincide with a regular one. The first three have both orders, and the
        first of all is the version after: its settings and its tests are those of both sides.
        """
        chance, orders = random.Random(self.seed), list[bool]()
        while len(orders) < self.rounds:
            block = [True] * (_BLOCK // 2) + [False] * (_BLOCK // 2)
            while len(set(block[:MIN_ROUNDS])) == 1:
                chance.shuffle(block)
            orders += block
        return [each is not orders[0] for each in orders[: self.rounds]]

    def levels(self, level: float, done: int) -> tuple[float, ...]:
        """Return one-sided levels of looks up to ``done``, together ``level`` at most."""
        looks = self.looks(done)
        return _levels_of_looks(level, looks[0], max(self.rounds, done))[: len(looks)]


@lru_cache(maxsize=32)
def _levels_of_looks(level: float, first: int, rounds: int) -> tuple[float, ...]:
    """Return the levels of looks that are wrong with probability ``level`` together.

    Each look may be the first that is wrong with a probability in proportion to its new rounds
    (Lan and DeMets). The change divided by its error is a walk with a normal step for each degree
    of freedom, so that estimated errors of early looks have less in common with those of later
    ones. What has not crossed a bound yet is a density on a grid below it, integrated by Simpson's
    rule, which gives the next bound.
    """
    found: list[float] = []
    mass = [(0.0, 1.0)]
    for look in range(first, rounds + 1):
        degrees = look - 2
        steps, share = (degrees, look) if look == first else (1, 1)
        low, high = 0.0, 10 * sqrt(degrees)
        for _ in range(40):  # until a bound is as exact as the grid makes it
            bound = (low + high) / 2
            crossed = sum(part * beyond(bound - place, sqrt(steps)) for place, part in mass)
            low, high = (bound, high) if crossed > level * share / rounds else (low, bound)
        found.append(beyond(bound, sqrt(degrees)))
        count = int((bound + 4 * sqrt(degrees)) / _GRID)
        below = [(bound - _GRID * n, (4 if n % 2 else 2 if n else 1) / 3) for n in range(count)]
        scale = _GRID / sqrt(2 * pi * steps)
        mass = [
            (at, simpson * scale * sum(p * exp(-((at - x) ** 2) / (2 * steps)) for x, p in mass))
            for at, simpson in below
        ]
    return tuple(found)


#: The word for metrics that are undecided after all rounds.
INCONCLUSIVE: Final = "INCONCLUSIVE"


class Comparison(Struct, frozen=True):
    """A verdict on rounds, and the interval of its change.

    ``low`` and ``high`` are fractions, plus is worse; None where a metric is not compared by ratio.
    The verdict rests on the first ``rounds`` of the values ``before`` and ``after``.
    """

    verdict: Verdict
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    test: str = ""
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    obstacle: Difference | None = None
    by_op: str | None = None
    limits: Limits = NO_LIMITS

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome

    @property
    def is_undecided(self) -> bool:
        return self.verdict.reason is Reason.UNDECIDED

    @property
    def ends_as_read(self) -> tuple[float, float] | None:
        """The interval as read from two values, the lower end first."""
        low, high = map(self.verdict.metric.as_read, (self.low, self.high))
        return None if low is None or high is None else (min(low, high), max(low, high))

    @property
    def word(self) -> str:
        return INCONCLUSIVE if self.is_undecided else self.outcome.value


#: The chance that any metric of a command gets a verdict without having changed.
_FALSE_ALARM: Final = 0.005
#: The chance that a change is called excluded, of each comparison. It is that of the command too:
#: one that has nothing to report would have to be wrong about each metric that has changed.
_FALSE_ALL_CLEAR: Final = 0.05
#: WITHIN means that a change of this many floors, or of the usual floors, is excluded: 3 %.
_EXCLUDED_FLOORS: Final = 1.5
#: Logarithms beyond this have no exponential; as a change it means "beyond any measure".
_LARGEST_LOG: Final = 700.0


def judge_rounds(
    metric: Metric,
    rounds: Sequence[Round],
    limits: Limits,
    *,
    plan: Plan,
) -> Comparison:
    """Judge a time or a throughput by three rounds or more.

    All samples are above zero. A decision of one look stays, whatever later rounds would say.
    """
    done = len(rounds)
    alarms = plan.levels(_FALSE_ALARM / 2 / plan.comparisons, done)
    all_clears = plan.levels(_FALSE_ALL_CLEAR, done)
    for look, alarm, all_clear in zip(plan.looks(done), alarms, all_clears, strict=True):
        found = estimate(metric, rounds[:look])
        noise, reach = found.reach(alarm), found.reach(all_clear)
        floor = POLICY.floor if limits.tolerance is None else limits.tolerance
        # It lowers the floor and not the interval: a verdict within the noise is about the machine.
        worse = floor if limits.max_regression is None else min(floor, limits.max_regression)
        outcome, limit = Outcome.TOO_NOISY, log1p(_EXCLUDED_FLOORS * max(floor, POLICY.floor))
        if found.change > max(noise, log1p(worse)):
            outcome, limit = Outcome.REGRESSED, max(noise, log1p(worse))
        elif found.change < -max(noise, log1p(floor)):
            # The limit it is beyond, which may not be the one for what gets worse.
            outcome, limit = Outcome.IMPROVED, max(noise, log1p(floor))
        elif abs(found.change) + reach < limit:
            outcome = Outcome.WITHIN
        if outcome is not Outcome.TOO_NOISY:
            break
    verdict = Verdict(
        metric,
        outcome,
        Reason.UNDECIDED if outcome is Outcome.TOO_NOISY else None,
        observed=exp(found.after),
        centre=exp(found.before),
        change=fraction(found.change),
        limit=fraction(limit),
        samples=found.samples,
        sessions=found.rounds,
    )
    low, high = fraction(found.change - reach), fraction(found.change + reach)
    return Comparison(verdict, low, high, found.rounds)


class Interval(NamedTuple):
    """A change with its interval, as fractions; plus is worse."""

    change: float
    low: float
    high: float
    rounds: int


def interval_of(metric: Metric, rounds: Sequence[Round], *, plan: Plan) -> Interval:
    """Return the interval of a change after the last round.

    It excludes a change as ``judge_rounds`` does: with 95 % at all looks together.
    """
    found = estimate(metric, rounds)
    reach = found.reach(plan.levels(_FALSE_ALL_CLEAR, len(rounds))[-1])
    change, low, high = map(fraction, (found.change, found.change - reach, found.change + reach))
    return Interval(change, low, high, len(rounds))


class Estimate(NamedTuple):
    """Logarithms of both sides and of the change; plus is worse.

    ``spreads`` are two standard deviations of rounds with their degrees of freedom: by the ratios
    alone, and, with more degrees, also by how the machine moved from round to round, which may be
    more.
    """

    before: float
    after: float
    change: float
    spreads: tuple[tuple[float, int], tuple[float, int]]
    weight: float
    rounds: int
    samples: int

    def reach(self, level: float) -> float:
        """Return half the interval at a one-sided ``level``.

        Each of the two spreads has half of it, so that the better one may be taken.
        """
        return self.weight * min(
            t_quantile(1 - level / 2, degrees) * deviation for deviation, degrees in self.spreads
        )


def estimate(metric: Metric, rounds: Sequence[Round]) -> Estimate:
    """Estimate the change of a metric from three rounds or more.

    What makes the second process of a round slower, or an even drift, adds as much to the ratios of
    one order as it takes from those of the other. So it is taken out of the change, and out of how
    much rounds differ.
    """
    before = [log(median(taken.before)) for taken in rounds]
    after = [log(median(taken.after)) for taken in rounds]
    orders = [taken.before_first for taken in rounds]
    # Rounds of either order weigh the same together.
    counts = {order: orders.count(order) for order in set(orders)}
    weights = [1 / len(counts) / counts[order] for order in orders]
    changes = [now - then for then, now in zip(before, after, strict=True)]
    both = [now + then for then, now in zip(before, after, strict=True)]
    shown, degrees = _about_orders(changes, orders), len(rounds) - len(counts)
    moved, more = hypot(shown, _about_line(both)), degrees + len(rounds) - 2
    # Samples leave an error in both medians, and two processes have the noise of both.
    errors = (
        sum(map(_error, side)) / len(rounds)
        for side in zip(*((taken.before, taken.after) for taken in rounds), strict=True)
    )
    least = max(sqrt(2) * POLICY.least_noise, hypot(*errors))
    spreads = (
        (max(shown / sqrt(degrees), least), degrees),
        (max(moved / sqrt(more), least), more),
    )
    sign = -1.0 if metric.better is Better.HIGHER else 1.0
    return Estimate(
        _weighted(before, weights),
        _weighted(after, weights),
        sign * _weighted(changes, weights),
        spreads,
        weight=hypot(*weights),
        rounds=len(rounds),
        samples=sum(len(taken.after) for taken in rounds),
    )


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True))


def _about_orders(changes: Sequence[float], before_first: Sequence[bool]) -> float:
    """Residual norm after removing the order effect."""
    left: list[float] = []
    for order in set(before_first):
        alike = [c for c, first in zip(changes, before_first, strict=True) if first is order]
        mean = sum(alike) / len(alike)
        left += [change - mean for change in alike]
    return hypot(*left)


def _about_line(values: Sequence[float]) -> float:
    """Residual norm after removing a linear drift."""
    middle, mean = (len(values) - 1) / 2, sum(values) / len(values)
    places = [number - middle for number in range(len(values))]
    slope = _weighted(values, places) / sum(place * place for place in places)
    return hypot(*(v - mean - slope * place for v, place in zip(values, places, strict=True)))


def _error(samples: Sequence[float]) -> float:
    centre = median(samples)
    return MEDIAN_ERROR * MAD_TO_SIGMA * mad(samples, centre) / centre / sqrt(len(samples))


def fraction(change: float) -> float:
    """Return a logarithm as a fraction; beyond any measure, the largest."""
    return expm1(min(change, _LARGEST_LOG))


def beyond(gap: float, sd: float) -> float:
    """Return the probability that normal noise exceeds ``gap``."""
    if sd == 0:
        return 1.0 if gap < 0 else 0.0
    return erfc(gap / sd / sqrt(2)) / 2
