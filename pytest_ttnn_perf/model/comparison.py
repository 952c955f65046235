"""Two runs side by side, without any judgement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.hardware import Scalar
    from pytest_ttnn_perf.model.metric import Metric
    from pytest_ttnn_perf.model.observation import Run


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in both runs; None where a run does not tell it."""

    field: str
    before: Scalar
    after: Scalar


@dataclass(frozen=True, slots=True)
class Reading:
    """What one run says of a metric; ``value`` is None without a finite number."""

    metric: Metric
    value: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """One metric of one test in both runs; None in a run that does not have it.

    ``obstacle`` is what forbids to compare the two.
    """

    test: str
    metric: str
    before: Reading | None
    after: Reading | None
    obstacle: Difference | None = None

    @property
    def unit(self) -> str | None:
        """The unit of the values; None where each has its own."""
        units = {reading.metric.unit for reading in (self.before, self.after) if reading}
        return units.pop() if len(units) == 1 else None

    @property
    def values(self) -> tuple[float, float] | None:
        """Both values, if they may be compared."""
        if self.obstacle or self.before is None or self.after is None:
            return None
        before, after = self.before.value, self.after.value
        return None if before is None or after is None else (before, after)

    @property
    def change(self) -> float | None:
        """How much more there is than before, as a fraction (0.05 = 5 % more).

        None where nothing was compared, and for a change from nothing, which has no size.
        """
        if self.values is None:
            return None
        before, after = self.values
        if before == after:
            return 0.0
        change = (after - before) / abs(before) if before else math.inf
        return change if math.isfinite(change) else None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why one run (``before`` or ``after``) may lack metrics of a test."""

    run: str
    test: str
    what: str


@dataclass(frozen=True, slots=True)
class ByOp:
    """Which ops make up the change of a test's times, in a sentence."""

    test: str
    sentence: str


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Every metric of either run, what differs around them, and what went wrong in them.

    ``by_op`` is of the tests that have an op table in both runs.
    """

    before: Run
    after: Run
    pairs: tuple[Pair, ...]
    environment: tuple[Difference, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    by_op: tuple[ByOp, ...] = ()
