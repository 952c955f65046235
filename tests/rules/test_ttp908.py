from __future__ import annotations

from math import nan

from pytest_ttnn_perf.analysis.checklist.runner import rule_of
from pytest_ttnn_perf.core.finding import HelperPcc, RuleOutcome, Subject

MASKED = HelperPcc("pcc", "comp_pcc", 0.9991, nan, "actual holds 1 NaN")
LESS = HelperPcc("pcc_2", "assert_with_pcc", None, 0.5, "the values do not correlate as was told")


def test_what_a_helper_told_wrongly_is_named_with_both_numbers() -> None:
    answer = rule_of("TTP908").check(Subject(helper_pccs=(MASKED, LESS)))

    assert answer.outcome is RuleOutcome.FOUND
    assert answer.reason == (
        "pcc: comp_pcc says 0.9991, and the PCC does not exist: actual holds 1 NaN; 1 more"
    )
    assert [each.subject for each in answer.evidence] == [
        "pcc (comp_pcc): actual holds 1 NaN",
        "pcc_2 (assert_with_pcc): the values do not correlate as was told",
    ]


def test_no_number_of_the_helper() -> None:
    answer = rule_of("TTP908").check(Subject(helper_pccs=(LESS,)))

    assert answer.reason == (
        "pcc_2: assert_with_pcc says passed, and the PCC is 0.5: "
        "the values do not correlate as was told"
    )


def test_nothing_was_told_wrongly() -> None:
    assert rule_of("TTP908").check(Subject(helper_pccs=())).outcome is RuleOutcome.CLEAN
