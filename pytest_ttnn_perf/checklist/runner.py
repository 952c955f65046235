"""Asks every rule, and turns whatever it says into a finding."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._support.errors import RuleError
from pytest_ttnn_perf.checklist.rule import finding_of, not_measured
from pytest_ttnn_perf.model.finding import RuleOutcome, Unanswered
from pytest_ttnn_perf.model.rule_settings import RuleSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_ttnn_perf.checklist.rule import Answer, Rule
    from pytest_ttnn_perf.model.finding import Finding
    from pytest_ttnn_perf.model.subject import Input, Subject


_USUAL: Final = RuleSettings()


class Group(NamedTuple):
    """Rules that need the same."""

    needs: tuple[Input, ...]
    rules: tuple[Rule, ...]
    codes: tuple[str, ...]


class Answered(NamedTuple):
    """What rules say, and why some say nothing."""

    findings: tuple[Finding, ...]
    unanswered: tuple[Unanswered, ...]


def run_rules(rules: Iterable[Rule], subject: Subject) -> tuple[Finding, ...]:
    """Return the finding of every rule.

    Raises:
        RuleError: one raised.
    """
    return tuple(finding_of(rule, _answer(rule, subject)) for rule in rules)


def ask_rules(groups: Iterable[Group], subject: Subject) -> Answered:
    """Return the findings of the rules that have an answer, and why the others have none.

    Raises:
        RuleError: one raised.
    """
    findings: list[Finding] = []
    without: dict[tuple[RuleOutcome, str], tuple[str, ...]] = {}

    def leave(outcome: RuleOutcome, why: str, codes: tuple[str, ...]) -> None:
        without[outcome, why] = (*without.get((outcome, why), ()), *codes)

    for group in groups:
        if group.needs and not any(map(subject.has, group.needs)):
            leave(RuleOutcome.NOT_MEASURED, _why_absent(group.needs, subject), group.codes)
            continue
        for rule in group.rules:
            answer = _asked(rule, subject)
            if answer.outcome is RuleOutcome.FOUND or answer.outcome is RuleOutcome.CLEAN:
                findings.append(finding_of(rule, answer))
                continue
            leave(answer.outcome, answer.reason or "", (rule.code,))
    unanswered = (Unanswered(*why, codes) for why, codes in without.items())
    return Answered(tuple(findings), tuple(unanswered))


def _answer(rule: Rule, subject: Subject) -> Answer:
    if rule.needs and not any(map(subject.has, rule.needs)):
        return not_measured(_why_absent(rule.needs, subject))
    return _asked(rule, subject)


def _asked(rule: Rule, subject: Subject) -> Answer:
    try:
        return rule.check(subject)
    except Exception as cause:
        raise RuleError(rule.code, cause) from cause


def _why_absent(needs: Sequence[Input], subject: Subject) -> str:
    known = [subject.absent[needed] for needed in needs if needed in subject.absent]
    return known[0] if known else f"needs {' or '.join(needed.value for needed in needs)}"


def as_configured(
    findings: tuple[Finding, ...],
    rules: Mapping[str, RuleSettings],
    waived: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Return findings as heavy as the project has them, and waived where it or a test does so."""
    if not rules and not waived:
        return findings
    return tuple(
        _as_configured(finding, rules.get(finding.code, _USUAL), (waived or {}).get(finding.code))
        for finding in findings
    )


def _as_configured(finding: Finding, rule: RuleSettings, waived: str | None) -> Finding:
    return replace(
        finding,
        severity=rule.severity or finding.severity,
        waived=(waived or rule.waive) if finding.outcome is RuleOutcome.FOUND else None,
    )
