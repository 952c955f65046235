"""Findings laid out: what is wrong with a model first, and what could not be told last."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.finding import RuleOutcome
from pytest_ttnn_perf.model.metric import Metric
from pytest_ttnn_perf.report.listing import Listing
from pytest_ttnn_perf.report.numbers import counted, format_fraction, format_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.model.finding import Evidence, Finding

_FIELDS: Final = ("code", "name", "severity", "outcome", "reason", "value", "limit", "unit")
_TIME: Final = Metric("time", "ns")


def checklist_document(findings: Iterable[Finding]) -> dict[str, object]:
    """Return findings as plain JSON."""
    return {"rules": [_document(finding) for finding in findings]}


def checklist_listing(findings: Sequence[Finding], *, head: Sequence[str] = ()) -> Listing:
    """Lay findings out in the order in which they are worth reading."""
    lines = [*head]
    for finding in findings:
        if finding.outcome is RuleOutcome.FOUND:
            lines += finding_lines(finding)
    lines += [""] if len(lines) > len(head) else []
    lines += _quiet(findings)
    rows = tuple(tuple(_document(finding)[name] for name in _FIELDS) for finding in findings)
    return Listing((*lines, count_line(findings)), checklist_document(findings), _FIELDS, rows)


def finding_lines(finding: Finding) -> Iterator[str]:
    """Lay one finding out: what was found against the limit, and where."""
    title = f"{finding.code} {finding.name} ({finding.severity.value})"
    yield f"{title}: {finding.reason}{_limit(finding)}"
    for evidence in finding.evidence:
        yield f"    {_evidence(evidence)}"


def count_line(findings: Iterable[Finding]) -> str:
    """Count the outcomes, so that what was not measured never looks clean."""
    outcomes = Counter(finding.outcome for finding in findings)
    told = ", ".join(
        f"{outcomes[outcome]} {outcome.value}" for outcome in RuleOutcome if outcomes[outcome]
    )
    return f"{counted(sum(outcomes.values()), 'rule')}: {told}"


def _quiet(findings: Iterable[Finding]) -> Iterator[str]:
    """Say in one line each why rules could not be asked, or need not be."""
    for outcome in (RuleOutcome.NOT_MEASURED, RuleOutcome.NOT_APPLICABLE):
        reasons: dict[str, list[str]] = {}
        for finding in findings:
            if finding.outcome is outcome:
                reasons.setdefault(finding.reason or "", []).append(finding.code)
        for reason, codes in reasons.items():
            yield f"{outcome.value} {', '.join(codes)}: {reason}"


def _document(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "outcome": finding.outcome.value,
        "reason": finding.reason,
        "value": finding.value,
        "limit": finding.limit,
        "unit": finding.unit,
        "evidence": [
            {"subject": each.subject, "value": each.value, "unit": each.unit}
            for each in finding.evidence
        ],
    }


def _limit(finding: Finding) -> str:
    return "" if finding.limit is None else f", limit {shown(finding.limit, finding.unit)}"


def _evidence(evidence: Evidence) -> str:
    if evidence.value is None:
        return evidence.subject
    return f"{evidence.subject}: {shown(evidence.value, evidence.unit)}"


def shown(value: float, unit: str) -> str:
    """Return a number in its unit; fractions "of" something in per cent."""
    if unit.startswith("of "):
        return f"{format_fraction(value)} {unit}"
    if unit == "ns":
        return format_value(_TIME, value)
    return f"{value:,.4g} {unit}".strip()
