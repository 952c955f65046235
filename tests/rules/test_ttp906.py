from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp906_pcc_limit_lowered import pcc_limit_lowered
from pytest_ttnn_perf.records.finding import Evidence, Subject
from tests.rules.answers import ask
from tests.rules.observations import accuracy, measured, timed

RULE = pcc_limit_lowered


def test_lowered_limits_the_lowest_first() -> None:
    subject = measured(
        accuracy(0.999, at_least=0.98),
        accuracy(0.999, name="cache_pcc", at_least=0.9),
        accuracy(0.999, name="logits_pcc"),
    )
    assert ask(RULE, subject) == found(
        "cache_pcc needs 0.9 only; pcc needs 0.98 only",
        value=0.9,
        limit=0.99,
        unit="PCC",
        evidence=[Evidence("cache_pcc", 0.9, "PCC"), Evidence("pcc", 0.98, "PCC")],
    )


def test_a_limit_at_the_usual_is_clean() -> None:
    expected = clean(0.99, limit=0.99, unit="PCC")
    assert ask(RULE, measured(accuracy(0.5, at_least=0.99))) == expected
    assert ask(RULE, measured(accuracy(0.5))) == expected


def test_without_a_pcc() -> None:
    assert ask(RULE, measured(timed(5.0))) == not_measured("the test checks no PCC")


def test_without_input() -> None:
    assert ask(RULE, Subject()) == not_measured("needs a measured test")
