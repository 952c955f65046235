"""What A/A sessions tell about a test: how noisy it is, and what a gate can see in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.baseline import MetricBaseline


@dataclass(frozen=True, slots=True)
class Progress:
    """How far sessions have come. ``tests`` is None before the first collection.

    Where each is of several processes, ``side`` names the one under way, ``sides`` is how many
    there are, and ``sides_done`` how many of them are over.
    """

    session: int
    sessions: int
    done: int
    tests: int | None
    elapsed_s: float
    word: str = "session"
    side: str | None = None
    sides: int = 1
    sides_done: int = 0

    @property
    def fraction(self) -> float:
        """The part of the work that is done."""
        within = self.done / self.tests if self.tests else 0.0
        of_session = (self.sides_done + within) / self.sides
        return min((self.session - 1 + of_session) / self.sessions, 1.0)

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
