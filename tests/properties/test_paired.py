"""What holds for any two versions that are measured in turns."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import NO_LIMITS, Limits, Outcome
from pytest_ttnn_perf.experiments.paired import (
    Comparison,
    Plan,
    Round,
    estimate,
    judge_rounds,
)
from pytest_ttnn_perf.gate.ratios import POLICY, t_quantile
from tests.properties.strategies import SOME, TIMINGS, between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn

OPPOSITE = {Outcome.REGRESSED: Outcome.IMPROVED, Outcome.IMPROVED: Outcome.REGRESSED}
TIME = Metric("m", "ns")


@st.composite
def turns(draw: DrawFn, *, spread: float = 0.1, least: int = 3) -> list[Round]:
    """Draw rounds in any order; the sides differ by up to a factor of e."""
    base = 10 ** draw(between(1, 9))
    off = draw(between(-1, 1))

    def samples(level: float) -> tuple[float, ...]:
        noise = draw(st.lists(between(-spread, spread), min_size=1, max_size=4))
        return tuple(base * math.exp(level + each) for each in noise)

    count = draw(st.integers(least, 9))
    orders = Plan(count, draw(st.integers(0, 999))).orders()
    return [Round(samples(0), samples(off), before_first) for before_first in orders]


def numbers(paired: Comparison) -> list[float]:
    """Return what was judged, as logarithms: each is as exact as the others."""
    told = (paired.verdict.change, paired.low, paired.high, paired.verdict.limit)
    return [math.log1p(each) for each in told if each is not None]


def judged(metric: Metric, rounds: Sequence[Round], limits: Limits = NO_LIMITS) -> Comparison:
    """Judge rounds that are all there may be."""
    return judge_rounds(metric, rounds, limits, plan=Plan(len(rounds)))


@SOME
@given(st.data())
def test_swapping_the_sides_turns_the_verdict_round(data: st.DataObject) -> None:
    metric, rounds = data.draw(TIMINGS), data.draw(turns())
    swapped = [Round(each.after, each.before, not each.before_first) for each in rounds]
    there, back = (judged(metric, each) for each in (rounds, swapped))
    if there.rounds == back.rounds:  # else the last digit has decided at a look
        change, low, high, limit = numbers(there)
        assert numbers(back) == pytest.approx([-change, -high, -low, limit], abs=1e-9)
        outcome = there.verdict.outcome
        assert back.verdict.outcome is OPPOSITE.get(outcome, outcome)


@SOME
@given(st.data())
def test_a_machine_that_is_slower_in_a_round_biases_nothing(data: st.DataObject) -> None:
    """By any factor, if both sides have it; and the ratios alone always bound the interval."""
    metric, rounds = data.draw(TIMINGS), data.draw(turns())
    factors = [math.exp(data.draw(between(-2, 2))) for _ in rounds]
    drifted = [
        Round(
            tuple(f * s for s in each.before), tuple(f * s for s in each.after), each.before_first
        )
        for f, each in zip(factors, rounds, strict=True)
    ]
    there, then = estimate(metric, rounds), estimate(metric, drifted)
    assert then.change == pytest.approx(there.change, abs=1e-9)
    assert then.spreads[0][0] == pytest.approx(there.spreads[0][0], abs=1e-9)
    ratios, degrees = then.spreads[0]
    assert then.reach(0.01) <= then.weight * t_quantile(0.995, degrees) * ratios + 1e-9


@SOME
@given(st.data())
def test_what_a_look_has_established_stays(data: st.DataObject) -> None:
    """Whatever is measured after it, and however much of it is the opposite."""
    rounds, more = (data.draw(turns()) for _ in range(2))
    plan = Plan(30)
    early = judge_rounds(TIME, rounds[:4], NO_LIMITS, plan=plan)
    late = judge_rounds(TIME, [*rounds[:4], *more], NO_LIMITS, plan=plan)
    if len(rounds) >= 4 and not early.is_undecided:
        assert late == early


@SOME
@given(st.integers(3, 50), st.integers(0, 10**6))
def test_orders_are_random_and_balanced_and_those_of_the_seed(rounds: int, seed: int) -> None:
    """The first three have both: else what the second of a round has to bear cannot be known."""
    orders = Plan(rounds, seed).orders()
    assert orders == Plan(rounds, seed).orders()
    assert len(orders) == rounds
    assert set(orders[:3]) == {True, False}
    assert orders[0] is False, "the version after says what is measured, and how"
    for start in range(0, rounds - 9, 10):
        assert sum(orders[start : start + 10]) == 5
    assert len({tuple(Plan(20, each).orders()) for each in range(100)}) > 90


@pytest.mark.parametrize("rounds", [3, 4, 5, 20, 50])
@pytest.mark.parametrize("level", [0.05, 0.0025])
def test_all_looks_together_are_wrong_as_often_as_one_would_be(rounds: int, level: float) -> None:
    """Counted in simulated walks; cut short, they are wrong more rarely."""
    looks, levels = Plan(rounds).looks(), Plan(rounds).levels(level, rounds)
    bounds = [
        NormalDist().inv_cdf(1 - each) * math.sqrt(look - 2)
        for look, each in zip(looks, levels, strict=True)
    ]
    walks = np.random.default_rng(7).normal(size=(200_000, rounds - 2)).cumsum(axis=1)
    crossed = (walks[:, looks[0] - 3 :] > bounds).any(axis=1).mean()
    assert crossed == pytest.approx(level, abs=4 * math.sqrt(level / len(walks)))
    for done in range(3, rounds):
        early = Plan(rounds).levels(level, done)
        expected = levels[: len(early)] if done > 3 else (level * done / rounds,)
        assert early == pytest.approx(expected)


def drifting(plan: Plan, *, change: float, per_process: float) -> list[Round]:
    """Return rounds in turns on a machine that is slower by the same factor in every process."""
    found = []
    for number, before_first in enumerate(plan.orders()):
        first, second = (math.exp(per_process * (2 * number + each)) for each in (0, 1))
        before, after = (first, second) if before_first else (second, first)
        found.append(Round((1e6 * before,), (1e6 * after * math.exp(change),), before_first))
    return found


@SOME
@given(
    st.builds(Plan, st.integers(3, 12), st.integers(0, 99)), between(-0.5, 0.5), between(-0.1, 0.1)
)
def test_an_even_drift_cancels_exactly(plan: Plan, change: float, per_process: float) -> None:
    """Also where one order is more frequent."""
    drift = drifting(plan, change=change, per_process=per_process)
    found = estimate(TIME, drift)
    assert found.change == pytest.approx(change, abs=1e-9)
    least = math.sqrt(2) * POLICY.least_noise
    assert [deviation for deviation, _ in found.spreads] == pytest.approx([least, least])


def steady(before: Sequence[float], after: Sequence[float], metric: Metric = TIME) -> Comparison:
    sides = zip(before, after, strict=True)
    rounds = [Round((a,), (b,), bool(n % 2)) for n, (a, b) in enumerate(sides)]
    return judged(metric, rounds)


def test_noise_of_any_size_is_covered() -> None:
    """By Student's own interval, with two degrees of freedom less than rounds, for the order."""
    changes = [0.10, -0.10, 0.05, -0.05, 0.0, 0.02]
    rounds = [
        Round((1e6 * 9**n,), (1e6 * 9**n * math.exp(c),), bool(n % 2))
        for n, c in enumerate((0.10, -0.10, 0.05, -0.05, 0.0, 0.02))
    ]
    rounds[3] = rounds[3]._replace(before=(5e9,), after=(5e9 * math.exp(-0.05),))  # it moves
    means = [sum(changes[order::2]) / 3 for order in (0, 1)]
    squares = sum((c - means[n % 2]) ** 2 for n, c in enumerate(changes))
    error = math.sqrt(squares / 4 / 6)
    # The other half of the level is for the interval by all processes, which is wider here.
    assert estimate(TIME, rounds).reach(0.01) == pytest.approx(4.604 * error, rel=1e-3)


def test_samples_that_differ_leave_their_mark_where_rounds_agree() -> None:
    wild = (0.5e6, 1e6, 1.5e6)
    rounds = [Round(wild, wild, bool(number % 2)) for number in range(6)]
    assert judged(TIME, rounds).is_undecided


@pytest.mark.parametrize(
    ("change", "outcome"),
    [(1.06, "REGRESSED"), (1.015, "WITHIN"), (0.985, "WITHIN"), (0.94, "IMPROVED")],
)
def test_what_stands_out_gets_a_verdict(change: float, outcome: str) -> None:
    found = steady([1e6, 1.01e6, 1.02e6, 1.01e6, 1e6, 1e6], [
        change * each for each in (1e6, 1.01e6, 1.02e6, 1.01e6, 1e6, 1e6)
    ])  # fmt: skip
    assert found.verdict.outcome.value == outcome


def test_limits_of_the_author_move_the_floor_and_never_the_interval() -> None:
    rounds = [Round((1e6,), (1.04e6,), bool(number % 2)) for number in range(6)]

    def outcome(limits: Limits) -> str:
        return judged(TIME, rounds, limits).verdict.outcome.value

    assert outcome(NO_LIMITS) == "REGRESSED"
    assert outcome(Limits(tolerance=0.05)) == "WITHIN"
    assert outcome(Limits(tolerance=0.05, max_regression=0.03)) == "REGRESSED"
    narrow = [Round((1e6,), (1.005e6,), bool(number % 2)) for number in range(6)]
    within = judged(TIME, narrow, Limits(max_regression=0.001)).verdict
    assert within.outcome is Outcome.WITHIN


def test_what_could_hide_a_change_is_no_pass() -> None:
    """A change of 3 %, or of one and a half tolerances where that is more."""
    wild = [1e6, 1.06e6, 0.97e6, 1.02e6, 0.95e6, 1.01e6]
    assert steady([1e6] * 6, wild).is_undecided
    rounds = [Round((1e6,), (each,), bool(n % 2)) for n, each in enumerate(wild)]
    tolerant = judged(TIME, rounds, Limits(tolerance=0.2))
    assert tolerant.verdict.outcome is Outcome.WITHIN
    assert tolerant.verdict.limit == pytest.approx(0.3)
    assert judged(TIME, rounds, Limits(tolerance=0.0)).verdict.limit == pytest.approx(0.03)
