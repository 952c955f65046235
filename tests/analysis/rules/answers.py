"""What a rule says of a subject, asked as the checklist asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.core.finding import Subject

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.core.finding import Finding

NOTHING = Subject()


class Ask(Struct, frozen=True):
    """Asks the rule of a code about a subject, or about one with the parts that are given."""

    code: str
    limits: Mapping[str, float] = {}

    def __call__(self, subject: Subject = NOTHING, **parts: Any) -> Finding:
        rule = rule_of(self.code).with_limits(**self.limits)
        (finding,) = run_rules([rule], replace(subject, **parts))
        return finding

    def saving(self, subject: Subject) -> tuple[float | None, str | None]:
        """Return what it would save of a step, in ns, and by which arithmetic."""
        finding = self(subject)
        return finding.saving_ns, finding.arithmetic

    def with_limits(self, **limits: float) -> Ask:
        """Return the same with limits that a user sets."""
        return replace(self, limits={**self.limits, **limits})
