"""The checklist over a test: what its artifacts, samples, facts and environment show."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf.checklist.bottleneck import bottleneck_of
from pytest_ttnn_perf.checklist.progress import model_kind
from pytest_ttnn_perf.device.conflicts import conflicts
from pytest_ttnn_perf.model.rule_settings import Checklist
from pytest_ttnn_perf.model.subject import Input, Subject
from pytest_ttnn_perf.workflow.check import checked

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.artifact import Artifact
    from pytest_ttnn_perf.model.observation import Observation
    from pytest_ttnn_perf.model.settings import Settings


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
