"""Limits worked out by hand from the formulas, and what each outcome takes."""

from __future__ import annotations

from math import exp, expm1, log, sqrt

import pytest

from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.gate.ratios import band_of, judge_ratio
from pytest_ttnn_perf.records.baseline import MetricBaseline, Session
from pytest_ttnn_perf.records.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.records.observation import NO_LIMITS, Limits, MetricObservation
from pytest_ttnn_perf.records.verdict import Outcome, Verdict

WALL = Metric("wall_time", "ns")
RATE = Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
#: Student's t, one-sided 95 %, from a printed table: for 3, 4, 7 and 22 degrees of freedom.
T_3, T_4, T_7, T_22 = 2.353363, 2.131847, 1.894579, 1.717144


def baseline(
    *medians: float, mad: float = 0, since: int = 0, metric: Metric = WALL
) -> MetricBaseline:
    return MetricBaseline(metric, tuple(Session(m, mad, 10) for m in medians), since)


def limit_of(stored: MetricBaseline, limits: Limits = NO_LIMITS) -> float:
    return band_of(stored, limits, policy=DEFAULT_POLICY).limit


def judged(stored: MetricBaseline, now: float, limits: Limits = NO_LIMITS) -> Verdict:
    run = MetricObservation(stored.metric, (now,), limits=limits)
    return judge_ratio(run, stored, policy=DEFAULT_POLICY)


def test_spread_within_a_session_counts_where_it_exceeds_the_prior() -> None:
    within = 1.2533 * 1.4826 * 0.2 / sqrt(10)
    assert limit_of(baseline(1e6, mad=2e5)) == pytest.approx(T_3 * within * sqrt(2), rel=1e-6)


def test_two_sessions_add_what_they_show() -> None:
    spread = log(1.04) / sqrt(2)  # the standard deviation of two values
    noise = sqrt((spread**2 + 3 * 0.015**2) / 4)
    expected = T_4 * noise * sqrt(1.5)
    assert limit_of(baseline(1e6, 1.04e6)) == pytest.approx(expected, rel=1e-6)


def test_five_sessions_are_also_judged_by_their_typical_deviation() -> None:
    # Residuals -d, -d, 0, d, d: the scaled MAD (1.4826 d) exceeds the deviation (sqrt(4/4) d).
    d = 0.03
    stored = baseline(*(1e6 * exp(k * d) for k in (-1, -1, 0, 1, 1)))
    noise = sqrt((4 * (1.4826 * d) ** 2 + 3 * 0.015**2) / 7)
    assert limit_of(stored) == pytest.approx(T_7 * noise * sqrt(1.2), rel=1e-6)


def test_sessions_before_an_accept_tell_the_spread_but_not_the_centre() -> None:
    stored = baseline(1e6, 1.04e6, 2e6, since=2)
    band = band_of(stored, NO_LIMITS, policy=DEFAULT_POLICY)
    assert band.centre == pytest.approx(log(2e6))
    # Residuals ±ln(1.04)/2 of the two before, 0 of the one since; H = 3, H' = 1.
    half = log(1.04) / 2
    noise = sqrt((2 * (2 * half**2 / 2) + 3 * 0.015**2) / 5)
    assert band.limit == pytest.approx(2.015048 * noise * sqrt(2), rel=1e-6)


def reach_with_apart(distance: float, *, count: int = 1) -> float:
    """Return what the spread of 20 sessions reaches, all alike but for ``count`` of them."""
    squares = count * distance**2 * (1 - count / 20)  # about their mean
    return T_22 * sqrt((squares + 3 * 0.015**2) / 22) * sqrt(1 + 1 / 20)


@pytest.mark.parametrize(
    ("metric", "apart", "worse"),
    [(WALL, 1.05, True), (WALL, 1 / 1.05, False), (RATE, 1 / 1.05, True), (RATE, 1.05, False)],
    ids=["slower", "faster", "lower", "higher"],
)
@pytest.mark.parametrize(
    ("count", "widened"), [(1, log(1.04)), (2, 1.1 * log(1.05))], ids=["one", "two"]
)
def test_the_furthest_sessions_widen_the_limit_on_their_own_side(
    metric: Metric, apart: float, worse: bool, count: int, widened: float
) -> None:
    medians = [1e6] * (20 - count) + [apart * 1e6] * count
    band = band_of(baseline(*medians, metric=metric), NO_LIMITS, policy=DEFAULT_POLICY)
    far, near = (band.limit, band.gain) if worse else (band.gain, band.limit)
    assert far == pytest.approx(widened)
    assert near == pytest.approx(reach_with_apart(log(1.05), count=count), rel=1e-6)
    assert band.noise == near


def test_one_session_that_is_a_little_off_counts_whole() -> None:
    # Two in three hundred nights of a quiet test: 1.1 times as far out is still below 4 %.
    assert limit_of(baseline(*[1e6] * 19, 1.03e6)) == pytest.approx(1.1 * log(1.03))


def test_the_furthest_sessions_before_an_accept_still_count() -> None:
    # Alike but for two on either side of the accept, each measured from the middle of its own.
    stored = baseline(*[1e6] * 8, *[1.06e6] * 2, *[2e6] * 8, *[2e6 / 1.07] * 2, since=10)
    band = band_of(stored, NO_LIMITS, policy=DEFAULT_POLICY)
    assert band.centre == pytest.approx(log(2e6))
    assert band.limit == pytest.approx(1.1 * log(1.06))
    assert band.gain == pytest.approx(1.1 * log(1.07))


def test_a_wild_session_neither_hides_a_regression_nor_makes_a_test_too_noisy() -> None:
    wild = baseline(*[1e6] * 19, 1.3e6)
    # What is left of it is its part in the spread.
    assert limit_of(wild) == pytest.approx(reach_with_apart(log(1.3)), rel=1e-6)
    assert judged(wild, 1e6).outcome is Outcome.WITHIN
    assert judged(wild, 1.1e6).outcome is Outcome.WITHIN
    assert judged(wild, 1.12e6).outcome is Outcome.REGRESSED


def test_two_wild_sessions_do_not_hide_twenty_per_cent() -> None:
    wild = baseline(*[1e6] * 18, *[1.35e6] * 2)
    assert reach_with_apart(log(1.35), count=2) < log(1.2)
    assert limit_of(wild) == pytest.approx(log(1.2))
    assert judged(wild, 1.19e6).outcome is Outcome.WITHIN
    assert judged(wild, 1.21e6).outcome is Outcome.REGRESSED


def test_a_cap_holds_against_the_furthest_session_but_not_for_gains() -> None:
    capped = Limits(max_regression=0.03)
    slow = baseline(*[1e6] * 18, *[1.05e6] * 2)
    fast = baseline(*[1e6] * 18, *[1e6 / 1.05] * 2)
    assert limit_of(slow, capped) == pytest.approx(log(1.03))
    gain = band_of(fast, capped, policy=DEFAULT_POLICY).gain
    assert gain == pytest.approx(1.1 * log(1.05))


def test_a_gain_is_told_with_the_limit_it_is_beyond() -> None:
    stored = baseline(*[1e6] * 18, *[1e6 / 1.05] * 2)
    verdict = judged(stored, 0.9e6)
    assert verdict.outcome is Outcome.IMPROVED
    assert verdict.limit == pytest.approx(expm1(1.1 * log(1.05)))
    # What is no gain is told with the limit for the worse, like everything else.
    verdict = judged(stored, 0.96e6)
    assert verdict.outcome is Outcome.WITHIN
    assert verdict.limit == pytest.approx(expm1(reach_with_apart(log(1.05), count=2)), rel=1e-6)


def test_a_quiet_history_is_held_to_the_floor() -> None:
    stored = baseline(*[1e6] * 20)
    assert limit_of(stored) == pytest.approx(log(1.02))
    assert limit_of(stored, Limits(tolerance=0.05)) == pytest.approx(log(1.05))
    assert limit_of(stored, Limits(max_regression=0.01)) == pytest.approx(log(1.01))


@pytest.mark.parametrize(("unit", "centre", "floor"), [("ns", 2000, 1.5), ("us", 2, 1.5)])
def test_a_short_device_time_is_held_to_a_microsecond(
    unit: str, centre: float, floor: float
) -> None:
    metric = Metric("kernel", unit, source=Source.DEVICE)
    stored = baseline(*[centre] * 20, metric=metric)
    assert limit_of(stored) == pytest.approx(log(floor))


@pytest.mark.parametrize(
    ("now", "outcome"),
    [(1.04e6, Outcome.WITHIN), (1.06e6, Outcome.REGRESSED), (0.94e6, Outcome.IMPROVED)],
)
def test_outcomes_of_a_time(now: float, outcome: Outcome) -> None:
    verdict = judged(baseline(1e6), now)
    assert verdict.outcome is outcome
    assert verdict.change == pytest.approx(now / 1e6 - 1)
    assert verdict.provisional


def test_a_baseline_that_hides_twenty_per_cent_is_too_noisy() -> None:
    noisy = baseline(1e6, 1.5e6, 0.7e6)
    verdict = judged(noisy, 1e6)
    assert verdict.outcome is Outcome.TOO_NOISY
    band = band_of(noisy, NO_LIMITS, policy=DEFAULT_POLICY)
    assert verdict.limit == pytest.approx(expm1(band.noise))
    # A cap does not make it quiet; a suspect is a suspect; and faster beyond doubt is faster.
    assert judged(noisy, 1e6, Limits(max_regression=0.05)).outcome is Outcome.TOO_NOISY
    assert judged(noisy, 9e6).outcome is Outcome.REGRESSED
    assert judged(noisy, 1e5).outcome is Outcome.IMPROVED
    # The author's own word that such a change is fine.
    assert judged(noisy, 1e6, Limits(tolerance=2.0)).outcome is Outcome.WITHIN


def test_the_nearest_of_contradicting_measurements_is_shown() -> None:
    run = MetricObservation(WALL, (1.5e6,), confirmations=((1.01e6,), (1.4e6,)))
    verdict = judge_ratio(run, baseline(1e6), policy=DEFAULT_POLICY)
    assert (verdict.outcome, verdict.observed) == (Outcome.WITHIN, 1.01e6)
    assert verdict.confirmed == (1.01e6, 1.4e6)
