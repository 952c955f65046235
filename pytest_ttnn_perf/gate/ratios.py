"""Times and throughputs: compared by ratio, against the noise the baseline has shown."""

from __future__ import annotations

import math
from operator import truediv
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.gate.statistics import MAD_TO_SIGMA, median, standard_deviation
from pytest_ttnn_perf.gate.student import t_quantile
from pytest_ttnn_perf.model.metric import Better
from pytest_ttnn_perf.model.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.gate.policy import Policy
    from pytest_ttnn_perf.model.baseline import MetricBaseline
    from pytest_ttnn_perf.model.observation import Limits, MetricObservation

#: Standard error of a median over that of a mean, for normal noise: √(π/2).
_MEDIAN_ERROR = 1.2533
#: Sessions that the prior weighs as.
_PRIOR_WEIGHT = 3
#: From here on the MAD of sessions says something the standard deviation does not.
_SESSIONS_FOR_MAD = 5


class Band(NamedTuple):
    """The baseline's centre and how far above it a measurement may be; natural logarithms.

    ``widest`` is the limit before the author's ``max_regression`` narrowed it.
    """

    centre: float
    limit: float
    widest: float


def judge_ratio(
    observed: MetricObservation, baseline: MetricBaseline, *, policy: Policy
) -> Verdict:
    """Judge a time or a throughput whose samples are all above zero."""
    band = band_of(baseline, observed.limits, policy=policy)
    sign = -1.0 if baseline.metric.better is Better.HIGHER else 1.0
    medians = [median(observed.samples), *map(median, observed.confirmations)]
    changes = [sign * (math.log(value) - band.centre) for value in medians]
    deciding = _deciding(changes, band.limit)
    change = changes[deciding]
    outcome = _outcome(change, band, observed.limits, policy=policy)
    return Verdict(
        metric=observed.metric,
        outcome=outcome,
        observed=medians[deciding],
        centre=math.exp(band.centre),
        change=math.expm1(change),
        limit=math.expm1(band.limit if outcome is not Outcome.TOO_NOISY else band.widest),
        provisional=len(baseline.sessions) == 1,
        samples=len(observed.samples),
        sessions=len(baseline.current),
        confirmed=tuple(medians[1:]),
    )


def band_of(baseline: MetricBaseline, limits: Limits, *, policy: Policy) -> Band:
    """Return where the baseline's centre is and how far from it is too far."""
    medians, mads, counts = zip(*baseline.sessions, strict=True)
    logs = list(map(math.log, medians))
    # Sorted once: every median below then finds its values in order, or nearly so.
    before, current = sorted(logs[: baseline.since]), sorted(logs[baseline.since :])
    centre = median(current)
    residuals = [value - centre for value in current]
    if before:
        centre_before = median(before)
        residuals += [value - centre_before for value in before]
    # The noise that the spread within a session leaves in its median.
    spread = MAD_TO_SIGMA * sum(map(truediv, mads, medians)) / len(logs)
    within = _MEDIAN_ERROR * spread / math.sqrt(median(counts))
    noise = _noise(residuals, within, prior=policy.prior(baseline.metric.source))
    noise = max(noise, within, policy.least_noise)
    reach = t_quantile(policy.level, len(logs) + 2) * noise * math.sqrt(1 + 1 / len(current))
    floor = policy.floor if limits.tolerance is None else limits.tolerance
    absolute = policy.absolute_floor(baseline.metric) / math.exp(centre)
    widest = max(reach, math.log1p(max(floor, absolute)))
    if limits.max_regression is None:
        return Band(centre, widest, widest)
    return Band(centre, min(widest, math.log1p(limits.max_regression)), widest)


def _noise(residuals: Sequence[float], within: float, *, prior: float) -> float:
    """Return the standard deviation to expect between sessions, as a fraction.

    What the sessions show, shrunk towards a prior that weighs as three sessions.
    """
    count = len(residuals)
    between = 0.0
    if count > 1:
        between = standard_deviation(residuals)
        if count >= _SESSIONS_FOR_MAD:
            # Residuals are deviations from a median already.
            between = max(between, MAD_TO_SIGMA * median(map(abs, residuals)))
    assumed = max(prior, within)
    pooled = (count - 1) * between**2 + _PRIOR_WEIGHT * assumed**2
    return math.sqrt(pooled / (count + _PRIOR_WEIGHT - 1))


def _deciding(changes: Sequence[float], limit: float) -> int:
    """Return the index of the measurement that decides.

    The first one, unless it stands out and a confirmation does not: one measurement within the
    limit is enough to clear a test, and one that is not better is enough to doubt a gain.
    """
    first = changes[0]
    if -limit <= first <= limit:
        return 0
    for index, change in enumerate(changes):
        if -limit <= change <= limit or (change < 0) != (first < 0):
            return index
    return 0


def _outcome(change: float, band: Band, limits: Limits, *, policy: Policy) -> Outcome:
    if change > band.limit:
        return Outcome.REGRESSED
    if change < -band.limit:
        return Outcome.IMPROVED
    # A tolerance above the usual bound is the author's word that such a change is fine.
    bearable = max(policy.too_noisy, limits.tolerance or 0.0)
    return Outcome.TOO_NOISY if band.widest > math.log1p(bearable) else Outcome.WITHIN
