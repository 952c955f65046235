"""The checklist over a test: what its artifacts, samples, facts and environment show."""

from __future__ import annotations

import os
import sys
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import RuleError
from pytest_ttnn_perf.core.finding import Finding, Input, RuleOutcome, Subject, Unanswered
from pytest_ttnn_perf.core.metric import KERNEL_TIME
from pytest_ttnn_perf.core.observation import TELLS
from pytest_ttnn_perf.core.settings import Checklist
from pytest_ttnn_perf.gate.rules_on_numbers import COMPUTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.core.finding import Answered, AxisEffect, HelperPcc
    from pytest_ttnn_perf.core.hardware import Conflict, Scalar
    from pytest_ttnn_perf.core.observation import Artifact, JudgedTest, Observation
    from pytest_ttnn_perf.core.settings import Settings

    #: The code of a rule, and the region that it was asked about.
    _Question = tuple[str, str]


def join_answers(ours: Observation, theirs: Observation) -> Observation:
    """Return ours with what the rules say in two passes over one test."""
    answers: dict[_Question, Finding | Unanswered] = {}
    for observation in (ours, theirs):
        for question, answer in _answers(observation).items():
            known = answers.get(question)
            if known is None or TELLS.index(answer.outcome) > TELLS.index(known.outcome):
                answers[question] = answer
    without: dict[tuple[RuleOutcome, str, str], list[str]] = {}
    for (code, region), answer in sorted(answers.items(), key=itemgetter(0)):
        if isinstance(answer, Unanswered):
            without.setdefault((answer.outcome, answer.reason, region), []).append(code)
    return replace(
        ours,
        findings=tuple(
            answer
            for _, answer in sorted(answers.items(), key=itemgetter(0))
            if isinstance(answer, Finding)
        ),
        unanswered=tuple(
            Unanswered(outcome, why, tuple(codes), region)
            for (outcome, why, region), codes in without.items()
        ),
    )


def _answers(observation: Observation) -> Mapping[_Question, Finding | Unanswered]:
    answered = {(finding.code, finding.region): finding for finding in observation.findings}
    return answered | {
        (code, answer.region): answer for answer in observation.unanswered for code in answer.codes
    }


#: The rules that look at what the gate says of a PCC.
_OF_VERDICTS: Final = ("TTP904", "TTP907")


def check_test(
    observation: Observation,
    artifact: Artifact,
    settings: Settings,
    *,
    by_the_clock: bool,
    helper_pccs: tuple[HelperPcc, ...] | None = None,
) -> Observation:
    """Return a test that has just ended with what the rules say of it, and what holds it back.

    ``by_the_clock``: it was measured in a pass that takes wall times. ``helper_pccs`` are what
    helpers told of its outputs wrongly; None where it called none.

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
        helper_pccs=helper_pccs,
    )
    findings, unanswered = wings.call("find", subject, settings)
    checked = replace(observation, findings=findings, unanswered=unanswered)
    timed = not observation.metrics.keys().isdisjoint({KERNEL_TIME, COMPUTE})
    if subject.ops is None and subject.kernels is None and not timed:
        return checked  # a time alone does not tell what it is made of
    bottleneck, kind = wings.call("bottleneck", subject, settings.rules)
    return replace(checked, bottleneck=bottleneck, model_kind=kind.value if kind else None)


def check_numbers_again(observation: Observation, settings: Settings) -> Observation:
    """Ask the rules that look at a test's numbers, now that those of all its passes are known."""
    ended = observation.raised is not None or observation.out_of_memory is not None
    if settings.checklist is Checklist.OFF or ended:
        return observation
    subject = Subject(observation=observation, facts=_facts(observation))
    try:
        return _replace_answers(observation, wings.call("find", subject, settings, only=Input.TEST))
    except RuleError as error:
        return _with_problem(observation, error)


def check_verdicts(judged: JudgedTest, settings: Settings) -> JudgedTest:
    """Ask the rules that look at what the gate says of a PCC: those that the test was asked."""
    observation = judged.observation
    outcomes = observation.outcomes
    asked = tuple(code for code in _OF_VERDICTS if code in outcomes)
    if not asked:
        return judged
    subject = Subject(observation=observation, verdicts=judged.verdicts)
    try:
        again = wings.call("find", subject, replace(settings, select=asked, ignore=()))
    except RuleError as error:
        return replace(judged, observation=_with_problem(observation, error))
    return replace(judged, observation=_replace_answers(observation, again))


#: The rule that looks at all points of a sweep.
OF_AXES: Final = "TTP013"


def check_axes(judged: JudgedTest, axes: tuple[AxisEffect, ...], settings: Settings) -> JudgedTest:
    """Ask whether the axes of a sweep took effect, where the test was asked before it was known."""
    observation = judged.observation
    if OF_AXES not in observation.outcomes:
        return judged
    subject = Subject(observation=observation, axes=axes)
    again = wings.call("find", subject, replace(settings, select=(OF_AXES,), ignore=()))
    return replace(judged, observation=_replace_answers(observation, again))


def _with_problem(observation: Observation, error: RuleError) -> Observation:
    """Fail a test by our own mistake: nothing is known of it, and the others go on."""
    return replace(observation, problems=(*observation.problems, str(error)))


def _replace_answers(observation: Observation, again: Answered) -> Observation:
    """Return an observation with what rules say now in place of what they said before."""
    codes = {code for answer in again.unanswered for code in answer.codes}
    codes |= {finding.code for finding in again.findings}
    before = replace(
        observation,
        findings=tuple(finding for finding in observation.findings if finding.code not in codes),
        unanswered=tuple(
            replace(answer, codes=tuple(code for code in answer.codes if code not in codes))
            for answer in observation.unanswered
        ),
    )
    return join_answers(
        before, replace(before, findings=again.findings, unanswered=again.unanswered)
    )


def _conflicts() -> tuple[Conflict, ...]:
    if "ttnn" not in sys.modules:  # they are variables of its own
        return ()
    from pytest_ttnn_perf.machine.environment import conflicts

    return conflicts(os.environ)


def _facts(observation: Observation) -> Mapping[str, Scalar]:
    """Return what is known of devices; of none, where nobody opened or stated one."""
    setting = observation.setting.values
    return {**observation.environment, **setting} if setting else {}
