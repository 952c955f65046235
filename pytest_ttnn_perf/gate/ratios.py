"""Times and throughputs: compared by ratio, against the noise the baseline has shown."""

from __future__ import annotations

import math
from functools import lru_cache
from math import exp, expm1, hypot, log, log1p, log2, sqrt
from operator import truediv
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.records.metric import Better, Source, median, median_of_sorted
from pytest_ttnn_perf.records.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ttnn_perf.gate.judge import Policy
    from pytest_ttnn_perf.records.baseline import MetricBaseline
    from pytest_ttnn_perf.records.observation import Limits, MetricObservation


#: Makes the MAD of normal noise an estimate of its standard deviation: 1/Φ⁻¹(3/4).
MAD_TO_SIGMA: Final = 1.4826
#: Standard error of a median over that of a mean, for normal noise: √(π/2).
MEDIAN_ERROR: Final = 1.2533


def mad(values: Iterable[float], centre: float) -> float:
    """Return the median absolute deviation from ``centre``, unscaled."""
    return median([abs(value - centre) for value in values])


@lru_cache(maxsize=256)
def t_quantile(probability: float, degrees: int) -> float:
    """Return the value that a t variable stays below with ``probability`` (0.5 to 1, open).

    Newton's method, held in a bracket, on the exact distribution function, which is a finite sum
    for whole ``degrees``; correct to about 1e-12.
    """
    if not 0.5 < probability < 1 or degrees < 1:
        message = f"no quantile for probability {probability}, degrees of freedom {degrees}"
        raise ValueError(message)
    # One degree has a closed form, and more degrees lie below it.
    low, high = 0.0, math.tan(math.pi * (probability - 0.5))
    value = high
    for _ in range(200):
        excess = _distribution(value, degrees) - probability
        low, high = (low, value) if excess > 0 else (value, high)
        density = _density(value, degrees)
        newton = value - excess / density if density else low
        # Far out, the density says nothing of where the quantile lies: halve instead.
        after = newton if low < newton < high else (low + high) / 2
        if abs(after - value) < 1e-14 * max(1.0, value):
            break
        value = after
    return value


def _density(t: float, degrees: int) -> float:
    log_scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    scale = math.exp(log_scale) / math.sqrt(degrees * math.pi)
    return float(scale * (1 + t * t / degrees) ** (-(degrees + 1) / 2))


def _distribution(t: float, degrees: int) -> float:
    """Abramowitz and Stegun 26.7.3 and 26.7.4: P(T < t) for t > 0."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine_squared = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees, 2):
        term *= cosine_squared * (k - 1) / k
        total += term
    inside = math.sin(angle) * total
    return 0.5 + ((angle + inside) / math.pi if odd else inside / 2)


#: Sessions that the prior weighs as.
_PRIOR_WEIGHT: Final = 3
_ROOT_OF_WEIGHT: Final = sqrt(_PRIOR_WEIGHT)
#: From here on the MAD of sessions says something the standard deviation does not.
_SESSIONS_FOR_MAD: Final = 5
#: Logarithms beyond this have no exponential; as a change it means "beyond any measure".
_LARGEST_LOG: Final = 700.0
_LOG_2: Final = log(2)
#: What every metric asks for: on Python 3.11 a member takes ten times as long to get by its class.
_HIGHER: Final = Better.HIGHER
_WALL: Final = Source.WALL
_WITHIN: Final = Outcome.WITHIN


class Band(NamedTuple):
    """The baseline's centre and how far from it a measurement may be; natural logarithms.

    ``limit`` bounds what is worse; ``gain`` bounds what is better, which no ``max_regression``
    narrows: noise must not become the new centre. ``noise`` is the part of both that follows from
    the spread alone: without the furthest sessions, any floor or cap.
    """

    centre: float
    limit: float
    gain: float
    noise: float


def judge_ratio(
    observed: MetricObservation, baseline: MetricBaseline, *, policy: Policy
) -> Verdict:
    """Judge a time or a throughput whose samples are all above zero.

    Worse or better only if all confirm passes agree: one measurement within the limit clears a
    suspect, and one that is no better is enough to doubt a gain.
    """
    limits, samples = observed.limits, observed.samples
    centre, limit, gain, noise = band_of(baseline, limits, policy=policy)
    sign = -1.0 if baseline.metric.better is _HIGHER else 1.0
    value = median(samples)
    change = sign * (log(value) - centre)
    confirmed: tuple[float, ...] = ()
    if observed.confirmations:
        confirmed = tuple(map(median, observed.confirmations))
        again = [(sign * (log(value) - centre), value) for value in confirmed]
        change, value = _agreed((change, value), again, limit=limit, gain=gain)
    if change > limit:
        outcome = Outcome.REGRESSED
    elif change < -gain:
        # The limit it is beyond, which is not the one for what gets worse.
        outcome, limit = Outcome.IMPROVED, gain
    # A tolerance above the usual bound is the author's word that such a change is fine.
    elif noise > log1p(policy.too_noisy) and noise > log1p(limits.tolerance or 0.0):
        outcome, limit = Outcome.TOO_NOISY, max(limit, noise)
    else:
        outcome = _WITHIN
    stored = len(baseline.sessions)
    return Verdict(
        observed.metric,
        outcome,
        None,  # no reason but the numbers
        None,
        value,
        exp(centre),
        expm1(change if change < _LARGEST_LOG else _LARGEST_LOG),
        expm1(limit if limit < _LARGEST_LOG else _LARGEST_LOG),
        stored == 1,
        len(samples),
        stored - baseline.since,
        confirmed,
    )


def _agreed(
    first: tuple[float, float],
    again: Sequence[tuple[float, float]],
    *,
    limit: float,
    gain: float,
) -> tuple[float, float]:
    """Return the change, and its value, that a suspect or a gain is left with when confirmed.

    The first one if it is within its limits, or if every confirm pass is beyond them on the same
    side. Otherwise the one nearest to the baseline, held to the limits: what contradicts itself
    is neither.
    """
    worse = first[0] > 0
    if -gain <= first[0] <= limit or all(
        change > limit if worse else change < -gain for change, _ in again
    ):
        return first
    change, value = min((first, *again), key=lambda pair: abs(pair[0]))
    return max(-gain, min(change, limit)), value


def centre_of(baseline: MetricBaseline) -> float:
    """Return the value that new measurements are compared with, in the metric's unit."""
    medians = [session.median for session in baseline.current]
    if not baseline.metric.compared_by_ratio:
        return median(medians)
    return exp(median(map(log2, medians)) * _LOG_2)


def band_of(baseline: MetricBaseline, limits: Limits, *, policy: Policy) -> Band:
    """Return where the baseline's centre is and how far from it is too far."""
    metric, since = baseline.metric, baseline.since
    medians, mads, counts = zip(*baseline.sessions)  # noqa: B905 (triples all)
    # To base 2, which costs half as much; turned natural below. Sorted once: every median then
    # finds its values in order, or nearly so, and the furthest sessions are at the ends.
    current = sorted(map(log2, medians[since:]))
    middle = median_of_sorted(current)
    centre = middle * _LOG_2
    residuals = [value - middle for value in current]
    if since:
        before = sorted(map(log2, medians[:since]))
        middle = median_of_sorted(before)
        residuals += [value - middle for value in before]
        residuals.sort()
    # What the spread within a session leaves in its median.
    within = MEDIAN_ERROR * MAD_TO_SIGMA * sum(map(truediv, mads, medians)) / len(medians)
    alike = counts.count(counts[0]) == len(counts)
    within /= sqrt(counts[0] if alike else median_of_sorted(sorted(counts)))
    on_device = metric.source is not _WALL
    spread = _spread(residuals, within, policy.prior_device if on_device else policy.prior_wall)
    spread = policy.least_noise if policy.least_noise > spread else spread
    noise = t_quantile(policy.level, len(medians) + 2) * spread * sqrt(1 + 1 / len(current))
    floor = policy.floor if limits.tolerance is None else limits.tolerance
    if on_device:
        floor = max(floor, policy.absolute_floor(metric) / exp(centre))
    least = log1p(floor)
    least = noise if noise > least else least
    high = _clear_of(residuals[-1], residuals[-2:][0], least, policy)
    low = _clear_of(-residuals[0], -residuals[:2][-1], least, policy)
    limit, gain = (low, high) if metric.better is _HIGHER else (high, low)
    if limits.max_regression is not None:
        limit = min(limit, log1p(limits.max_regression))
    return Band(centre, limit, gain, noise)


def _clear_of(furthest: float, second: float, least: float, policy: Policy) -> float:
    """Return the limit on one side, clear of the two furthest sessions there (to base 2).

    Where sessions come in two kinds, a fast and a slow one, the spread stays small as long as one
    kind is rare; the next session of that kind is still no change.

    A baseline keeps its sessions. So one far session alone counts up to a small bound: without
    one, it would hide a regression of its own size for ever. Two that are as far count up to the
    bound of TOO_NOISY, which therefore looks at the spread alone.
    """
    reach = policy.guard * _LOG_2
    limit = least
    if furthest * reach > limit:
        limit = max(limit, min(furthest * reach, log1p(policy.guard_of_one)))
        limit = max(limit, min(second * reach, log1p(policy.too_noisy)))
    return limit


def _spread(residuals: Sequence[float], within: float, prior: float) -> float:
    """Return the standard deviation to expect between sessions, as a fraction.

    What the sessions show (``residuals`` to base 2), shrunk towards a prior that weighs as three
    sessions; never below what the spread within a session leaves.
    """
    prior = prior if prior > within else within
    count = len(residuals)
    if count == 1:
        return prior
    # Root of the sum of squares about the mean, which lies near zero: residuals are deviations
    # from a median already.
    root, mean = hypot(*residuals), sum(residuals) / count
    squares = root * root - count * mean * mean
    shown = sqrt(squares) * _LOG_2 if squares > 0 else 0.0
    if count >= _SESSIONS_FOR_MAD:
        typical = MAD_TO_SIGMA * median_of_sorted(sorted(map(abs, residuals))) * _LOG_2
        typical *= sqrt(count - 1)
        shown = typical if typical > shown else shown
    spread = hypot(shown, prior * _ROOT_OF_WEIGHT) / sqrt(count + _PRIOR_WEIGHT - 1)
    return spread if spread > within else within
