"""Laws of the shifted machine, whatever the tests and their numbers are."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.observation import (
    MetricObservation,
    Observation,
    Outcome,
    Reason,
    Verdict,
)
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY, judge_test
from pytest_ttnn_perf.gate.machine_shift import explain_by_shift, shift_of
from pytest_ttnn_perf.gate.ratios import centre_of
from tests.properties.strategies import MANY, SOME, between

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    Judged = list[tuple[Verdict, ...]]

#: No limit in these runs reaches so far: the noise of their baselines is small.
FAR = 0.5
#: As many tests as it takes.
ENOUGH = DEFAULT_POLICY.shift_tests
METRICS = (
    Metric("time", "ms"),
    Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT),
    Metric("interval", "ms", Better.HIGHER),
    Metric("load", "1/s", kind=Kind.THROUGHPUT),
)
#: The stored timings of one test, by name.
Stored = dict[str, MetricBaseline]


@st.composite
def stored_tests(draw: DrawFn) -> list[Stored]:
    """Draw the baselines of enough tests, each with a few timings in either direction."""
    # Noise by seed: a run of many numbers is slow to draw, and none of them is special here.
    rng = Random(draw(st.integers(0, 10_000)))
    timings = st.lists(st.sampled_from(METRICS), min_size=1, max_size=2, unique=True)
    tests = draw(st.lists(timings, min_size=ENOUGH, max_size=ENOUGH + 3))
    return [{metric.name: _baseline(metric, rng) for metric in test} for test in tests]


def _baseline(metric: Metric, rng: Random) -> MetricBaseline:
    base = 10 ** rng.uniform(1, 6)
    medians = [base * math.exp(rng.gauss(0, 0.01)) for _ in range(rng.randint(1, 6))]
    sessions = (Session(median, 0.0, 10, f"run-{k}") for k, median in enumerate(medians))
    return MetricBaseline(metric, tuple(sessions))


def run_at(stored: Stored, *worse: float) -> tuple[Verdict, ...]:
    """Judge a run in which timings are worse than their centres by the logarithms ``worse``."""
    metrics = {}
    for (name, baseline), change in zip(stored.items(), worse, strict=True):
        sign = -1 if baseline.metric.better is Better.HIGHER else 1
        value = centre_of(baseline) * math.exp(sign * change)
        metrics[name] = MetricObservation(baseline.metric, (value,))
    return judge_test(Observation("t.py::t", metrics), TestBaseline(Acceptance("now"), stored))


@SOME
@given(stored_tests(), between(FAR, 3))
def test_a_machine_that_slows_all_tests_alike_is_told_by_that_factor_and_fails_none(
    stored: list[Stored], slower: float
) -> None:
    run = [run_at(test, *[slower] * len(test)) for test in stored]
    shift = shift_of(run)
    assert shift is not None
    assert shift.change == pytest.approx(math.expm1(slower), rel=1e-6)
    assert shift.moved == shift.voting == len(run)
    after = [verdict for verdicts in run for verdict in explain_by_shift(verdicts, shift)]
    assert {(v.outcome, v.reason) for v in after} == {(Outcome.SHIFTED, Reason.SHIFTED)}


#: Verdicts as the gate makes them or as a record of anyone's may hold them: no comparison says
#: that less than nothing is left, or has a limit below zero.
ANY_VERDICTS = st.builds(
    Verdict,
    metric=st.sampled_from([*METRICS, Metric("ops", "", kind=Kind.COUNT)]),
    outcome=st.sampled_from(Outcome),
    reason=st.sampled_from([None, Reason.ABSOLUTE_LIMIT, Reason.SHIFTED]),
    change=st.none() | st.just(-1.0) | between(-1, 1e100) | between(-0.2, 0.2),
    limit=st.none() | st.just(0.0) | between(0, 1e100) | between(0, 0.2),
    confirmed=st.just(()) | st.just((1.0,)),
    machine=st.none() | between(-0.5, 1.0),
)


@MANY
@given(st.lists(st.lists(ANY_VERDICTS, max_size=2), max_size=8))
@example([[Verdict(METRICS[0], Outcome.IMPROVED, change=-1.0, limit=0.02)]] * ENOUGH)
def test_whatever_the_verdicts_are_a_shift_explains_what_is_beyond_its_limit_and_no_more(
    run: list[list[Verdict]],
) -> None:
    shift = shift_of(run)
    if shift is None:
        return
    for verdicts in run:
        for before, after in zip(verdicts, explain_by_shift(verdicts, shift), strict=True):
            if after != before:
                # Once measured again, controls have cleared it, and it says what by.
                suspect = Outcome.WITHIN if before.confirmed else Outcome.REGRESSED
                assert (before.outcome, before.reason) == (suspect, None)
                assert (after.outcome, after.reason) == (Outcome.SHIFTED, Reason.SHIFTED)
                assert shift.worse
