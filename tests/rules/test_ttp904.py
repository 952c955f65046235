from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.gate.judge import judge_test
from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_measured
from tests.rules.observations import MetricObservation, accuracy, measured, timed

ask = Ask("TTP904")
LIMIT = limit(0.002, "PCC")
NO_BASELINE = not_measured("there is no baseline of a PCC to compare with")


def judged(*observed: MetricObservation, **before: float) -> Subject:
    """Return a test with what the gate says of it; ``before`` are the PCCs of its baseline."""
    subject = measured(*observed)
    assert subject.observation is not None
    metrics = {
        each.metric.name: MetricBaseline(each.metric, (Session(before[each.metric.name], 0.0, 1),))
        for each in observed
        if each.metric.name in before
    }
    accepted = Acceptance("2026-11-15T10:00:00Z")
    baseline = TestBaseline(accepted, metrics) if metrics else None
    return replace(subject, verdicts=judge_test(subject.observation, baseline))


def test_a_pcc_lower_than_its_baseline() -> None:
    drop = 0.9995 - 0.995
    answer = ask(judged(accuracy(0.999, 0.995), pcc=0.9995))
    assert answer.limit == pytest.approx(0.002)
    assert replace(answer, limit=0.002) == LIMIT.found(
        drop, "pcc dropped by 0.004500", [Evidence("pcc", drop, "PCC")]
    )


def test_several_the_largest_drop_first() -> None:
    subject = judged(
        accuracy(0.99, name="a_pcc"),
        accuracy(0.98, name="b_pcc"),
        accuracy(0.999, name="c_pcc"),
        timed(5.0, name="latency"),
        a_pcc=1.0, b_pcc=1.0, c_pcc=1.0, latency=1.0,
    )  # fmt: skip
    assert ask(subject).reason == "b_pcc dropped by 0.020000; a_pcc dropped by 0.010000"


@pytest.mark.parametrize(
    ("now", "tolerance", "drop", "allowed"),
    [(0.9985, None, 0.0015, 0.002), (1.0, None, 0.0, 0.002), (0.75, 0.25, 0.25, 0.25)],
    ids=["less", "same", "tolerance"],
)
def test_what_the_gate_allows_is_clean(
    now: float, tolerance: float | None, drop: float, allowed: float
) -> None:
    answer = ask(judged(accuracy(now, tolerance=tolerance), pcc=1.0))
    assert (answer.value, answer.limit) == pytest.approx((drop, allowed))
    assert replace(answer, value=drop, limit=allowed) == clean(drop, limit=allowed, unit="PCC")


def test_a_gain_is_clean() -> None:
    assert ask(judged(accuracy(0.5), pcc=0.25)) == LIMIT.clean(-0.25)


@pytest.mark.parametrize(
    "subject",
    [
        judged(accuracy(0.99)),
        judged(accuracy(math.nan), pcc=0.99),
        # Below its own limit: that is for TTP901 to say.
        judged(accuracy(0.5, at_least=0.99), pcc=0.999),
    ],
    ids=["new", "not a number", "below its limit"],
)
def test_what_was_not_compared_with_a_baseline(subject: Subject) -> None:
    assert ask(subject) == NO_BASELINE


def test_before_the_test_is_judged() -> None:
    why = "the test was not compared with its baseline"
    assert ask(measured(accuracy(0.99))) == not_measured(why)


def test_without_input() -> None:
    assert ask(measured()) == not_measured("the test checks no PCC")
