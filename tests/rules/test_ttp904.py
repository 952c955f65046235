from __future__ import annotations

import math

from pytest_ttnn_perf.checklist.rule import clean, found, not_measured
from pytest_ttnn_perf.checklist.rules.ttp904_pcc_dropped import PccDropped
from pytest_ttnn_perf.model.finding import Evidence
from pytest_ttnn_perf.model.subject import Subject
from tests.rules.answers import ask
from tests.rules.observations import accuracy, measured

RULE = PccDropped()
NO_BASELINE = not_measured("there is no baseline of a PCC to compare with")


def test_a_pcc_lower_than_its_baseline() -> None:
    drop = 0.9995 - 0.995
    assert ask(RULE, measured(accuracy(0.999, 0.995), facts={"pcc_baseline": 0.9995})) == found(
        "pcc dropped by 0.004500",
        value=drop,
        limit=0.002,
        unit="PCC",
        evidence=[Evidence("pcc", drop, "PCC")],
    )


def test_several_the_largest_drop_first() -> None:
    subject = measured(
        accuracy(0.99, name="a_pcc"),
        accuracy(0.98, name="b_pcc"),
        accuracy(0.999, name="c_pcc"),
        facts={"a_pcc_baseline": 1.0, "b_pcc_baseline": 1.0, "c_pcc_baseline": 1.0},
    )
    assert ask(RULE, subject).reason == "b_pcc dropped by 0.020000; a_pcc dropped by 0.010000"


def test_a_drop_at_the_limit_is_clean() -> None:
    # In binary, this difference is a little above 0.002.
    answer = ask(RULE, measured(accuracy(0.99), facts={"pcc_baseline": 0.992}))
    assert answer == clean(0.992 - 0.99, limit=0.002, unit="PCC")


def test_a_gain_is_clean() -> None:
    answer = ask(RULE, measured(accuracy(0.5), facts={"pcc_baseline": 0.25}))
    assert answer == clean(-0.25, limit=0.002, unit="PCC")


def test_a_tolerance_of_the_marker_replaces_the_limit() -> None:
    subject = measured(accuracy(0.5, tolerance=0.25), facts={"pcc_baseline": 0.75})
    assert ask(RULE, subject) == clean(0.25, limit=0.25, unit="PCC")


def test_without_a_baseline() -> None:
    assert ask(RULE, measured(accuracy(0.99))) == NO_BASELINE
    assert ask(RULE, measured(accuracy(math.nan), facts={"pcc_baseline": 0.99})) == NO_BASELINE


def test_without_input() -> None:
    assert ask(RULE, measured()) == not_measured("the test checks no PCC")
    assert ask(RULE, Subject()) == not_measured("needs a measured test")
