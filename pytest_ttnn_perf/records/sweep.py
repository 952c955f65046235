"""What the points of a sweep amount to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.hardware import Scalar
from pytest_ttnn_perf.records.json import Omit
from pytest_ttnn_perf.records.metric import Better, Kind, Metric


class Role(Enum):
    """What a sweep shows of every point."""

    THROUGHPUT = "throughput"
    LATENCY = "latency"
    MEMORY = "memory"
    ACCURACY = "accuracy"


class PointState(Enum):
    """How a point ended."""

    MEASURED = "measured"
    OUT_OF_MEMORY = "out of memory"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SweepMetric:
    """The metric that stands for a role."""

    role: Role
    name: str
    unit: str
    better: Better
    kind: Kind

    @property
    def metric(self) -> Metric:
        """The metric as values are shown by."""
        return Metric(self.name, self.unit, self.better, self.kind)


@dataclass(frozen=True, slots=True)
class PointResult:
    """One point. ``values`` are by role, in the unit of its metric.

    ``why`` says what it had no room for, or what it raised. ``unmet`` says which requirements it
    does not meet: such a point is never the best.
    """

    test: str
    axes: Mapping[str, Scalar]
    state: PointState
    values: Mapping[str, float] = field(default_factory=dict)
    why: Omit[str | None] = None
    unmet: Omit[tuple[str, ...]] = ()

    def value(self, role: Role) -> float | None:
        """Return the value of a role; None where it was not measured."""
        return self.values.get(role.value)


@dataclass(frozen=True, slots=True)
class AxisEffect:
    """Whether points that differ in one axis alone differ in anything else.

    ``compared`` is the number of such pairs: without any, nobody can tell.
    """

    axis: str
    values: tuple[Scalar, ...]
    compared: int
    took_effect: bool = False


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep and what its points amount to; tests are named by their ids.

    ``best`` cannot be told apart from each other in ``best_by``.
    """

    test: str
    axes: tuple[AxisEffect, ...]
    metrics: tuple[SweepMetric, ...]
    points: tuple[PointResult, ...]
    best: tuple[str, ...] = ()
    best_by: Role | None = None
    require: Omit[Mapping[str, Scalar]] = field(default_factory=dict)
