"""Verdicts and findings as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.encoding.metrics import decode_metric, encode_metric
from pytest_ttnn_perf.model.finding import Evidence, Finding, RuleOutcome, Severity, Unanswered
from pytest_ttnn_perf.model.metric import Metric
from pytest_ttnn_perf.model.verdict import Outcome, Reason, Verdict

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.encoding.value import Value


def encode_verdict(verdict: Verdict) -> dict[str, object]:
    """Encode all but the metric's name, which is the member's key."""
    return {
        **encode_metric(verdict.metric),
        "outcome": verdict.outcome.value,
        "reason": verdict.reason.value if verdict.reason else None,
        "detail": verdict.detail,
        "observed": verdict.observed,
        "centre": verdict.centre,
        "change": verdict.change,
        "limit": verdict.limit,
        "provisional": verdict.provisional,
        "samples": verdict.samples,
        "sessions": verdict.sessions,
        "confirmed": list(verdict.confirmed),
        "bound": verdict.bound,
    }


def decode_verdict(name: str, value: Value) -> Verdict:
    """Decode the verdict of the metric ``name``."""
    reason = value.optional("reason")
    confirmed = value.optional("confirmed")
    return Verdict(
        # Other producers need not repeat the definition beside a verdict.
        metric=decode_metric(name, value) if value.optional("unit") else Metric(name, unit=""),
        outcome=value.field("outcome").one_of(Outcome),
        reason=reason.one_of(Reason) if reason else None,
        detail=_string(value, "detail"),
        observed=_number(value, "observed"),
        centre=_number(value, "centre"),
        change=_number(value, "change"),
        limit=_number(value, "limit"),
        provisional=_flag(value, "provisional"),
        samples=_count(value, "samples"),
        sessions=_count(value, "sessions"),
        confirmed=tuple(item.number() for item in confirmed.array()) if confirmed else (),
        bound=_number(value, "bound"),
    )


def encode_finding(finding: Finding) -> dict[str, object]:
    """Encode a finding with its evidence; what is not known is left out."""
    encoded = {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "outcome": finding.outcome.value,
        "reason": finding.reason,
        "value": finding.value,
        "limit": finding.limit,
        "unit": finding.unit,
        "evidence": [_encode_evidence(item) for item in finding.evidence],
        "fix": finding.fix,
        "waived": finding.waived,
    }
    return {name: value for name, value in encoded.items() if value not in (None, "", [])}


def decode_finding(value: Value) -> Finding:
    """Decode a finding."""
    evidence = value.optional("evidence")
    return Finding(
        code=value.field("code").string(),
        name=value.field("name").string(),
        severity=value.field("severity").one_of(Severity),
        outcome=value.field("outcome").one_of(RuleOutcome),
        reason=_string(value, "reason"),
        value=_number(value, "value"),
        limit=_number(value, "limit"),
        unit=_string(value, "unit") or "",
        evidence=tuple(_decode_evidence(item) for item in evidence.array()) if evidence else (),
        fix=_string(value, "fix"),
        waived=_string(value, "waived"),
    )


def encode_unanswered(unanswered: Unanswered) -> dict[str, object]:
    """Encode why rules have no answer."""
    return {
        "outcome": unanswered.outcome.value,
        "reason": unanswered.reason,
        "codes": list(unanswered.codes),
    }


def decode_unanswered(value: Value) -> Unanswered:
    """Decode why rules have no answer."""
    return Unanswered(
        value.field("outcome").one_of(RuleOutcome),
        value.field("reason").string(),
        value.field("codes").strings(),
    )


def _encode_evidence(evidence: Evidence) -> dict[str, object]:
    told = {"subject": evidence.subject, "value": evidence.value, "unit": evidence.unit}
    return {**told} if evidence.share is None else {**told, "share": evidence.share}


def _decode_evidence(value: Value) -> Evidence:
    return Evidence(
        subject=value.field("subject").string(),
        value=_number(value, "value"),
        unit=_string(value, "unit") or "",
        share=_number(value, "share"),
    )


def _string(value: Value, name: str) -> str | None:
    member = value.optional(name)
    return member.string() if member else None


def _number(value: Value, name: str) -> float | None:
    member = value.optional(name)
    return member.number() if member else None


def _count(value: Value, name: str) -> int:
    member = value.optional(name)
    return member.integer() if member else 0


def _flag(value: Value, name: str) -> bool:
    member = value.optional(name)
    return member.boolean() if member else False
