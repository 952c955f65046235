"""The checklist over a test: what its artifacts, samples, facts and environment show."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.bottleneck import bottleneck_of
from pytest_ttnn_perf.checklist.progress import model_kind, progress_of
from pytest_ttnn_perf.device.conflicts import conflicts
from pytest_ttnn_perf.model.finding import Finding, RuleOutcome, Severity
from pytest_ttnn_perf.model.progress import ModelKind, State
from pytest_ttnn_perf.model.rule_settings import Checklist
from pytest_ttnn_perf.model.subject import Input, Subject
from pytest_ttnn_perf.model.verdict import Reason
from pytest_ttnn_perf.workflow.check import checked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.model.artifact import Artifact
    from pytest_ttnn_perf.model.observation import JudgedTest, Observation
    from pytest_ttnn_perf.model.progress import Progress
    from pytest_ttnn_perf.model.settings import Settings

#: Of two answers to one question the one that knows more: what was found in any pass was found.
_WEIGHT: Final = {
    RuleOutcome.FOUND: 3,
    RuleOutcome.CLEAN: 2,
    RuleOutcome.NOT_APPLICABLE: 1,
    RuleOutcome.NOT_MEASURED: 0,
}


def checked_test(observation: Observation, artifact: Artifact, settings: Settings) -> Observation:
    """Return a test that has just ended with what the rules say of it, and what holds it back.

    Raises:
        UsageError: the settings name a rule or limit that does not exist.
    """
    if settings.checklist is Checklist.OFF or observation.raised is not None:
        return observation
    subject = Subject(
        ops=artifact.table,
        report=artifact.report,
        kernels=artifact.kernels,
        observation=observation,
        facts={**observation.environment, **observation.setting.values},
        conflicts=conflicts(os.environ),
    )
    findings = checked(
        subject,
        select=settings.select,
        ignore=settings.ignore,
        rules=settings.rules,
        waived=observation.waived,
    )
    bottleneck = bottleneck_of(subject)
    kind = model_kind(subject.ops, bottleneck)
    return replace(
        observation,
        findings=findings,
        bottleneck=bottleneck.sentence if bottleneck else None,
        model_kind=kind.value if kind else None,
    )


def progress_of_test(judged: JudgedTest) -> Progress | None:
    """Return how far the model of a test has come; None where nothing is known of its steps."""
    observation = judged.observation
    new = {Reason.NEW_TEST, Reason.OTHER_KEY}
    has_baseline = any(verdict.reason not in new for verdict in judged.verdicts)
    kind = next((each for each in ModelKind if each.value == observation.model_kind), None)
    progress = progress_of(observation.findings, has_baseline=has_baseline, kind=kind)
    known = {State.DONE, State.OPEN}
    return progress if any(step.state in known for step in progress.steps) else None


def asked_again(observation: Observation, settings: Settings) -> Observation:
    """Ask the rules that look at a test's numbers, now that those of all its passes are known."""
    if settings.checklist is Checklist.OFF or observation.raised is not None:
        return observation
    facts = {**observation.environment, **observation.setting.values}
    found = checked(
        Subject(observation=observation, facts=facts),
        select=settings.select,
        ignore=settings.ignore,
        rules=settings.rules,
        waived=observation.waived,
        only=Input.TEST,
    )
    again = {finding.code: finding for finding in found}
    findings = tuple(again.get(finding.code, finding) for finding in observation.findings)
    return replace(observation, findings=findings)


def joined(ours: Iterable[Finding], theirs: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings of two passes over one test as one."""
    found = {finding.code: finding for finding in ours}
    for finding in theirs:
        known = found.get(finding.code)
        if known is None or _WEIGHT[finding.outcome] > _WEIGHT[known.outcome]:
            found[finding.code] = finding
    return tuple(found[code] for code in sorted(found))


def violations(judged: JudgedTest, checklist: Checklist) -> tuple[Finding, ...]:
    """Return the findings that fail a test."""
    if checklist is not Checklist.ENFORCE:
        return ()
    return tuple(
        finding
        for finding in judged.observation.findings
        if finding.outcome is RuleOutcome.FOUND and finding.severity is Severity.ERROR
    )
