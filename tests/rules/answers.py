"""What a rule says of a subject, asked as the checklist asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.runner import run_rules

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Rule
    from pytest_ttnn_perf.records.finding import Subject


def ask(rule: Rule, subject: Subject) -> Answer:
    """Return the whole answer of one rule."""
    (finding,) = run_rules([rule], subject)
    return Answer(
        finding.outcome,
        finding.reason,
        finding.value,
        finding.limit,
        finding.unit,
        finding.evidence,
    )
