"""Asks every rule, and turns whatever it says into a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.checklist.rule import finding_of, not_measured

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.checklist.rule import Answer, Rule
    from pytest_ttnn_perf.model.finding import Finding
    from pytest_ttnn_perf.model.subject import Subject


def run_rules(rules: Iterable[Rule], subject: Subject) -> tuple[Finding, ...]:
    """Return the finding of every rule. One that raises is a defect of ours, and raises here."""
    return tuple(finding_of(rule, _answer(rule, subject)) for rule in rules)


def _answer(rule: Rule, subject: Subject) -> Answer:
    if rule.needs and not any(map(subject.has, rule.needs)):
        return not_measured(_why(rule, subject))
    return rule.check(subject)


def _why(rule: Rule, subject: Subject) -> str:
    known = [subject.absent[needed] for needed in rule.needs if needed in subject.absent]
    return known[0] if known else f"needs {' or '.join(needed.value for needed in rule.needs)}"
