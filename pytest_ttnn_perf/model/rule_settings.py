"""What a project says about rules: their limits, how much they count, and which it does without."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.finding import Severity


class Checklist(Enum):
    """What findings do: errors fail their test, all are printed, or none is looked for."""

    ENFORCE = "enforce"
    REPORT = "report"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """What is other than usual for one rule; ``waive`` is the reason to do without it."""

    limits: Mapping[str, float] = field(default_factory=dict)
    severity: Severity | None = None
    waive: str | None = None
