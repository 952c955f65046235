"""The constants of the gate, in one place, each with where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.metric import Kind, Source
from pytest_ttnn_perf.model.unit import NANOSECONDS_IN

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.metric import Metric


@dataclass(frozen=True, slots=True)
class Policy:
    """Default limits. All are fractions unless their name says otherwise."""

    #: No regression below this is ever reported, however quiet a test looks.
    floor: float = 0.02
    #: Between-session noise assumed before sessions show it; weighs as three of them.
    prior_wall: float = 0.015
    prior_device: float = 0.005
    #: Least noise believed, so that a few identical sessions do not make a razor.
    least_noise: float = 0.003
    #: One-sided level of the limit for one measurement.
    level: float = 0.95
    #: A change lies this many times as far out (in logarithms) as the furthest stored sessions on
    #: its side: the next one of a rare kind may be a little further out than the one stored.
    guard: float = 1.1
    #: One far session may be an accident, and it stays in the baseline: by itself it lifts a limit
    #: to this at most. Two are a kind of session, and lift it up to the bound of TOO_NOISY.
    guard_of_one: float = 0.04
    #: Where noise alone makes the limit exceed this, a regression of this size could have passed.
    too_noisy: float = 0.20
    #: Shorter differences than this mean nothing on a device clock.
    device_floor_ns: float = 1_000.0
    #: From this many tests on, and if this share of them moved the same way, the machine did.
    shift_tests: int = 5
    shift_share: float = 0.6
    bytes_tolerance: float = 0.02
    #: Largest drop in accuracy, in its own unit; scaled up for metrics beyond 1 (percentages).
    accuracy_drop: float = 0.002

    def absolute_floor(self, metric: Metric) -> float:
        """Return the difference below which nothing is reported, in the metric's unit."""
        on_device = metric.source is not Source.WALL and metric.kind is Kind.TIME
        if not on_device or metric.unit not in NANOSECONDS_IN:
            return 0.0
        return self.device_floor_ns / NANOSECONDS_IN[metric.unit]


DEFAULT_POLICY = Policy()
