"""Why a recorded result is not accepted, and what would help."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.edit import Refusal
from pytest_ttnn_perf.model.settings import Update
from pytest_ttnn_perf.model.verdict import Outcome, Reason
from pytest_ttnn_perf.report.sentences import sentence
from pytest_ttnn_perf.workflow.accept import Action, action_for
from pytest_ttnn_perf.workflow.confirm import MEASURED_ONCE
from pytest_ttnn_perf.workflow.findings import violations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.settings import Settings
    from pytest_ttnn_perf.model.verdict import Verdict
    from pytest_ttnn_perf.workflow.joined import Measured


def refusal_of(
    judged: JudgedTest,
    measured: Sequence[Measured],
    update: Update,
    *,
    settings: Settings,
    options: Sequence[str],
) -> Refusal | None:
    """Return why a test's result cannot be accepted; None if it can, or changes nothing."""
    test = judged.observation.test

    def refused(why: str, remedy: str) -> Refusal:
        return Refusal("", test, why, remedy)

    if judged.observation.problems:
        return refused(judged.observation.problems[0], "mend that, and run the test again")
    for each in measured:
        for finding in violations(each.judged, settings.checklist):
            why = f"{finding.code} {finding.name}: {finding.reason or 'found'}"
            return refused(why, f"what fails is no standard; see: ttnn-perf rules {finding.code}")
    blocked = [v for v in judged.verdicts if action_for(v, update) is Action.BLOCK]
    wanted = update is not Update.NEW or _adds(judged, update)
    words = ["ttnn-perf", "baseline", "accept", *(each.record for each in measured), test]
    command = f'{shlex.join([*words, "--update", "all", *options])} --reason "why"'
    if blocked:
        why = "; ".join(map(sentence, blocked))
        return refused(why, _remedy(blocked, command)) if wanted else None
    lucky = [v for v in judged.verdicts if update is Update.IMPROVED and _seen_once(v, judged)]
    if lucky and settings.confirm:
        why = f"{sentence(lucky[0])}: measured by one process, which may have been lucky"
        return refused(why, f"give a second record of this commit too, or: {command}")
    return None


def _adds(judged: JudgedTest, update: Update) -> bool:
    return any(action_for(verdict, update) is Action.ADD for verdict in judged.verdicts)


def _seen_once(verdict: Verdict, judged: JudgedTest) -> bool:
    """Return whether a gain rests on one process where another could have told otherwise."""
    observed = judged.observation.metrics.get(verdict.metric.name)
    by_luck = verdict.metric.compared_by_ratio and verdict.metric.source not in MEASURED_ONCE
    gained = verdict.outcome is Outcome.IMPROVED and observed is not None
    return by_luck and gained and not (observed and observed.confirmations)


def _remedy(blocked: Sequence[Verdict], command: str) -> str:
    """Return what to do: what no command resolves comes first."""
    if any(verdict.reason is Reason.ABSOLUTE_LIMIT for verdict in blocked):
        return "no update accepts a broken limit: mend the model, or change the limit in the test"
    outcomes = {verdict.outcome for verdict in blocked}
    if Outcome.NO_DATA in outcomes:
        return "there is no number to store: mend that, and run the test again"
    if Outcome.TOO_NOISY in outcomes:
        return "there is no number to store: raise iterations= or quiet the machine, and run again"
    return f"accept it with: {command}"
