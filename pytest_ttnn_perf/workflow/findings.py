"""What findings mean for their tests: which fail, and how far a model has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.progress import progress_of
from pytest_ttnn_perf.model.finding import Finding, RuleOutcome
from pytest_ttnn_perf.model.progress import ModelKind, State
from pytest_ttnn_perf.model.rule_settings import Checklist
from pytest_ttnn_perf.model.verdict import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.model.observation import JudgedTest
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
    new = {Reason.NEW_TEST, Reason.OTHER_KEY}
    has_baseline = any(verdict.reason not in new for verdict in judged.verdicts)
    kind = next((each for each in ModelKind if each.value == observation.model_kind), None)
    progress = progress_of(observation.findings, has_baseline=has_baseline, kind=kind)
    known = {State.DONE, State.OPEN}
    return progress if any(step.state in known for step in progress.steps) else None


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
    return tuple(finding for finding in judged.observation.findings if finding.fails)
