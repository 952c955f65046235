"""Findings laid out: what is wrong with a model first, and what could not be told last."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted, percent, size, unit_for
from pytest_ttnn_perf.model.finding import RuleOutcome
from pytest_ttnn_perf.report.listing import Listing
from pytest_ttnn_perf.report.numbers import format_fraction, format_ns
from pytest_ttnn_perf.report.optimization import progress_block, progress_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.model.finding import Evidence, Finding
    from pytest_ttnn_perf.model.progress import Progress

_FIELDS: Final = (
    *("code", "name", "severity", "outcome", "reason", "value", "limit", "unit", "fix", "waived"),
)


def checklist_listing(
    findings: Sequence[Finding], *, bottleneck: str | None, progress: Progress | None
) -> Listing:
    """Lay findings out in the order in which they are worth reading."""
    lines: list[str] = []
    for finding in findings:
        if finding.outcome is RuleOutcome.FOUND:
            lines += finding_lines(finding)
    lines += [""] if lines else []
    lines += [*_quiet(findings), ""]
    lines += [f"bottleneck: {bottleneck}"] if bottleneck else []
    lines += progress_block(progress) if progress else ()
    rows = tuple(tuple(finding_document(f)[name] for name in _FIELDS) for f in findings)
    document = {
        "rules": [finding_document(finding) for finding in findings],
        "bottleneck": bottleneck,
        "progress": progress_document(progress) if progress else None,
    }
    return Listing((*lines, count_line(findings)), document, _FIELDS, rows)


def finding_lines(finding: Finding) -> Iterator[str]:
    """Lay one finding out: what was found against the limit, where, and what to do."""
    yield title(finding)
    yield from evidence_lines(finding)
    yield from advice_lines(finding)


def title(finding: Finding) -> str:
    """Say in one line what was found, against which limit."""
    name = f"{finding.code} {finding.name} ({finding.severity.value})"
    waived = "" if finding.waived is None else f"; waived: {finding.waived}"
    return f"{name}: {finding.reason}{_limit(finding)}{waived}"


def evidence_lines(finding: Finding) -> Iterator[str]:
    """Say where it was found, unless that is what the reason says."""
    for evidence in finding.evidence:
        if evidence.subject != finding.reason:
            yield f"    {_evidence(evidence)}"


def advice_lines(finding: Finding) -> Iterator[str]:
    """Say what to do about it, and where there is more to read."""
    if finding.fix is not None and finding.waived is None:
        yield f"    fix: {finding.fix}"
        yield f"    see: ttnn-perf rules {finding.code}"


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


def finding_document(finding: Finding) -> dict[str, object]:
    """Return a finding as plain JSON."""
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
            {
                "subject": each.subject,
                "value": each.value,
                "unit": each.unit,
                "share": each.share,
            }
            for each in finding.evidence
        ],
        "fix": finding.fix,
        "waived": finding.waived,
    }


def _limit(finding: Finding) -> str:
    return "" if finding.limit is None else f", limit {shown(finding.limit, finding.unit)}"


def _evidence(evidence: Evidence) -> str:
    if evidence.value is None:
        return evidence.subject
    share = "" if evidence.share is None else f", {percent(evidence.share)}"
    return f"{evidence.subject}: {shown(evidence.value, evidence.unit)}{share}"


def shown(value: float, unit: str) -> str:
    """Return a number in its unit; fractions "of" something, or "above" it, in per cent."""
    if unit.startswith(("of ", "above ")):
        return f"{format_fraction(value)} {unit}"
    if unit == "ns":
        return format_ns(value)
    if unit in {"B", "bytes"}:
        return size(value)
    if unit.startswith("B "):
        return f"{size(value)} {unit.removeprefix('B ')}"
    return f"{value:,.4g} {unit_for(value, unit)}".strip()
