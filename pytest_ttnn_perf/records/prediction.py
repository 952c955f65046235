"""What a rule promised of a change, beside what was measured once somebody made it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.json import Omit

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Prediction:
    """A saving as it was predicted, and as it was measured, in microseconds of a step.

    ``low_us`` to ``high_us`` is the 80 % interval of the estimate, ``measured_low_us`` to
    ``measured_high_us`` that of the measurement, where it has one. A change that made the step
    slower measured a saving below zero. ``label`` says what was changed.
    """

    code: str
    estimate_us: float
    low_us: float
    high_us: float
    measured_us: float
    measured_low_us: Omit[float | None] = None
    measured_high_us: Omit[float | None] = None
    region: Omit[str] = ""
    label: Omit[str] = ""

    @property
    def held(self) -> bool:
        """Whether what was measured is inside the interval that was predicted."""
        return self.low_us <= self.measured_us <= self.high_us


def held_of(predictions: Iterable[Prediction]) -> tuple[int, int]:
    """Return how many predictions held, and of how many.

    >>> held_of([Prediction("TTP311", 10, 5, 15, 7), Prediction("TTP311", 10, 5, 15, 1)])
    (1, 2)
    """
    held = [prediction.held for prediction in predictions]
    return sum(held), len(held)
