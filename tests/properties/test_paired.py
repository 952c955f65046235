"""What holds for any two versions that are measured in turns."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.gate.paired import Paired, Round, judge_rounds
from pytest_ttnn_perf.records.metric import Better, Metric, Source
from pytest_ttnn_perf.records.observation import NO_LIMITS, Limits
from pytest_ttnn_perf.records.verdict import Outcome
from tests.properties.strategies import SOME, TIMINGS, between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn

OPPOSITE = {Outcome.REGRESSED: Outcome.IMPROVED, Outcome.IMPROVED: Outcome.REGRESSED}
TIME = Metric("m", "ns")


@st.composite
def turns(draw: DrawFn, *, spread: float = 0.1) -> list[Round]:
    """Draw rounds, in either order; the sides differ by up to a factor of e."""
    base = 10 ** draw(between(1, 9))
    off = draw(between(-1, 1))

    def samples(level: float) -> tuple[float, ...]:
        noise = draw(st.lists(between(-spread, spread), min_size=1, max_size=4))
        return tuple(base * math.exp(level + each) for each in noise)

    count = draw(st.integers(2, 9))
    return [Round(samples(0), samples(off), draw(st.booleans())) for _ in range(count)]


def numbers(paired: Paired) -> list[float]:
    """Return what was judged, as logarithms: each is as exact as the others."""
    told = (paired.verdict.change, paired.low, paired.high, paired.verdict.limit)
    return [math.log1p(each) for each in told if each is not None]


def assert_same(first: Paired, second: Paired) -> None:
    """Compare two judgements; on the very edge of a limit, the last digit decides the outcome."""
    assert numbers(first) == pytest.approx(numbers(second), abs=1e-9)
    change, *_, limit = map(abs, numbers(first))
    if abs(change - limit) > 1e-9 and abs(limit - math.log(1.2)) > 1e-9:
        assert first.verdict.outcome is second.verdict.outcome


@SOME
@given(st.data())
def test_swapping_the_sides_turns_the_verdict_round(data: st.DataObject) -> None:
    metric, rounds = data.draw(TIMINGS), data.draw(turns())
    swapped = [Round(each.after, each.before, not each.before_first) for each in rounds]
    there, back = (judge_rounds(metric, each, NO_LIMITS) for each in (rounds, swapped))
    change, low, high, limit = numbers(there)
    assert numbers(back) == pytest.approx([-change, -high, -low, limit], abs=1e-9)
    if abs(abs(change) - limit) > 1e-9 and abs(limit - math.log(1.2)) > 1e-9:
        outcome = there.verdict.outcome
        assert back.verdict.outcome is OPPOSITE.get(outcome, outcome)


@SOME
@given(st.data())
def test_a_machine_that_is_slower_in_a_round_changes_nothing(data: st.DataObject) -> None:
    """By any factor, as long as both sides have it; but for the floor of 1 us of a device."""
    metric = replace(data.draw(TIMINGS), source=Source.WALL)
    rounds = data.draw(turns())
    factors = [math.exp(data.draw(between(-2, 2))) for _ in rounds]
    drifted = [
        Round(
            tuple(f * s for s in each.before), tuple(f * s for s in each.after), each.before_first
        )
        for f, each in zip(factors, rounds, strict=True)
    ]
    assert_same(judge_rounds(metric, rounds, NO_LIMITS), judge_rounds(metric, drifted, NO_LIMITS))


@SOME
@given(st.data())
def test_rounds_count_the_same_in_any_order(data: st.DataObject) -> None:
    metric, rounds = data.draw(TIMINGS), data.draw(turns())
    shuffled = data.draw(st.permutations(rounds))
    assert_same(judge_rounds(metric, rounds, NO_LIMITS), judge_rounds(metric, shuffled, NO_LIMITS))


def drifting(rounds: int, *, change: float, per_process: float) -> list[Round]:
    """Return rounds in turns on a machine that is slower by the same factor in every process."""
    found = []
    for number in range(rounds):
        first, second = (math.exp(per_process * (2 * number + each)) for each in (0, 1))
        before_first = bool(number % 2)
        before, after = (first, second) if before_first else (second, first)
        found.append(Round((1e6 * before,), (1e6 * after * math.exp(change),), before_first))
    return found


@SOME
@given(st.integers(3, 12), between(-0.5, 0.5), between(-0.1, 0.1))
def test_an_even_drift_cancels_exactly(rounds: int, change: float, per_process: float) -> None:
    """Also of an odd number of rounds, where one order is more frequent."""
    drift = drifting(rounds, change=change, per_process=per_process)
    assert numbers(judge_rounds(TIME, drift, NO_LIMITS))[0] == pytest.approx(change, abs=1e-9)


def steady(before: Sequence[float], after: Sequence[float], metric: Metric = TIME) -> Paired:
    sides = zip(before, after, strict=True)
    rounds = [Round((a,), (b,), bool(n % 2)) for n, (a, b) in enumerate(sides)]
    return judge_rounds(metric, rounds, NO_LIMITS)


@pytest.mark.parametrize(("rounds", "reach"), [(3, 0.041), (5, 0.0222), (10, 0.01024)])
def test_rounds_that_agree_by_luck_leave_an_interval_as_wide_as_processes_differ(
    rounds: int, reach: float
) -> None:
    """The prior of 1.5 % for a process, over as many rounds: never a point."""
    low, high = numbers(steady([1e6] * rounds, [1e6] * rounds))[1:3]
    assert (high - low) / 2 == pytest.approx(reach, rel=0.02)


def test_noise_of_any_size_is_covered() -> None:
    """By Student's own interval: t(0.995, 4) = 4.604 times the standard error."""
    changes = [0.10, -0.10, 0.05, -0.05, 0.0]
    low, high = numbers(steady([1e6] * 5, [1e6 * math.exp(c) for c in changes]))[1:3]
    deviation = math.sqrt(sum(c * c for c in changes) / 4)
    error = deviation * math.hypot(*([0.5 / 3] * 3 + [0.5 / 2] * 2))
    assert (high - low) / 2 == pytest.approx(4.604 * error, rel=1e-3)


def test_samples_that_differ_leave_their_mark_where_rounds_agree() -> None:
    wild = (0.5e6, 1e6, 1.5e6)
    rounds = [Round(wild, wild, bool(number % 2)) for number in range(5)]
    assert judge_rounds(TIME, rounds, NO_LIMITS).verdict.outcome is Outcome.TOO_NOISY


@pytest.mark.parametrize(
    ("change", "outcome"),
    [(1.06, "REGRESSED"), (1.015, "WITHIN"), (0.985, "WITHIN"), (0.94, "IMPROVED")],
)
def test_what_stands_out_gets_a_verdict(change: float, outcome: str) -> None:
    found = steady([1e6, 1.01e6, 1.02e6, 1.01e6, 1e6], [
        change * each for each in (1e6, 1.01e6, 1.02e6, 1.01e6, 1e6)
    ])  # fmt: skip
    assert found.verdict.outcome.value == outcome


def test_a_rate_is_worse_when_it_is_lower() -> None:
    rate = Metric("m", "tok/s", Better.HIGHER)
    assert steady([100.0] * 5, [90.0] * 5, rate).verdict.outcome is Outcome.REGRESSED


def test_less_than_a_microsecond_of_a_device_is_nothing() -> None:
    kernel = Metric("m", "ns", source=Source.DEVICE)
    assert steady([5_000.0] * 5, [5_900.0] * 5, kernel).verdict.outcome is Outcome.WITHIN
    assert steady([5_900.0] * 5, [5_000.0] * 5, kernel).verdict.outcome is Outcome.WITHIN
    assert steady([5_000.0] * 5, [6_100.0] * 5, kernel).verdict.outcome is Outcome.REGRESSED
    assert steady([5_000.0] * 5, [5_900.0] * 5).verdict.outcome is Outcome.REGRESSED


def test_limits_of_the_author_move_the_floor_and_never_the_interval() -> None:
    rounds = [Round((1e6,), (1.04e6,), bool(number % 2)) for number in range(5)]

    def outcome(limits: Limits) -> str:
        return judge_rounds(TIME, rounds, limits).verdict.outcome.value

    assert outcome(NO_LIMITS) == "REGRESSED"
    assert outcome(Limits(tolerance=0.05)) == "WITHIN"
    assert outcome(Limits(tolerance=0.05, max_regression=0.03)) == "REGRESSED"
    narrow = [Round((1e6,), (1.01e6,), bool(number % 2)) for number in range(5)]
    within = judge_rounds(TIME, narrow, Limits(max_regression=0.001)).verdict
    assert within.outcome is Outcome.WITHIN


def test_noise_that_could_hide_a_fifth_is_no_pass() -> None:
    wild = [1e6, 1.3e6, 0.8e6, 1.2e6, 0.9e6]
    assert steady([1e6] * 5, wild).verdict.outcome is Outcome.TOO_NOISY
    rounds = [Round((1e6,), (each,), bool(n % 2)) for n, each in enumerate(wild)]
    tolerant = judge_rounds(TIME, rounds, Limits(tolerance=0.9)).verdict
    assert tolerant.outcome is Outcome.WITHIN
