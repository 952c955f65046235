"""Cases of rules: what a rule says of a subject, and what it would save."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.core.finding import RuleOutcome, Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_ttnn_perf.core.ops import Op

FOUND, CLEAN = RuleOutcome.FOUND, RuleOutcome.CLEAN
UNKNOWN, NOT_ASKED = RuleOutcome.NOT_MEASURED, RuleOutcome.NOT_APPLICABLE


class Case(NamedTuple):
    """A rule, asked of a subject; ``told`` is a part of its words."""

    code: str
    subject: Subject
    outcome: RuleOutcome
    value: float | None = None
    saving: float | None = None
    told: str = ""

    def check(self) -> None:
        """Ask the rule, as the checklist does."""
        (finding,) = run_rules([rule_of(self.code)], self.subject)
        words = [finding.reason, finding.fix, finding.arithmetic]
        words += [f"{each.subject} {each.value} {each.unit}" for each in finding.evidence]
        text = "\n".join(filter(None, words))
        assert finding.outcome is self.outcome, text
        if self.value is not None:
            assert finding.value == pytest.approx(self.value)
        if self.saving is not None:
            assert finding.saving_ns == pytest.approx(self.saving)
        assert self.told in text


def of_cases(cases: Sequence[Case]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrize a test with cases, each under the code of its rule."""
    return pytest.mark.parametrize("case", cases, ids=[each.code for each in cases])


def of_ops(*rows: Op, arch: str | None = "wormhole_b0") -> Subject:
    """Return a subject of these rows."""
    from tests.analysis.rules.tables import table

    return Subject(ops=table(*rows, arch=arch))
