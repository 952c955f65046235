"""When most tests moved together, and what that explains."""

from __future__ import annotations

from math import expm1, log, nan

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import Outcome, Reason, Shift, Verdict
from pytest_ttnn_perf.gate.machine_shift import (
    Move,
    bears_out,
    explain_by_shift,
    machine_move,
    moved_again,
    shift_of,
    vote_of,
)

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


@pytest.mark.parametrize(
    ("moving", "still", "is_shift"),
    [
        (2, 0, False),  # two tests say nothing of the machine
        (3, 0, True),
        (7, 0, True),
        (6, 1, False),  # of fewer than eight, all must move
        (5, 3, True),
        (4, 4, False),
        (6, 4, True),
        (59, 41, False),
        (60, 40, True),
    ],
)
def test_all_of_a_few_tests_must_move_and_sixty_per_cent_of_many(
    moving: int, still: int, is_shift: bool
) -> None:
    for way in (1, -1):
        shift = shift_by(*[2.0 * way] * moving, *[0.0] * still)
        assert (shift is not None) == is_shift
        if shift is not None:
            assert (shift.moved, shift.voting) == (moving, moving + still)
            assert shift.worse == (way > 0)
            assert shift.change == pytest.approx(expm1(2 * way * LOG_LIMIT))


def test_moving_is_the_same_way_and_beyond_half_the_limit_of_logarithms() -> None:
    assert shift_by(*[0.4999] * 8) is None
    assert shift_by(*[0.5001] * 8) is not None
    assert shift_by(*[2.0] * 4, *[-2.0] * 4) is None
    assert shift_by(2.0, 2.0, -2.0) is None


def test_the_shift_is_the_median_of_all_votes_not_only_of_those_that_moved() -> None:
    shift = shift_by(0, 0, 0, 1, 1.2, 2, 3, 4)
    assert shift is not None
    assert shift.change == pytest.approx(expm1(1.1 * LOG_LIMIT))


@pytest.mark.parametrize(
    ("moves", "vote"),
    [
        # (limits, limit): 6 % of a limit of 16 % is less than 2 % of one of 4 %.
        ([(0.375, 0.16), (0.5, 0.04), (3.0, 0.04)], (0.02, 0.04)),
        ([(3.0, 0.04), (0.1, 0.04)], (0.004, 0.04)),
        ([(-3.0, 0.04), (-0.1, 0.04)], (-0.004, 0.04)),
        ([(-3.0, 0.04), (-1.0, 0.04), (1.0, 0.04), (3.0, 0.04)], (-0.04, 0.04)),
        ([(2.0, 0.04)], (0.08, 0.04)),
        ([], None),
    ],
    ids=["three", "two worse", "two better", "either way", "one", "none"],
)
def test_a_test_votes_once_with_its_timing_in_the_middle(
    moves: list[tuple[float, float]], vote: tuple[float, float] | None
) -> None:
    found = vote_of(moved(limits, limit=limit) for limits, limit in moves)
    assert found == (None if vote is None else pytest.approx(vote))


def test_a_vote_may_be_of_one_source() -> None:
    kernel = moved(2, metric=replace(TIME, source=Source.DEVICE))
    verdicts = [kernel, moved(0.1)]
    assert vote_of(verdicts, Source.DEVICE) == pytest.approx((0.08, LOG_LIMIT))
    assert vote_of(verdicts, Source.WALL) == pytest.approx((0.004, LOG_LIMIT))
    assert vote_of(verdicts, Source.REALTIME) is None


@pytest.mark.parametrize(("move", "does"), [(0.039, False), (0.041, True), (-0.2, False)])
def test_controls_bear_a_shift_out_from_half_of_it_on(move: float, does: bool) -> None:
    assert bears_out(Shift(expm1(0.08), 5, 8), expm1(move)) is does


@pytest.mark.parametrize(
    ("changes", "move"),
    [
        # The error is 1.2533 · limit / 3.4 / sqrt(controls): 1.2533 %, then half and a third of it.
        ([], None),
        ([0.02], 0.02 - 0.012533**2 / 0.02),
        ([-0.02], -(0.02 - 0.012533**2 / 0.02)),
        ([0.0125], 0.0),
        ([0.01, 0.02, 0.04, 0.02], 0.02 - 0.0062665**2 / 0.02),
        ([0.0] * 4 + [0.5] * 5, 0.5 - (0.012533 / 3) ** 2 / 0.5),
    ],
)
def test_controls_are_believed_as_far_as_they_stand_out_from_their_error(
    changes: list[float], move: float | None
) -> None:
    found = machine_move([Move(change, 0.034) for change in changes])
    assert found == (None if move is None else pytest.approx(expm1(move), rel=1e-9))


@pytest.mark.parametrize(
    ("metric", "samples", "move"),
    [
        (TIME, (110.0, 120.0, 130.0), log(1.2)),
        (RATE, (80.0,), log(1 / 0.8)),
        (TIME, (), None),
        (TIME, (110.0, nan), None),
        (TIME, (0.0,), None),
        (COUNT, (110.0,), None),
    ],
)
def test_how_far_a_metric_moved_when_it_was_measured_again(
    metric: Metric, samples: tuple[float, ...], move: float | None
) -> None:
    verdict = replace(moved(0.1, metric=metric), centre=100.0)
    found = moved_again(verdict, samples)
    assert found == (None if move is None else pytest.approx((move, LOG_LIMIT)))


def test_what_is_not_compared_by_ratio_or_at_all_has_no_vote() -> None:
    for other in (COUNT, CHECKSUM, Metric("pcc", "", kind=Kind.ACCURACY)):
        assert shift_of([[moved(2, metric=other)]] * 8) is None
    without = [Verdict(TIME, Outcome.NO_BASELINE, Reason.NEW_TEST, observed=5.0)]
    shift = shift_of([*[[moved(2)]] * 3, *[without] * 20, []])
    assert shift is not None
    assert shift.voting == 3


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
    assert replace(after, outcome=verdict.outcome, reason=None) == verdict


@pytest.mark.parametrize(
    "verdict",
    [
        replace(moved(2), reason=Reason.ABSOLUTE_LIMIT),
        moved(2, metric=COUNT),
        Verdict(CHECKSUM, Outcome.REGRESSED, Reason.VALUE_CHANGED),
        Verdict(TIME, Outcome.NO_DATA, Reason.NOT_CONFIRMED, "confirm pass 1: gone"),
        replace(moved(0.9), outcome=Outcome.TOO_NOISY),
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


@pytest.mark.parametrize(
    ("change", "machine", "before", "outcome"),
    [
        (0.5, 0.6, Outcome.WITHIN, Outcome.SHIFTED),  # beyond its limit, but not of itself
        (0.5, 0.4, Outcome.WITHIN, Outcome.WITHIN),
        (0.9, None, Outcome.WITHIN, Outcome.WITHIN),
        (1.1, 2.0, Outcome.REGRESSED, Outcome.REGRESSED),  # its controls did not clear it
        (1.1, None, Outcome.REGRESSED, Outcome.REGRESSED),
        (-1.1, 3.0, Outcome.IMPROVED, Outcome.IMPROVED),
    ],
)
def test_once_measured_again_the_controls_decide(
    change: float, machine: float | None, before: Outcome, outcome: Outcome
) -> None:
    slower = None if machine is None else expm1(machine * LOG_LIMIT)
    verdict = replace(moved(change), outcome=before, confirmed=(100.0,), machine=slower)
    (after,) = explain_by_shift([verdict], Shift(expm1(2 * LOG_LIMIT), 5, 5))
    assert after.outcome is outcome
