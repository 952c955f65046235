"""What a recorded artifact adds to the observation of a test."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.hardware import Scalar
    from pytest_ttnn_perf.model.observation import MetricObservation
    from pytest_ttnn_perf.model.op_groups import OpGroups
    from pytest_ttnn_perf.model.ops import OpTable
    from pytest_ttnn_perf.model.report import Report
    from pytest_ttnn_perf.model.ttlang import TtlangLog


@dataclass(frozen=True, slots=True)
class Artifact:
    """What one artifact tells, or several of one test; None for what they do not.

    ``arch``, ``board`` and ``devices`` are of the hardware that it was recorded on. ``environment``
    is recorded beside the results, and never compared. ``table``, ``report`` and ``kernels`` are
    the artifacts themselves, for the checklist.
    """

    metrics: tuple[MetricObservation, ...] = ()
    ops: OpGroups | None = None
    arch: str | None = None
    board: str | None = None
    devices: int | None = None
    environment: Mapping[str, Scalar] = field(default_factory=dict)
    table: OpTable | None = None
    report: Report | None = None
    kernels: TtlangLog | None = None

    def named(self, name: str) -> Artifact:
        """Return this as of one of several models of a test: metrics by its name, no op table."""
        metrics = (
            replace(m, metric=replace(m.metric, name=f"{name}_{m.metric.name}"))
            for m in self.metrics
        )
        return replace(self, metrics=tuple(metrics), ops=None)

    def completed_by(self, other: Artifact) -> Artifact:
        """Return both as one; of what only one can tell, the first keeps the word."""
        return Artifact(
            metrics=(*self.metrics, *other.metrics),
            ops=self.ops or other.ops,
            arch=self.arch or other.arch,
            board=self.board or other.board,
            devices=self.devices or other.devices,
            environment={**other.environment, **self.environment},
            table=self.table or other.table,
            report=self.report or other.report,
            kernels=self.kernels or other.kernels,
        )


#: What a test without artifacts has.
NO_ARTIFACT: Final = Artifact()
