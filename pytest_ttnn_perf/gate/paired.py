"""Two versions measured in turns: each round gives one ratio, and drift is in both of its halves.

A change must stand out from how much the rounds differ, by an interval of Student's that holds
with 99 %. A floor of the spread keeps a few lucky, equal rounds from making it tiny.
"""

from __future__ import annotations

from math import exp, expm1, hypot, log, log1p, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY, Policy
from pytest_ttnn_perf.gate.ratios import MAD_TO_SIGMA, MEDIAN_ERROR, mad, t_quantile
from pytest_ttnn_perf.records.metric import Better, Source, median
from pytest_ttnn_perf.records.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.records.metric import Metric
    from pytest_ttnn_perf.records.observation import Limits


class Round(NamedTuple):
    """What two processes, one right after the other, measured of one metric.

    ``before_first`` says which of them was the first: a machine that drifts is worse for the other.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    before_first: bool


@dataclass(frozen=True, slots=True)
class Paired:
    """A verdict on rounds, with the interval that its change lies in.

    ``low`` and ``high`` are fractions as the verdict's ``change`` is one: plus is worse. None where
    a metric is not compared by ratio.
    """

    verdict: Verdict
    low: float | None = None
    high: float | None = None


#: One-sided. There is no confirm pass: the same code must practically never get a verdict.
_LEVEL: Final = 0.995
#: Rounds that the prior weighs as, as in a baseline.
_PRIOR_WEIGHT: Final = 3
_ROOT_2: Final = sqrt(2)
#: Logarithms beyond this have no exponential; as a change it means "beyond any measure".
_LARGEST_LOG: Final = 700.0


class _Estimate(NamedTuple):
    """Natural logarithms: both sides, the change, and how far it may be off; plus is worse."""

    before: float
    after: float
    change: float
    reach: float


def judge_rounds(
    metric: Metric, rounds: Sequence[Round], limits: Limits, *, policy: Policy = DEFAULT_POLICY
) -> Paired:
    """Judge a time or a throughput whose samples are all above zero, from two rounds on."""
    found = _estimate(metric, rounds, policy)
    limit, gain = _limits(metric, found, limits, policy)
    if found.change > limit:
        outcome = Outcome.REGRESSED
    elif found.change < -gain:
        # The limit it is beyond, which may not be the one for what gets worse.
        outcome, limit = Outcome.IMPROVED, gain
    # As for a baseline, a tolerance above the usual bound is the author's word.
    elif found.reach > log1p(max(policy.too_noisy, limits.tolerance or 0.0)):
        outcome = Outcome.TOO_NOISY
    else:
        outcome = Outcome.WITHIN
    verdict = Verdict(
        metric,
        outcome,
        observed=exp(found.after),
        centre=exp(found.before),
        change=_fraction(found.change),
        limit=_fraction(limit),
        samples=sum(len(taken.after) for taken in rounds),
        sessions=len(rounds),
    )
    low, high = found.change - found.reach, found.change + found.reach
    return Paired(verdict, _fraction(low), _fraction(high))


def _estimate(metric: Metric, rounds: Sequence[Round], policy: Policy) -> _Estimate:
    before = [log(median(taken.before)) for taken in rounds]
    after = [log(median(taken.after)) for taken in rounds]
    changes = [now - then for then, now in zip(before, after, strict=True)]
    weights = _weights([taken.before_first for taken in rounds])
    count = len(rounds)
    change = _weighted(changes, weights)
    mean = sum(changes) / count
    shown = hypot(*(change - mean for change in changes)) / sqrt(count - 1)
    prior = policy.prior_wall if metric.source is Source.WALL else policy.prior_device
    # Two processes differ by the noise of both.
    assumed = max(_ROOT_2 * prior, _within(rounds))
    spread = hypot(sqrt(count - 1) * shown, sqrt(_PRIOR_WEIGHT) * assumed)
    spread /= sqrt(count - 1 + _PRIOR_WEIGHT)
    # The first alone holds for noise of any size; with few rounds that agree it would be a razor.
    reach = max(
        t_quantile(_LEVEL, count - 1) * shown,
        t_quantile(_LEVEL, count - 1 + _PRIOR_WEIGHT) * spread,
    ) * hypot(*weights)
    sign = -1.0 if metric.better is Better.HIGHER else 1.0
    return _Estimate(_weighted(before, weights), _weighted(after, weights), sign * change, reach)


def _weights(before_first: Sequence[bool]) -> list[float]:
    """Return the weight of each round: rounds of either order weigh the same together.

    What drifts evenly is worse for the second of a round: by the same amount in every round, for
    one side in some of them and for the other in the rest. So it cancels, also where one order is
    more frequent by a round.
    """
    first = sum(before_first)
    second = len(before_first) - first
    if not first or not second:
        return [1 / len(before_first)] * len(before_first)
    return [0.5 / first if is_first else 0.5 / second for is_first in before_first]


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True))


def _within(rounds: Sequence[Round]) -> float:
    """Return what the spread of samples leaves in the difference of two medians."""
    return hypot(
        *(
            sum(_error(samples) for samples in side) / len(rounds)
            for side in zip(*((taken.before, taken.after) for taken in rounds), strict=True)
        )
    )


def _error(samples: Sequence[float]) -> float:
    centre = median(samples)
    return MEDIAN_ERROR * MAD_TO_SIGMA * mad(samples, centre) / centre / sqrt(len(samples))


def _limits(
    metric: Metric, found: _Estimate, limits: Limits, policy: Policy
) -> tuple[float, float]:
    """Return the limits for worse and for better.

    A ``max_regression`` lowers the floor and not the interval: a verdict within the noise would be
    one about the machine.
    """
    floor = log1p(policy.floor if limits.tolerance is None else limits.tolerance)
    # Of the smaller side: so it is the same difference whichever side is called the first.
    floor = max(floor, log1p(policy.absolute_floor(metric) / exp(min(found.before, found.after))))
    worse = floor
    if limits.max_regression is not None:
        worse = min(floor, log1p(limits.max_regression))
    return max(found.reach, worse), max(found.reach, floor)


def _fraction(change: float) -> float:
    return expm1(min(change, _LARGEST_LOG))
