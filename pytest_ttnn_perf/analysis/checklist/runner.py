"""Selects rules, asks them about a test, and turns their answers into findings."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.errors import RuleError, UsageError
from pytest_ttnn_perf.analysis.checklist.registry import codes, may_be_custom, needs_of, rule_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, finding_of
from pytest_ttnn_perf.records.finding import RuleOutcome, Unanswered
from pytest_ttnn_perf.records.settings import RuleSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.rule import Rule
    from pytest_ttnn_perf.records.finding import Finding, Input, Subject


_USUAL: Final = RuleSettings()
#: The limits of a rule that are other than usual.
_Limits = tuple[tuple[str, float], ...]


class Group:
    """Rules that need the same, imported when a test has it."""

    def __init__(
        self, needs: tuple[Input, ...], codes: tuple[str, ...], limits: Mapping[str, _Limits]
    ) -> None:
        self.needs = needs
        self.codes = codes
        self._limits = limits

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, with the limits that the project sets."""
        return tuple(
            rule_of(code).with_limits(**dict(self._limits.get(code, ()))) for code in self.codes
        )


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
            answer = _ask_rule(rule, subject)
            if answer.outcome is RuleOutcome.FOUND or answer.outcome is RuleOutcome.CLEAN:
                findings.append(finding_of(rule, answer))
                continue
            leave(answer.outcome, answer.reason or "", (rule.code,))
    unanswered = (Unanswered(*why, codes) for why, codes in without.items())
    return Answered(tuple(findings), tuple(unanswered))


def _answer(rule: Rule, subject: Subject) -> Answer:
    if rule.needs and not any(map(subject.has, rule.needs)):
        return Answer.not_measured(_why_absent(rule.needs, subject))
    return _ask_rule(rule, subject)


def _ask_rule(rule: Rule, subject: Subject) -> Answer:
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
    """Apply the severities and waivers that the project and the test configure."""
    if not rules and not waived:
        return findings
    configured: list[Finding] = []
    for finding in findings:
        rule = rules.get(finding.code, _USUAL)
        waiver = (waived or {}).get(finding.code) or rule.waive
        if finding.outcome is not RuleOutcome.FOUND:
            waiver = None
        severity = rule.severity or finding.severity
        configured.append(replace(finding, severity=severity, waived=waiver))
    return tuple(configured)


def select_rules(
    select: Sequence[str], ignore: Sequence[str], settings: Mapping[str, RuleSettings]
) -> tuple[Group, ...]:
    """Return the rules of some codes, or prefixes of codes, all if none is named, by their needs.

    Raises:
        UsageError: a code that no rule begins with, a limit that a rule does not have, or no rule
            is left.
    """
    limits = tuple((code, tuple(rule.limits.items())) for code, rule in settings.items())
    # Before their plugins are loaded, and on the command line, rules of others are not known.
    named = tuple(code for code in select if not may_be_custom(code))
    if select and not named:
        return ()
    left_out = tuple(code for code in ignore if not may_be_custom(code))
    limits = tuple(each for each in limits if not may_be_custom(each[0]))
    return _select_rules(codes(), named, left_out, limits)


def forget_selections() -> None:
    """Select anew: there are other rules now."""
    _select_rules.cache_clear()


@lru_cache(maxsize=2)  # every test of a process asks for the same, and some for one rule more
def _select_rules(
    known: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    limits: tuple[tuple[str, _Limits], ...],
) -> tuple[Group, ...]:
    for option, named in (("select", select), ("ignore", ignore)):
        for code in named:
            if not any(each.startswith(code) for each in known):
                message = f"{option}: no rule begins with {code!r}; `ttnn-perf rules` lists them"
                raise UsageError(message)
    for code, values in limits:
        if code not in known:
            message = f"rules.{code}: there is no such rule; `ttnn-perf rules` lists them"
            raise UsageError(message)
        if values:
            rule_of(code).with_limits(**dict(values))
    groups: dict[tuple[Input, ...], list[str]] = {}
    for code in known:
        if code.startswith(select or "") and not code.startswith(ignore):
            groups.setdefault(needs_of(code), []).append(code)
    if not groups:
        message = f"ignore: {', '.join(ignore)} leaves none of the rules that select names"
        raise UsageError(message)
    given = dict(limits)
    return tuple(Group(needs, tuple(alike), given) for needs, alike in groups.items())
