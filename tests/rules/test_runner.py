"""Asking rules: every one ends in an outcome, and one that raises is never a pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from pytest_ttnn_perf._base.errors import RuleError
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Rule, clean, not_applicable
from pytest_ttnn_perf.analysis.checklist.runner import (
    Answered,
    Group,
    ask_rules,
    run_rules,
    selected,
)
from pytest_ttnn_perf.records.finding import (
    Finding,
    Input,
    RuleOutcome,
    Severity,
    Subject,
    Unanswered,
)
from pytest_ttnn_perf.records.observation import Observation


@dataclass(frozen=True, slots=True)
class OfTests(Rule):
    """Does not apply."""

    code: ClassVar[str] = "TTP998"
    name: ClassVar[str] = "of-tests"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.TEST,)

    def check(self, subject: Subject) -> Answer:
        return not_applicable("no trace") if subject.facts else clean(1, limit=2, unit="calls")


@dataclass(frozen=True, slots=True)
class Raises(OfTests):
    """Is wrong."""

    code: ClassVar[str] = "TTP999"

    def check(self, subject: Subject) -> Answer:
        return clean(1 / len(subject.facts))


RULES = (OfTests(), Raises())
MEASURED = Subject(observation=Observation("test"))
GROUPS = (Group((Input.TEST,), (OfTests(),), ("TTP998",)),)


def test_what_is_missing_is_named() -> None:
    assert run_rules(RULES, Subject()) == tuple(
        Finding(
            code,
            "of-tests",
            Severity.WARNING,
            RuleOutcome.NOT_MEASURED,
            "needs a measured test",
        )
        for code in ("TTP998", "TTP999")
    )


@pytest.mark.parametrize(
    ("subject", "answered"),
    [
        (
            MEASURED,
            Answered(
                (
                    Finding(
                        "TTP998",
                        "of-tests",
                        Severity.WARNING,
                        RuleOutcome.CLEAN,
                        None,
                        1,
                        2,
                        "calls",
                    ),
                ),
                (),
            ),
        ),
        (
            Subject(observation=Observation("test"), facts={"use_trace": True}),
            Answered((), (Unanswered(RuleOutcome.NOT_APPLICABLE, "no trace", ("TTP998",)),)),
        ),
        (
            Subject(),
            Answered(
                (), (Unanswered(RuleOutcome.NOT_MEASURED, "needs a measured test", ("TTP998",)),)
            ),
        ),
        (
            Subject(absent={Input.TEST: "nothing ran"}),
            Answered((), (Unanswered(RuleOutcome.NOT_MEASURED, "nothing ran", ("TTP998",)),)),
        ),
    ],
    ids=["clean", "not applicable", "not measured", "not measured by name"],
)
def test_groups_tell_the_same_as_rules_one_by_one(subject: Subject, answered: Answered) -> None:
    assert ask_rules(GROUPS, subject) == answered
    (alone,) = run_rules([OfTests()], subject)
    told = {finding.code: finding.outcome for finding in answered.findings}
    told |= {code: each.outcome for each in answered.unanswered for code in each.codes}
    assert told == {alone.code: alone.outcome}


def test_a_rule_that_raises_is_a_defect_with_its_name() -> None:
    with pytest.raises(RuleError) as raised:
        run_rules(RULES, MEASURED)
    assert str(raised.value) == (
        "rule TTP999 raised ZeroDivisionError: division by zero: a defect of ttnn-perf; ignore "
        "the rule to go on"
    )


def test_the_fix_is_the_first_sentence_of_what_to_do() -> None:
    @dataclass(frozen=True, slots=True)
    class Documented(OfTests):
        """Finds.

        ## What to do
        Use `x.y` or
        less. Then look again.

        ## Where it looks
        Nowhere. Ever.
        """

    assert Documented.fix() == "Use `x.y` or less."


def test_groups_lose_no_rule_whatever_facts_are_stated() -> None:
    subject = Subject(observation=Observation("test"), facts={"data_parallel": 2})
    selection = selected((), (), {})

    answered = ask_rules(selection.groups, subject)

    told = {finding.code: finding.outcome for finding in answered.findings}
    told |= {code: each.outcome for each in answered.unanswered for code in each.codes}
    assert told == {each.code: each.outcome for each in run_rules(selection.rules, subject)}
