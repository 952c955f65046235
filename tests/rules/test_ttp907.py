from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.gate.judge import judge_test
from tests.rules.answers import Ask, Evidence, Subject, limit, not_measured
from tests.rules.observations import MetricObservation, accuracy, measured, timed

ask = Ask("TTP907")
LIMIT = limit(3, "times")
ROUNDING = "an error below 0.0001 is rounding"


def judged(*observed: MetricObservation, since: int = 0, **before: tuple[float, ...]) -> Subject:
    """Return a test with what the gate says of it; ``before`` are the sessions of its baseline."""
    subject = measured(*observed)
    assert subject.observation is not None
    metrics = {
        each.metric.name: MetricBaseline(
            each.metric, tuple(Session(pcc, 0.0, 1) for pcc in before[each.metric.name]), since
        )
        for each in observed
        if each.metric.name in before
    }
    accepted = Acceptance("2026-11-15T10:00:00Z")
    baseline = TestBaseline(accepted, metrics) if metrics else None
    return replace(subject, verdicts=judge_test(subject.observation, baseline))


def test_a_pcc_that_passes_with_twenty_times_the_error() -> None:
    answer = ask(judged(accuracy(0.9999, 0.998), pcc=(0.9999,)))
    assert answer == LIMIT.found(
        20.0,
        "pcc 0.998000, baseline 0.999900: 20 times the error (0.002000 against 0.000100)",
        [Evidence("pcc", 20.0, "times")],
    )


def test_several_the_most_grown_first() -> None:
    subject = judged(
        accuracy(0.999, name="a_pcc"),
        accuracy(0.9985, name="b_pcc"),
        accuracy(0.9998, name="c_pcc"),
        timed(1.0, name="latency"),
        a_pcc=(0.9998,), b_pcc=(0.9999,), c_pcc=(0.9999,), latency=(1.0,),
    )  # fmt: skip
    answer = ask(subject)
    assert answer.reason == (
        "b_pcc 0.998500, baseline 0.999900: 15 times the error (0.001500 against 0.000100); "
        "1 more grew, too"
    )
    assert answer.evidence == (Evidence("b_pcc", 15.0, "times"), Evidence("a_pcc", 5.0, "times"))


@pytest.mark.parametrize(
    ("then", "now", "times"),
    [
        (0.9999, 0.9997, 3.0),
        (0.9997, 0.9991, 3.0),
        (0.99996, 0.99988, 3.0),
        (0.99999, 0.9999, 10.0),
        (0.9995, 0.9985, 3.0),
    ],
)
def test_on_a_boundary_it_is_found(then: float, now: float, times: float) -> None:
    answer = ask(judged(accuracy(now), pcc=(then,)))
    assert (answer.outcome.value, answer.value) == ("FOUND", times)


@pytest.mark.parametrize(
    ("then", "now", "times"),
    [
        (0.9999, 0.99970001, 2.9999),
        (0.998, 0.9961, 1.95),
        (0.5, 0.4985, 1.003),
        (0.999, 0.9999, 0.1),
        (0.9999, 1.0, 0.0),
        (1.0, 1.0, 0.0),
    ],
    ids=["just below", "large already", "far off", "gain", "perfect now", "perfect"],
)
def test_less_is_clean(then: float, now: float, times: float) -> None:
    assert ask(judged(accuracy(now), pcc=(then,))) == LIMIT.clean(times)


@pytest.mark.parametrize(
    ("then", "now", "times"),
    [
        (0.9999999, 0.999999, 0.1),
        (1.0, 0.99999, 1.0),
        (1.0, 0.99995, 5.0),
        (0.99998, 0.99990001, 4.9995),
    ],
)
def test_an_error_of_rounding_is_clean(then: float, now: float, times: float) -> None:
    reason = ROUNDING if times >= 3 else None
    assert ask(judged(accuracy(now), pcc=(then,))) == LIMIT.clean(times, reason=reason)


def test_a_baseline_without_error_counts_as_a_little_of_it() -> None:
    for then in (1.0, 0.9999999, 1.0 + 2e-16):
        answer = ask(judged(accuracy(0.999), pcc=(then,)))
        assert (answer.value, answer.reason) == (
            100.0,
            "pcc 0.999000, baseline 1.000000: at least 100 times the error (0.001000 against at "
            "most 0.000010)",
        )


def test_sessions_that_differ_show_what_is_usual() -> None:
    sessions = (0.9999, 0.9999, 0.9998)
    assert ask(judged(accuracy(0.9995), pcc=sessions)) == LIMIT.clean(2.5)
    answer = ask(judged(accuracy(0.998), pcc=sessions))
    assert answer == LIMIT.found(
        10.0,
        "pcc 0.998000, baseline 0.999900: 20 times the error (0.002000 against 0.000100), "
        "10 times that of its worst session",
        [Evidence("pcc", 10.0, "times")],
    )


def test_sessions_from_before_the_last_accept_do_not_count() -> None:
    subject = judged(accuracy(0.9995), since=1, pcc=(0.9993, 0.9999))
    assert ask(subject).value == 5.0


@given(st.integers(0, 4000), st.lists(st.integers(0, 4000), min_size=1, max_size=5))
def test_any_errors_in_millionths(now: int, then: list[int]) -> None:
    sessions = tuple(1 - error / 1e6 for error in then)
    subject = judged(accuracy(1 - now / 1e6), pcc=sessions)
    assert subject.verdicts is not None
    passes = subject.verdicts[0].outcome.value != "REGRESSED"
    found = passes and now >= 100 and now >= 3 * max(10, *then)
    assert (ask(subject).outcome.value == "FOUND") == found


def rounding_error(bits: int) -> float:
    """Return 1 - PCC of normally distributed numbers that keep some bits of mantissa."""
    numbers = np.random.default_rng(0).standard_normal(100_000)
    mantissas, exponents = np.frexp(numbers)
    rounded = np.ldexp(np.round(mantissas * 2**bits) / 2**bits, exponents)
    return float(1 - np.corrcoef(numbers, rounded)[0, 1])


def test_where_the_limits_come_from() -> None:
    bfloat16 = rounding_error(8)
    assert bfloat16 == pytest.approx(1.4e-6, rel=0.05)
    assert 1e-4 / bfloat16 == pytest.approx(70, rel=0.05)
    assert rounding_error(7) / bfloat16 == pytest.approx(4, rel=0.02)


def test_limits_of_the_project() -> None:
    subject = judged(accuracy(0.998), pcc=(0.9999,))
    assert ask.with_limits(growth=21)(subject).outcome.value == "CLEAN"
    assert ask.with_limits(growth=20)(subject).outcome.value == "FOUND"
    assert ask.with_limits(error=0.003)(subject).reason == "an error below 0.003 is rounding"


def test_what_the_gate_fails_is_not_told_again() -> None:
    fails = not_measured("the gate fails the PCC")
    assert ask(judged(accuracy(0.99), pcc=(0.9999,))) == fails
    assert ask(judged(accuracy(0.5, at_least=0.99), pcc=(0.9999,))) == fails
    # Of two, the one that passes is told.
    both = judged(
        accuracy(0.99, name="a_pcc"), accuracy(0.999, name="b_pcc"),
        a_pcc=(0.9999,), b_pcc=(0.9999,),
    )  # fmt: skip
    assert [each.subject for each in ask(both).evidence] == ["b_pcc"]


def test_a_drop_that_the_test_allows_is_told() -> None:
    subject = judged(accuracy(0.95, tolerance=0.1), pcc=(0.9999,))
    assert ask(subject).value == 500.0


@pytest.mark.parametrize(
    "subject",
    [
        judged(accuracy(0.99)),
        judged(accuracy(math.nan), pcc=(0.99,)),
        judged(accuracy(99.8), pcc=(99.9,)),
    ],
    ids=["new", "not a number", "in per cent"],
)
def test_what_was_not_compared_with_a_baseline(subject: Subject) -> None:
    assert ask(subject) == not_measured("there is no baseline of a PCC to compare with")


def test_before_the_test_is_judged() -> None:
    why = "the test was not compared with its baseline"
    assert ask(measured(accuracy(0.99))) == not_measured(why)


def test_without_input() -> None:
    assert ask(measured()) == not_measured("the test checks no PCC")
