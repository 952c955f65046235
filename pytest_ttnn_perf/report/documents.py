"""Results as JSON documents that others script against: fields may be added, never renamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.finding import RuleOutcome
from pytest_ttnn_perf.report.checklist import finding_document
from pytest_ttnn_perf.report.sentences import sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.shift import Shift


def gate_document(
    tests: Sequence[JudgedTest],
    *,
    failed: bool,
    complete: bool,
    shift: Shift | None,
    lost: Sequence[str] = (),
) -> dict[str, object]:
    """Return the result of a gate."""
    verdicts = [
        {
            "test": judged.observation.test,
            "metric": verdict.metric.name,
            "outcome": verdict.outcome.value,
            "change": verdict.change,
            "limit": verdict.limit,
            "provisional": verdict.provisional,
            "sentence": sentence(verdict),
            "by_op": judged.by_op if verdict.is_of_changed_time else None,
        }
        for judged in tests
        for verdict in judged.verdicts
    ]
    return {
        "failed": failed,
        "shifted": shift is not None,
        "shift": shift.change if shift else None,
        "complete": complete,
        "lost": list(lost),
        "verdicts": verdicts,
        "findings": [
            {"test": judged.observation.test, **finding_document(finding)}
            for judged in tests
            for finding in judged.observation.findings
            if finding.outcome is RuleOutcome.FOUND
        ],
    }
