"""What a rule says of a subject, asked as the checklist asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.core.finding import Answer, Evidence, Limit, Subject

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Ask", "Evidence", "Limit", "Subject", "clean", "found", "limit", "not_applicable",
    "not_measured",
]  # fmt: skip

clean, found = Answer.clean, Answer.found
not_applicable, not_measured = Answer.not_applicable, Answer.not_measured
NOTHING = Subject()


def limit(value: float, unit: str) -> Limit:
    """Return what an expected answer compares with; its source is no part of an answer."""
    return Limit(value, unit, "")


class Saved(NamedTuple):
    """The saving of a finding; None for one that says none."""

    ns: Any
    arithmetic: str | None


class Ask(Struct, frozen=True):
    """Asks the rule of a code about a subject, or about one with the parts that are given."""

    code: str
    limits: Mapping[str, float] = {}

    def __call__(self, subject: Subject = NOTHING, **parts: Any) -> Answer:
        """Return the whole answer."""
        rule = rule_of(self.code).with_limits(**self.limits)
        (finding,) = run_rules([rule], replace(subject, **parts))
        return Answer(
            finding.outcome,
            finding.reason,
            finding.value,
            finding.limit,
            finding.unit,
            finding.evidence,
        )

    def saving(self, subject: Subject = NOTHING, **parts: Any) -> Saved:
        """Return what it would save of a step, in ns, and by which arithmetic."""
        rule = rule_of(self.code).with_limits(**self.limits)
        (finding,) = run_rules([rule], replace(subject, **parts))
        return Saved(finding.saving_ns, finding.arithmetic)

    def fix(self, subject: Subject = NOTHING, **parts: Any) -> str | None:
        """Return what it says is to be done."""
        rule = rule_of(self.code).with_limits(**self.limits)
        (finding,) = run_rules([rule], replace(subject, **parts))
        return finding.fix

    def with_limits(self, **limits: float) -> Ask:
        """Return the same with limits that a user sets."""
        return replace(self, limits={**self.limits, **limits})
