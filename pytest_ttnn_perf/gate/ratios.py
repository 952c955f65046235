"""Times and throughputs, compared by ratio against the baseline's noise."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import groupby
from math import exp, expm1, hypot, log, log1p, log2, sqrt
from operator import itemgetter, truediv
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.core.metric import Better, Source, median, median_of_sorted
from pytest_ttnn_perf.core.observation import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ttnn_perf.core.baseline import MetricBaseline, TestBaseline
    from pytest_ttnn_perf.core.observation import Limits, MetricObservation
    from pytest_ttnn_perf.gate.judge import Policy


#: Makes the MAD of normal noise an estimate of its standard deviation: 1/Φ⁻¹(3/4).
MAD_TO_SIGMA: Final = 1.4826
#: Standard error of a median over that of a mean, for normal noise: √(π/2).
MEDIAN_ERROR: Final = 1.2533


def mad(values: Iterable[float], centre: float) -> float:
    """Return the median absolute deviation from ``centre``, unscaled."""
    return median([abs(value - centre) for value in values])


#: Runs that show how much runs differ; fewer leave it to the prior.
RUNS_FOR_SPREAD: Final = 3
#: Runs that the prior weighs as.
_PRIOR_WEIGHT: Final = 6
#: A run further out than this many robust deviations tells no more than one that is as far: one
#: wild night must not widen the limit for good. Fewer runs show no robust deviation.
_CLIP: Final = 2.5
_RUNS_FOR_CLIP: Final = 5
#: Logarithms beyond this have no exponential; as a change it means "beyond any measure".
_LARGEST_LOG: Final = 700.0
_LOG_2: Final = log(2)
#: Noise within a session that samples do not show, as a part of that between runs, ...
_UNSEEN_WITHIN: Final = 2 / 3
#: ... and what both make together.
_WITH_UNSEEN: Final = hypot(1, _UNSEEN_WITHIN)
#: What every metric asks for: on Python 3.11 a member takes ten times as long to get by its class.
_HIGHER: Final = Better.HIGHER
_WALL: Final = Source.WALL
_WITHIN: Final = Outcome.WITHIN


class Band(NamedTuple):
    """The baseline's centre and its limits, as natural logarithms.

    ``limit`` bounds what is worse; ``gain`` bounds what is better, which no ``max_regression``
    narrows: noise must not become the new centre. ``noise`` is the part of both that follows from
    the spread alone: without the furthest runs, any floor or cap. ``runs`` is how many runs the
    baseline has seen. ``assumed``: its samples show no noise within a session, single or equal as
    they are, so that is assumed.
    """

    centre: float
    limit: float
    gain: float
    noise: float
    runs: int
    assumed: bool


def judge_ratio(
    observed: MetricObservation, baseline: MetricBaseline, *, policy: Policy
) -> Verdict:
    """Judge a time or a throughput whose samples are all above zero.

    The first measurement is compared as it is. Once there are confirm passes, all measurements
    count, each less what the controls beside it show of the machine: their mean must be beyond
    the limit, and every confirm pass beyond half of it. What was no suspect at first is no
    regression by what came after.
    """
    limits, samples = observed.limits, observed.samples
    centre, limit, gain, noise, runs, assumed = band_of(
        baseline, limits, policy=policy, samples=len(samples)
    )
    sign = -1.0 if baseline.metric.better is _HIGHER else 1.0
    value = median(samples)
    change = sign * (log(value) - centre)
    machine: float | None = None
    confirmed: tuple[float, ...] = ()
    if observed.confirmations:
        confirmed = tuple(map(median, observed.confirmations))
        found = [change, *(sign * (log(measured) - centre) for measured in confirmed)]
        worse = sum(found) > 0
        moves = _excused(found, observed.machine, worse=worse)
        changes = [seen - move for seen, move in zip(found, moves, strict=True)]
        change, move = _agreed(
            changes, moves, worse=worse, limit=limit, gain=gain, agree=policy.agree
        )
        if worse:
            change = max(change, -gain)
        if not worse or found[0] <= policy.screen * limit:
            change = min(change, limit)
        value = exp(centre + sign * (change + move))
        machine = None if all(known is None for known in observed.machine) else expm1(move)
    if change > limit:
        outcome = Outcome.REGRESSED
    elif change < -gain:
        # The limit it is beyond, which is not the one for what gets worse.
        outcome, limit = Outcome.IMPROVED, gain
    elif is_too_noisy(noise, limits, policy=policy):
        outcome, limit = Outcome.TOO_NOISY, max(limit, noise)
    else:
        outcome = _WITHIN
    return Verdict(
        observed.metric,
        outcome,
        None,  # no reason but the numbers
        None,
        value,
        exp(centre),
        expm1(change if change < _LARGEST_LOG else _LARGEST_LOG),
        expm1(limit if limit < _LARGEST_LOG else _LARGEST_LOG),
        runs < RUNS_FOR_SPREAD,
        len(samples),
        len(baseline.sessions) - baseline.since,
        confirmed,
        None,
        runs,
        machine,
        assumed,
    )


def is_too_noisy(noise: float, limits: Limits, *, policy: Policy) -> bool:
    """Return whether noise (a logarithm) is too large to judge.

    A tolerance above the usual bound is the author's word that such a change is fine.
    """
    return noise > log1p(policy.too_noisy) and noise > log1p(limits.tolerance or 0.0)


def _excused(
    changes: Sequence[float], machine: Sequence[float | None], *, worse: bool
) -> list[float]:
    """Return the part of each change that the machine explains.

    A slow machine excuses what is ``worse``, and a fast one makes a gain doubtful. Neither does
    more: that others got faster is nothing to blame a test for, and what was slower is no gain.
    """
    known = [0.0 if move is None else log1p(move) for move in machine[: len(changes)]]
    moves = known + [0.0] * (len(changes) - len(known))
    return [
        max(min(move, change), 0.0) if worse else min(max(move, change), 0.0)
        for change, move in zip(changes, moves, strict=True)
    ]


def _agreed(
    changes: Sequence[float],
    moves: Sequence[float],
    *,
    worse: bool,
    limit: float,
    gain: float,
    agree: float,
) -> tuple[float, float]:
    """Return the change over all measurements, and the machine's part.

    Their mean, unless that is beyond the limit and a confirm pass does not bear it out: then what
    that pass measured. The first, which was measured again because it lay far out, counts for no
    more than the furthest of the others: one accident does not outvote them.
    """
    first, *again = zip(changes, moves, strict=True)
    first = min(first, max(again)) if worse else max(first, min(again))
    mean, move = (sum(part) / len(changes) for part in zip(first, *again, strict=True))
    nearest = min(again, key=lambda pair: abs(pair[0]))
    refuted = (mean > limit and min(again)[0] <= agree * limit) or (
        mean < -gain and max(again)[0] >= -agree * gain
    )
    if not refuted:
        return mean, move
    return max(-gain, min(nearest[0], limit)), nearest[1]


def is_open(
    verdict: Verdict, observed: MetricObservation, *, policy: Policy, shift: float = 0.0
) -> bool:
    """Return whether measuring a metric again would decide.

    A first measurement near the limit is enough for that, without the ``shift`` of the whole
    machine (a fraction). A confirm pass that is back within half of the limit ends it, and so does
    one without a number.
    """
    if verdict.change is None or verdict.limit is None or not verdict.centre:
        return False
    if not all(samples and min(samples) > 0 for samples in observed.confirmations):
        return False
    limit = log1p(verdict.limit)
    sign = -1.0 if verdict.metric.better is _HIGHER else 1.0
    found = [
        sign * log(median(samples) / verdict.centre)
        for samples in (observed.samples, *observed.confirmations)
    ]
    if not observed.confirmations:
        return found[0] - log1p(shift) > policy.screen * limit
    moves = _excused(found, observed.machine, worse=True)
    left = [change - move for change, move in zip(found, moves, strict=True)]
    return min(left[1:]) > policy.agree * limit


def centre_of(baseline: MetricBaseline) -> float:
    """Return the centre of a baseline in the metric's unit."""
    if not baseline.metric.compared_by_ratio:
        return median([session.median for session in baseline.current])
    medians, _, _, runs = zip(*baseline.current)  # noqa: B905 (all are as long)
    return exp(median(_run_values(list(map(log2, medians)), runs)) * _LOG_2)


def _run_values(logs: Sequence[float], runs: Sequence[str]) -> Sequence[float]:
    """Return the median of each run's sessions.

    Processes of one run share the state of the machine that hour. They agree with each other
    better than with the next run, so they are one witness and not several.
    """
    if len(set(runs)) == len(runs):
        return logs
    pairs = groupby(zip(logs, runs, strict=True), key=itemgetter(1))
    return [median([log for log, _ in sessions]) for _, sessions in pairs]


def band_of(
    baseline: MetricBaseline, limits: Limits, *, policy: Policy, samples: int | None = None
) -> Band:
    """Return the centre and the limits of a baseline.

    ``samples`` is how many the new measurement has; None for as many as the stored ones.
    """
    metric, since = baseline.metric, baseline.since
    medians, mads, counts, runs = zip(*baseline.sessions)  # noqa: B905 (all are as long)
    # To base 2, which costs half as much; turned natural below. Sorted once: every median then
    # finds its values in order, or nearly so, and the furthest runs are at the ends.
    logs = list(map(log2, medians))
    current = sorted(_run_values(logs[since:], runs[since:]))
    middle = median_of_sorted(current)
    centre = middle * _LOG_2
    residuals = [value - middle for value in current]
    degrees = len(current) - 1
    if since:
        before = sorted(_run_values(logs[:since], runs[:since]))
        middle = median_of_sorted(before)
        residuals += [value - middle for value in before]
        residuals.sort()
        degrees += len(before) - 1
    # What the spread within a session leaves in its median.
    alike = counts.count(counts[0]) == len(counts)
    usual = counts[0] if alike else median_of_sorted(sorted(counts))
    within = MEDIAN_ERROR * MAD_TO_SIGMA * sum(map(truediv, mads, medians)) / len(medians)
    within /= sqrt(usual)
    on_device = metric.source is not _WALL
    prior = policy.prior_device if on_device else policy.prior_wall
    # Single or equal samples show no noise within a session, which is not to say there is none.
    prior = max(prior, within) if within else _WITH_UNSEEN * prior
    spread = max(_spread(residuals, degrees, prior), within, policy.least_noise)
    if samples is not None and samples < usual:
        spread = sqrt(spread * spread + within * within * (usual / samples - 1))
    noise = policy.deviations * spread * sqrt(1 + 1 / len(current))
    floor = policy.floor if limits.tolerance is None else limits.tolerance
    if on_device:
        floor = max(floor, policy.absolute_floor(metric) / exp(centre))
    least = log1p(floor)
    least = noise if noise > least else least
    high = _clear_of(residuals[-3:-1], least, policy)
    low = _clear_of([-value for value in residuals[2:0:-1]], least, policy)
    limit, gain = (low, high) if metric.better is _HIGHER else (high, low)
    if limits.max_regression is not None:
        limit = min(limit, log1p(limits.max_regression))
    return Band(centre, limit, gain, noise, len(residuals), not within)


#: Tests that tell how quiet the others of their kind are.
_TESTS_TO_LEARN: Final = 8
#: Deviations beyond this many times the usual one are cut off there.
_FAR_NOISIER: Final = 3.0


def learned_prior(tests: Iterable[TestBaseline], *, policy: Policy) -> float | None:
    """Return the noise between runs of a suite's device times.

    The root mean square over its tests, so that noisy ones count most: a test with few runs is
    taken to be like the others. One that is far noisier than most counts as three times the usual:
    it is no pattern for them. None where fewer than eight tests tell.
    """
    shown = [variance for test in tests if (variance := _variance_shown(test)) is not None]
    if len(shown) < _TESTS_TO_LEARN:
        return None
    most = _FAR_NOISIER**2 * median(shown)
    prior = sqrt(sum(min(variance, most) for variance in shown) / len(shown))
    return max(prior, policy.least_noise)


def _variance_shown(test: TestBaseline) -> float | None:
    """Return the variance of a test's device time between runs.

    Of a single run, its processes tell: runs are taken to vary twice as much as they do.
    """
    for baseline in test.metrics.values():
        metric = baseline.metric
        if metric.source is _WALL or not metric.compared_by_ratio or metric.totals:
            continue
        logs = [log(session.median) for session in baseline.current]
        values = _run_values(logs, [session.run for session in baseline.current])
        factor = 1.0
        if len(values) == 1:
            values, factor = logs, 2.0
        if len(values) == 1:
            continue
        middle = median(values)
        return factor * sum((value - middle) ** 2 for value in values) / (len(values) - 1)
    return None


def _clear_of(furthest: Sequence[float], least: float, policy: Policy) -> float:
    """Return a limit clear of the third and second furthest run.

    Where runs come in two kinds, a fast and a slow one, the spread stays small as long as one
    kind is rare; the next run of that kind is still no change.

    A baseline keeps its runs. So the furthest alone counts for nothing, or it would hide a
    regression of its own size for ever. Two that are as far count up to a small bound, three up
    to the bound of TOO_NOISY, which therefore looks at the spread alone.
    """
    limit = least
    bounds = (policy.guard_of_two, policy.too_noisy)
    for residual, bound in zip(reversed(furthest), bounds, strict=False):
        reach = residual * policy.guard * _LOG_2
        if reach > limit:
            limit = max(limit, min(reach, log1p(bound)))
    return limit


def _spread(residuals: Sequence[float], degrees: int, prior: float) -> float:
    """Return the standard deviation to expect between runs, as a fraction.

    What the runs show (``residuals`` to base 2, in order), shrunk towards a prior that weighs as
    six runs; the prior alone where fewer than three runs were seen.
    """
    if len(residuals) < RUNS_FOR_SPREAD:
        return prior
    shown = hypot(*residuals) * _LOG_2
    assumed = prior * sqrt(_PRIOR_WEIGHT)
    weight = sqrt(degrees + _PRIOR_WEIGHT)
    if len(residuals) >= _RUNS_FOR_CLIP:
        typical = MAD_TO_SIGMA * median_of_sorted(sorted(map(abs, residuals))) * _LOG_2
        most = _CLIP * hypot(typical * sqrt(degrees), assumed) / weight / _LOG_2
        if residuals[-1] > most or residuals[0] < -most:
            shown = hypot(*(max(-most, min(value, most)) for value in residuals)) * _LOG_2
    return hypot(shown, assumed) / weight


@lru_cache(maxsize=256)
def t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution (0.5 to 1, open).

    Newton's method, held in a bracket, on the exact distribution function, which is a finite sum
    for whole ``degrees``; correct to about 1e-12.
    """
    if not 0.5 < probability < 1 or degrees < 1:
        message = f"no quantile for probability {probability}, degrees of freedom {degrees}"
        raise ValueError(message)
    log_scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    scale = exp(log_scale) / sqrt(degrees * math.pi)
    # One degree has a closed form, and more degrees lie below it.
    low, high = 0.0, math.tan(math.pi * (probability - 0.5))
    value = high
    for _ in range(200):
        excess = _distribution(value, degrees) - probability
        low, high = (low, value) if excess > 0 else (value, high)
        density = scale * (1 + value * value / degrees) ** (-(degrees + 1) / 2)
        newton = value - excess / density if density else low
        # Far out, the density says nothing of where the quantile lies: halve instead.
        after = newton if low < newton < high else (low + high) / 2
        if abs(after - value) < 1e-14 * max(1.0, value):
            break
        value = after
    return value


def _distribution(t: float, degrees: int) -> float:
    """P(T < t) for t > 0: Abramowitz and Stegun 26.7.3, 26.7.4."""
    angle = math.atan(t / sqrt(degrees))
    cosine_squared = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees, 2):
        term *= cosine_squared * (k - 1) / k
        total += term
    inside = math.sin(angle) * total
    return 0.5 + ((angle + inside) / math.pi if odd else inside / 2)
