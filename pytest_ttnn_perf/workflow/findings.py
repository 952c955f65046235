"""The checklist over a test: what its artifacts, samples, facts and environment show."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.device.conflicts import conflicts
from pytest_ttnn_perf.model.finding import Finding, RuleOutcome, Severity
from pytest_ttnn_perf.model.rule_settings import Checklist
from pytest_ttnn_perf.model.subject import Subject
from pytest_ttnn_perf.workflow.check import checked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.model.artifact import Artifact
    from pytest_ttnn_perf.model.observation import JudgedTest, Observation
    from pytest_ttnn_perf.model.settings import Settings

#: Of two answers to one question the one that knows more: what was found in any pass was found.
_WEIGHT: Final = {
    RuleOutcome.FOUND: 3,
    RuleOutcome.CLEAN: 2,
    RuleOutcome.NOT_APPLICABLE: 1,
    RuleOutcome.NOT_MEASURED: 0,
}


def findings_of(
    observation: Observation, artifact: Artifact, settings: Settings
) -> tuple[Finding, ...]:
    """Ask the rules about a test that has just ended.

    Raises:
        UsageError: the settings name a rule or limit that does not exist.
    """
    if settings.checklist is Checklist.OFF or observation.raised is not None:
        return ()
    subject = Subject(
        ops=artifact.table,
        report=artifact.report,
        kernels=artifact.kernels,
        observation=observation,
        facts={**observation.environment, **observation.setting.values},
        conflicts=conflicts(os.environ),
    )
    return checked(
        subject,
        select=settings.select,
        ignore=settings.ignore,
        rules=settings.rules,
        waived=observation.waived,
    )


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
