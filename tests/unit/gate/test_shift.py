"""When most tests moved together, by how much, and which suspicions that explains."""

from __future__ import annotations

from math import exp, expm1

import pytest

from pytest_ttnn_perf.gate.machine import explain_by_shift, shift_of
from pytest_ttnn_perf.records.metric import Better, Kind, Metric
from pytest_ttnn_perf.records.verdict import Outcome, Reason, Shift, Verdict

TIME = Metric("latency", "ms")
RATE = Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
COUNT = Metric("ops", "", kind=Kind.COUNT)
CHECKSUM = Metric("checksum", "", Better.EQUAL)
#: The limit of every verdict here, as a logarithm and as a fraction.
LOG_LIMIT = 0.04
LIMIT = expm1(LOG_LIMIT)


def moved(limits: float, *, metric: Metric = TIME, limit: float = LOG_LIMIT) -> Verdict:
    """Return the verdict of a metric that moved by so many of its limits; plus is worse."""
    outcome = Outcome.REGRESSED if limits > 1 else Outcome.WITHIN
    outcome = Outcome.IMPROVED if limits < -1 else outcome
    return Verdict(metric, outcome, change=expm1(limits * limit), limit=expm1(limit))


def shift_by(*limits: float) -> Shift | None:
    """Return the shift that tests with one metric each tell of."""
    return shift_of([moved(each)] for each in limits)


def test_five_tests_that_move_together_are_a_shift_and_four_are_none() -> None:
    assert shift_by(2, 2, 2, 2) is None
    shift = shift_by(2, 2, 2, 2, 2)
    assert shift is not None
    assert shift.change == pytest.approx(expm1(2 * LOG_LIMIT))
    assert (shift.moved, shift.voting, shift.worse) == (5, 5, True)


@pytest.mark.parametrize(
    ("moving", "still", "is_shift"), [(3, 2, True), (5, 4, False), (6, 4, True), (59, 41, False)]
)
def test_sixty_per_cent_must_move(moving: int, still: int, is_shift: bool) -> None:
    shift = shift_by(*[2.0] * moving, *[0.0] * still)
    assert (shift is not None) == is_shift
    if shift is not None:
        assert (shift.moved, shift.voting) == (moving, moving + still)


def test_moving_means_beyond_half_the_limit_of_logarithms() -> None:
    assert shift_by(*[0.4999] * 5) is None
    assert shift_by(*[0.5001] * 5) is not None


@pytest.mark.parametrize(("better", "worse"), [(2, 3), (3, 2)])
def test_tests_that_move_apart_are_no_shift(better: int, worse: int) -> None:
    assert shift_by(*[2.0] * worse, *[-2.0] * better, 0.0) is None


def test_the_shift_is_the_median_of_all_votes_not_only_of_those_that_moved() -> None:
    shift = shift_by(0, 0, 1, 2, 3)
    assert shift is not None
    assert shift.change == pytest.approx(LIMIT)


def test_a_test_votes_once_with_what_moved_most_for_its_limit() -> None:
    # 8 % of a limit of 16 % is half of it; 6 % of a limit of 4 % is more, though less in itself.
    wide, narrow = moved(0.5, limit=0.16), moved(1.5, limit=0.04)
    shift = shift_of([(wide, narrow)] * 5)
    assert shift is not None
    assert shift.change == pytest.approx(expm1(0.06))
    assert shift.voting == 5


@pytest.mark.parametrize("metric", [COUNT, CHECKSUM, Metric("pcc", "", kind=Kind.ACCURACY)])
def test_what_is_not_compared_by_ratio_says_nothing_about_the_machine(metric: Metric) -> None:
    assert shift_of([[moved(2, metric=metric)]] * 5) is None


def test_tests_without_a_comparison_have_no_vote() -> None:
    without = [Verdict(TIME, Outcome.NO_BASELINE, Reason.NEW_TEST, observed=5.0)]
    shift = shift_of([*[[moved(2)]] * 5, *[without] * 20, []])
    assert shift is not None
    assert shift.voting == 5


@pytest.mark.parametrize(
    ("limits", "outcome", "reason"),
    [
        (2.0, Outcome.SHIFTED, Reason.SHIFTED),
        (2.9999, Outcome.SHIFTED, Reason.SHIFTED),
        (3.0001, Outcome.REGRESSED, None),
        (0.5, Outcome.WITHIN, None),
        (-2.0, Outcome.IMPROVED, None),
    ],
)
def test_a_suspect_within_its_limit_of_the_shift_is_explained(
    limits: float, outcome: Outcome, reason: Reason | None
) -> None:
    verdict = moved(limits)
    (after,) = explain_by_shift([verdict], Shift(expm1(2 * LOG_LIMIT), 5, 5))
    assert (after.outcome, after.reason) == (outcome, reason)
    assert after._replace(outcome=verdict.outcome, reason=None) == verdict


@pytest.mark.parametrize(
    "verdict",
    [
        moved(2)._replace(reason=Reason.ABSOLUTE_LIMIT),
        moved(2, metric=COUNT),
        Verdict(CHECKSUM, Outcome.REGRESSED, Reason.VALUE_CHANGED),
        Verdict(TIME, Outcome.NO_DATA, Reason.NOT_CONFIRMED, "confirm pass 1: gone"),
        moved(0.9)._replace(outcome=Outcome.TOO_NOISY),
    ],
    ids=["absolute limit", "count", "checksum", "no data", "too noisy"],
)
def test_what_is_not_a_suspicion_by_numbers_is_left_alone(verdict: Verdict) -> None:
    assert explain_by_shift([verdict], Shift(0.5, 5, 5)) == (verdict,)


def test_a_shift_is_taken_off_as_a_ratio() -> None:
    """A machine at half its speed explains 107 % more: twice the time, and 3.5 % on top."""
    twice = Verdict(TIME, Outcome.REGRESSED, change=1.07, limit=LIMIT)
    (after,) = explain_by_shift([twice], Shift(1.0, 5, 5))
    assert after.reason is Reason.SHIFTED


@pytest.mark.parametrize("metric", [TIME, RATE], ids=["time", "rate"])
@pytest.mark.parametrize(
    ("again", "outcome"),
    [((3.5, 2.9), Outcome.SHIFTED), ((3.5, 3.1), Outcome.REGRESSED)],
    ids=["as slow as the machine", "slower each time"],
)
def test_the_shift_is_taken_off_every_measurement(
    metric: Metric, again: tuple[float, ...], outcome: Outcome
) -> None:
    """Four limits off on a machine that is two limits slower, and measured again on it."""
    sign = -1 if metric is RATE else 1
    confirmed = tuple(100 * exp(sign * limits * LOG_LIMIT) for limits in again)
    verdict = moved(4, metric=metric)._replace(centre=100.0, confirmed=confirmed)
    (after,) = explain_by_shift([verdict], Shift(expm1(2 * LOG_LIMIT), 5, 5))
    assert after.outcome is outcome
