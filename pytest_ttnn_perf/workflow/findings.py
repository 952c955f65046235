"""What findings mean for their tests: which fail, and how far a model has come."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.progress import progress_of
from pytest_ttnn_perf.model.finding import Finding, RuleOutcome, Unanswered
from pytest_ttnn_perf.model.progress import ModelKind, State
from pytest_ttnn_perf.model.rule_settings import Checklist

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.observation import JudgedTest, Observation
    from pytest_ttnn_perf.model.progress import Progress

#: Of two answers to one question the one that knows more: what was found in any pass was found.
_WEIGHT: Final = {
    RuleOutcome.FOUND: 3,
    RuleOutcome.CLEAN: 2,
    RuleOutcome.NOT_APPLICABLE: 1,
    RuleOutcome.NOT_MEASURED: 0,
}


def progress_of_test(judged: JudgedTest) -> Progress | None:
    """Return how far the model of a test has come; None where nothing is known of its steps."""
    observation = judged.observation
    compared = any(verdict.centre is not None for verdict in judged.verdicts)
    has_baseline = compared or bool(judged.written)
    kind = next((each for each in ModelKind if each.value == observation.model_kind), None)
    progress = progress_of(
        observation.findings,
        unanswered=observation.unanswered,
        has_baseline=has_baseline,
        kind=kind,
    )
    known = {State.DONE, State.OPEN}
    return progress if any(step.state in known for step in progress.steps) else None


def joined(ours: Observation, theirs: Observation) -> Observation:
    """Return ours with what the rules say in two passes over one test."""
    said: dict[str, Finding | Unanswered] = {}
    for observation in (ours, theirs):
        for code, each in _said(observation).items():
            if code not in said or _WEIGHT[each.outcome] > _WEIGHT[said[code].outcome]:
                said[code] = each
    without: dict[tuple[RuleOutcome, str], list[str]] = {}
    for code, each in sorted(said.items()):
        if isinstance(each, Unanswered):
            without.setdefault((each.outcome, each.reason), []).append(code)
    return replace(
        ours,
        findings=tuple(each for _, each in sorted(said.items()) if isinstance(each, Finding)),
        unanswered=tuple(Unanswered(*why, tuple(codes)) for why, codes in without.items()),
    )


def _said(observation: Observation) -> Mapping[str, Finding | Unanswered]:
    answered = {finding.code: finding for finding in observation.findings}
    return answered | {code: each for each in observation.unanswered for code in each.codes}


def violations(judged: JudgedTest, checklist: Checklist) -> tuple[Finding, ...]:
    """Return the findings that fail a test."""
    if checklist is not Checklist.ENFORCE:
        return ()
    return tuple(finding for finding in judged.findings if finding.fails)
