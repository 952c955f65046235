"""What A/A sessions tell about a test: how noisy it is, and what a gate can see in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.baseline import MetricBaseline


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a calibration has come. ``tests`` is None before the first collection."""

    session: int
    sessions: int
    done: int
    tests: int | None
    elapsed_s: float

    @property
    def fraction(self) -> float:
        """The part of the work that is done."""
        within = self.done / self.tests if self.tests else 0.0
        return min((self.session - 1 + within) / self.sessions, 1.0)

    @property
    def left_s(self) -> float | None:
        """The time that the rest will take if it goes on like this; None while nobody can tell."""
        return self.elapsed_s * (1 / self.fraction - 1) if self.fraction else None


@dataclass(frozen=True, slots=True)
class Calibrated:
    """One metric of one test. Fractions (0.05 = 5 %); None with fewer than two sessions.

    ``within`` and ``between`` are standard deviations, of samples in a session and of sessions'
    medians; ``false_alarms`` is a probability per run; ``caught`` is the smallest regression that
    is caught in 80 % of runs.
    """

    test: str
    baseline: MetricBaseline
    centre: float
    within: float
    between: float | None
    limit: float
    false_alarms: float | None
    caught: float | None
