"""Counts, bytes, accuracies and values that must not change: compared by difference."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_ttnn_perf.gate.ratios import median
from pytest_ttnn_perf.records.metric import Better, Kind
from pytest_ttnn_perf.records.verdict import Outcome, Reason, Verdict

if TYPE_CHECKING:
    from pytest_ttnn_perf.gate.judge import Policy
    from pytest_ttnn_perf.records.baseline import MetricBaseline
    from pytest_ttnn_perf.records.metric import Metric
    from pytest_ttnn_perf.records.observation import MetricObservation


def judge_difference(
    observed: MetricObservation, baseline: MetricBaseline, *, policy: Policy
) -> Verdict:
    """Judge a count, an amount of bytes or an accuracy; all samples are finite."""
    value = representative(observed.metric, observed.samples)
    centre = median([session.median for session in baseline.current])
    gain = _allowed(observed, centre, policy=policy)
    cap = observed.limits.max_regression
    # A cap narrows what may get worse, never what counts as better.
    allowed = gain if cap is None else min(gain, cap * abs(centre))
    worse = centre - value if observed.metric.better is Better.HIGHER else value - centre
    if worse > allowed:
        outcome = Outcome.REGRESSED
    elif worse < -gain:
        outcome = Outcome.IMPROVED
    else:
        outcome = Outcome.WITHIN
    return Verdict(
        metric=observed.metric,
        outcome=outcome,
        observed=value,
        centre=centre,
        change=_fraction(worse, centre),
        limit=_fraction(allowed, centre),
        # These kinds do not vary between sessions: one session is as good as twenty.
        provisional=False,
        samples=len(observed.samples),
        sessions=len(baseline.current),
    )


def judge_equal(observed: MetricObservation, baseline: MetricBaseline) -> Verdict:
    """Judge a value that must be the same in every run; its samples are the same already."""
    samples = observed.samples
    value, expected = samples[0], baseline.sessions[-1].median
    same = value == expected
    return Verdict(
        observed.metric,
        Outcome.WITHIN if same else Outcome.REGRESSED,
        reason=None if same else Reason.VALUE_CHANGED,
        observed=value,
        centre=expected,
        change=0.0 if same else None,
        limit=0.0 if same else None,
        samples=len(samples),
        sessions=len(baseline.current),
    )


def unsteady(observed: MetricObservation) -> Verdict | None:
    """Return the verdict of a value that must be the same in every sample and is not."""
    samples = observed.samples
    lowest, highest = min(samples), max(samples)
    if lowest == highest or observed.metric.better is not Better.EQUAL:
        return None
    return Verdict(
        observed.metric,
        Outcome.TOO_NOISY,
        reason=Reason.SAMPLES_DIFFER,
        detail=f"{lowest!r} to {highest!r}",
        observed=samples[0],
        samples=len(samples),
    )


def representative(metric: Metric, samples: tuple[float, ...]) -> float:
    """Return the value that stands for the samples: their median, or the worst accuracy.

    One bad output is not made good by others.
    """
    if metric.kind is not Kind.ACCURACY:
        return median(samples)
    return max(samples) if metric.better is Better.LOWER else min(samples)


def _fraction(part: float, whole: float) -> float | None:
    """Return part of whole; None where that is no number: a change from nothing has no size."""
    if part == 0:
        return 0.0
    fraction = part / abs(whole) if whole else math.inf
    return fraction if math.isfinite(fraction) else None


def _allowed(observed: MetricObservation, centre: float, *, policy: Policy) -> float:
    """Return the largest difference that is neither a regression nor a gain, uncapped."""
    tolerance = observed.limits.tolerance
    if observed.metric.kind is Kind.ACCURACY:
        return policy.accuracy_drop * max(1.0, abs(centre)) if tolerance is None else tolerance
    if tolerance is None:
        tolerance = policy.bytes_tolerance if observed.metric.kind is Kind.BYTES else 0.0
    return max(tolerance * abs(centre), policy.absolute_floor(observed.metric))
