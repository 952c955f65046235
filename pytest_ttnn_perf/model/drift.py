"""A change within the samples of one process, in the order they were taken."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class DriftKind(Enum):
    """How samples left the level they started at."""

    TREND = "trend"
    STEP = "step"


@dataclass(frozen=True, slots=True)
class Drift:
    """Samples that do not belong to one level, so that their median stands for none.

    ``change`` is a fraction: how much larger the end is than the start, negative for smaller
    (0.1 = 10 % larger). ``position`` is the number of samples before a step; 0 for a trend.
    """

    kind: DriftKind
    change: float
    position: int = 0


@dataclass(frozen=True, slots=True)
class Drifting:
    """What drifted: a metric of a test over its samples, or, without both, a run over its tests."""

    test: str | None
    metric: str | None
    count: int
    drift: Drift
