"""The checklist over a test: what its artifacts, samples, facts and environment show."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import RuleError
from pytest_ttnn_perf.checklist.bottleneck import bottleneck_of
from pytest_ttnn_perf.checklist.progress import model_kind
from pytest_ttnn_perf.checklist.runner import as_configured, ask_rules
from pytest_ttnn_perf.checklist.selection import selected
from pytest_ttnn_perf.device.conflicts import conflicts
from pytest_ttnn_perf.model.rule_settings import Checklist
from pytest_ttnn_perf.model.subject import Input, Subject
from pytest_ttnn_perf.workflow.findings import joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.checklist.runner import Answered
    from pytest_ttnn_perf.model.artifact import Artifact
    from pytest_ttnn_perf.model.build import Conflict
    from pytest_ttnn_perf.model.hardware import Scalar
    from pytest_ttnn_perf.model.observation import JudgedTest, Observation
    from pytest_ttnn_perf.model.settings import Settings

#: The rule that compares a PCC with its baseline, as the gate does.
_OF_VERDICTS: Final = "TTP904"


def checked_test(
    observation: Observation, artifact: Artifact, settings: Settings, *, by_the_clock: bool
) -> Observation:
    """Return a test that has just ended with what the rules say of it, and what holds it back.

    ``by_the_clock``: it was measured in a pass that takes wall times.

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
        facts=_facts(observation),
        conflicts=_conflicts() if by_the_clock else None,
    )
    findings, unanswered = _asked(subject, settings)
    bottleneck = bottleneck_of(subject)
    kind = model_kind(subject.ops, bottleneck)
    return replace(
        observation,
        findings=findings,
        unanswered=unanswered,
        bottleneck=bottleneck.sentence if bottleneck else None,
        model_kind=kind.value if kind else None,
    )


def asked_again(observation: Observation, settings: Settings) -> Observation:
    """Ask the rules that look at a test's numbers, now that those of all its passes are known."""
    if settings.checklist is Checklist.OFF or observation.raised is not None:
        return observation
    subject = Subject(observation=observation, facts=_facts(observation))
    try:
        return _anew(observation, _asked(subject, settings, only=Input.TEST))
    except RuleError as error:
        return _with_problem(observation, error)


def asked_of_verdicts(judged: JudgedTest, settings: Settings) -> JudgedTest:
    """Ask the rule that looks at what the gate says of a PCC, where rules were asked at all."""
    observation = judged.observation
    if _OF_VERDICTS not in observation.outcomes:
        return judged
    subject = Subject(observation=observation, verdicts=judged.verdicts)
    try:
        again = _asked(subject, replace(settings, select=(_OF_VERDICTS,), ignore=()))
    except RuleError as error:
        return replace(judged, observation=_with_problem(observation, error))
    return replace(judged, observation=_anew(observation, again))


def _with_problem(observation: Observation, error: RuleError) -> Observation:
    """Fail a test by our own mistake: nothing is known of it, and the others go on."""
    return replace(observation, problems=(*observation.problems, str(error)))


def _anew(observation: Observation, again: Answered) -> Observation:
    """Return an observation with what rules say now in place of what they said before."""
    codes = {code for each in again.unanswered for code in each.codes}
    codes |= {finding.code for finding in again.findings}
    before = replace(
        observation,
        findings=tuple(each for each in observation.findings if each.code not in codes),
        unanswered=tuple(
            replace(each, codes=tuple(code for code in each.codes if code not in codes))
            for each in observation.unanswered
        ),
    )
    return joined(before, replace(before, findings=again.findings, unanswered=again.unanswered))


def _conflicts() -> tuple[Conflict, ...]:
    # They are ttnn's: without it they do nothing.
    return conflicts(os.environ) if "ttnn" in sys.modules else ()


def _facts(observation: Observation) -> Mapping[str, Scalar]:
    """Return what is known of devices; of none, where nobody opened or stated one."""
    setting = observation.setting.values
    return {**observation.environment, **setting} if setting else {}


def _asked(subject: Subject, settings: Settings, *, only: Input | None = None) -> Answered:
    """Ask the rules that a project selects; with ``only``, those that need just that input."""
    groups = selected(settings.select, settings.ignore, settings.rules).groups
    if only is not None:
        groups = tuple(group for group in groups if group.needs == (only,))
    answered = ask_rules(groups, subject)
    waived = subject.observation.waived if subject.observation else {}
    return answered._replace(findings=as_configured(answered.findings, settings.rules, waived))
