"""Makes findings of what rules answer: what each saves beside the others, and who has a line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.rule import finding_of
from pytest_ttnn_perf.records.finding import Input, RuleOutcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.rule import Answer, Rule
    from pytest_ttnn_perf.analysis.checklist.savings import Saving
    from pytest_ttnn_perf.records.finding import Finding, Subject


#: The first digits of the rules that say how a model gets faster.
_ADVICE: Final = "12345678"
#: What adds less of a step is below what two runs of it differ by, and not worth a line.
_WORTH_A_LINE: Final = 0.01
#: The unit of limits that are shares of a step.
_OF_A_STEP: Final = "of a step"


def beside(subject: Subject, answers: Iterable[tuple[Rule, Answer]]) -> Subject:
    """Return a subject with what findings would save of its ops."""
    listed = list(answers)
    if not any(map(_advises, (rule for rule, _ in listed))):
        return subject
    claimed: dict[int, float] = {}
    for _, answer in listed:
        for row, ns in answer.savings.items():
            claimed[row] = max(claimed.get(row, 0.0), ns)
    return replace(subject, claimed=claimed)


def findings_of(
    answers: Sequence[tuple[Rule, Answer]], subject: Subject, waived: Collection[str]
) -> tuple[Finding, ...]:
    """Return answers as findings, with what each would save beside the others.

    Those of ``waived`` rules save nothing of what others would.
    """
    found = [(rule, answer) for rule, answer in answers if answer.outcome is RuleOutcome.FOUND]
    savings: Mapping[str, Saving] = {}
    kernels_ns = gaps_ns = 0.0
    if found and (subject.ops is not None or any(one.arithmetic for _, one in found)):
        from pytest_ttnn_perf.analysis.checklist.savings import Claim, critical_ns, rank_savings
        from pytest_ttnn_perf.analysis.checklist.waiting import told_gaps_ns
        from pytest_ttnn_perf.analysis.ops.regions import step_of

        times_ns = {} if subject.ops is None else critical_ns(step_of(subject.ops))
        kernels_ns = sum(times_ns.values())
        gaps_ns = told_gaps_ns(subject) or 0.0
        claims = {
            rule.code: Claim(one.savings, one.waiting_ns, one.at_most or rule.code in waived)
            for rule, one in found
            if one.arithmetic is not None
        }
        savings = rank_savings(claims, times_ns, gaps_ns)
    told = [
        finding_of(
            rule,
            answer,
            region=subject.region,
            saving=savings.get(rule.code),
            step_ns=kernels_ns + gaps_ns if kernels_ns else None,
        )
        for rule, answer in answers
    ]
    if not kernels_ns:
        return tuple(told)
    may_fold = {rule.code: rule for rule, answer in answers if not answer.always_told}
    return _folded(told, may_fold, savings, kernels_ns)


def _folded(
    findings: Sequence[Finding],
    may_fold: Mapping[str, Rule],
    savings: Mapping[str, Saving],
    kernels_ns: float,
) -> tuple[Finding, ...]:
    """Return findings, those that add too little for a line of their own marked as such.

    One that would save what another saves of the same ops is named in the line of that other.
    """
    order = {code: place for place, code in enumerate(savings)}
    told_with: dict[str, str] = {}
    folded: dict[str, str | None] = {}
    for finding in sorted(findings, key=lambda one: order.get(one.code, len(order))):
        code, saving, rule = finding.code, savings.get(finding.code), may_fold.get(finding.code)
        if finding.outcome is not RuleOutcome.FOUND or rule is None:
            continue
        if not _advises(rule) or rule.looks_at_others:
            continue
        worth_ns = _worth_ns(finding, kernels_ns)
        if finding.fails or (saving is not None and saving.adds_ns >= worth_ns):
            told_with[code] = code
            continue
        folded[code] = None
        if saving is not None and saving.saving_ns >= worth_ns:
            folded[code] = _most(saving.taken_ns, told_with)
        by = folded[code]
        if by is not None:
            told_with[code] = by
    return tuple(_marked(finding, folded) for finding in findings)


def _most(taken_ns: Mapping[str, float], told_with: Mapping[str, str]) -> str | None:
    """Return the finding with a line that saves most of what another would."""
    by: dict[str, float] = {}
    for code, ns in taken_ns.items():
        if code in told_with:
            by[told_with[code]] = by.get(told_with[code], 0.0) + ns
    return max(by, key=lambda code: by[code], default=None)


def _marked(finding: Finding, folded: Mapping[str, str | None]) -> Finding:
    code = finding.code
    also = tuple(sorted(other for other, by in folded.items() if by == code))
    if code not in folded and not also:
        return finding
    return replace(finding, quiet=code in folded, covered_by=folded.get(code), also=also)


def _advises(rule: Rule) -> bool:
    """Tell whether a rule is to make the ops of a step shorter."""
    return Input.OPS in rule.needs and rule.code[3] in _ADVICE


def _worth_ns(finding: Finding, kernels_ns: float) -> float:
    """Return what a finding must add to be worth a line: its own limit, if that is of a step."""
    limit = finding.limit if finding.unit == _OF_A_STEP else None
    return max(_WORTH_A_LINE, limit or 0.0) * kernels_ns
