"""The checklist over a judged test: rules on its numbers."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import RuleError, UsageError
from pytest_ttnn_perf.core.finding import Answers, Finding, Subject, Unanswered
from pytest_ttnn_perf.core.observation import TELLS
from pytest_ttnn_perf.core.settings import Checklist
from pytest_ttnn_perf.gate.rules_on_numbers import NUMBER_RULES

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_ttnn_perf.core.finding import AxisEffect
    from pytest_ttnn_perf.core.observation import JudgedTest, Observation
    from pytest_ttnn_perf.core.settings import Settings


def check_numbers(
    judged: JudgedTest,
    settings: Settings,
    *,
    only: Collection[str] = NUMBER_RULES,
    axes: tuple[AxisEffect, ...] | None = None,
) -> JudgedTest:
    """Ask rules about the numbers and verdicts of a test.

    ``axes`` are the effects of a sweep's axes, once all of its points are measured.
    """
    observation = judged.observation
    ended = observation.raised is not None or observation.lost is not None
    if settings.checklist is Checklist.OFF or ended:
        return judged
    subject = Subject(
        observation=observation,
        facts=observation.device_facts,
        verdicts=judged.verdicts,
        axes=axes,
    )
    try:
        answered: Answers = wings.call("find", subject, settings, only=only)
    except (RuleError, UsageError) as error:
        # Our own mistake, or one in the settings: nothing is known of this test, others go on.
        problems = dict.fromkeys((*observation.problems, str(error)))
        return replace(judged, observation=replace(observation, problems=tuple(problems)))
    others = replace(
        observation,
        findings=tuple(each for each in observation.findings if each.code not in only),
        unanswered=tuple(
            replace(each, codes=tuple(code for code in each.codes if code not in only))
            for each in observation.unanswered
        ),
    )
    return replace(judged, observation=join_answers(others, answered))


def join_answers(observation: Observation, answered: Answers | Observation) -> Observation:
    """Add answers; to one question, keep the one that knows most."""
    answers: dict[tuple[str, str], Finding | Unanswered] = {}
    for side in (observation, answered):
        given: list[tuple[str, Finding | Unanswered]] = [(one.code, one) for one in side.findings]
        given += [(code, each) for each in side.unanswered for code in each.codes]
        for code, answer in given:
            known = answers.get((code, answer.region))
            if known is None or TELLS.index(answer.outcome) > TELLS.index(known.outcome):
                answers[code, answer.region] = answer
    ordered = sorted(answers.items(), key=itemgetter(0))
    without: dict[Unanswered, list[str]] = {}
    for (code, _), answer in ordered:
        if isinstance(answer, Unanswered):
            without.setdefault(replace(answer, codes=()), []).append(code)
    return replace(
        observation,
        findings=tuple(answer for _, answer in ordered if isinstance(answer, Finding)),
        unanswered=tuple(replace(why, codes=tuple(codes)) for why, codes in without.items()),
    )
