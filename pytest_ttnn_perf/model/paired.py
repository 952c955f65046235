"""Two versions of the code measured in turns, and what that says of one metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.verdict import Verdict


class Round(NamedTuple):
    """What two processes, one right after the other, measured of one metric.

    ``before_first`` says which of them was the first: a machine that drifts is worse for the other.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    before_first: bool


@dataclass(frozen=True, slots=True)
class Paired:
    """A verdict on rounds, with the interval that its change lies in.

    ``low`` and ``high`` are fractions as the verdict's ``change`` is one: plus is worse. None where
    a metric is not compared by ratio.
    """

    verdict: Verdict
    low: float | None = None
    high: float | None = None
