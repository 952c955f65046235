"""Small observations for rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.core.finding import Subject
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import (
    NO_LIMITS,
    End,
    EndKind,
    Limits,
    MetricObservation,
    Observation,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.core.hardware import Hardware, Scalar

__all__ = [
    "Limits", "MetricObservation", "Observation", "accuracy", "io_measured",
    "measured", "timed",
]  # fmt: skip


def timed(
    *samples: float,
    name: str = "wall_time",
    warmup: int = 3,
    limits: Limits = NO_LIMITS,
    source: Source = Source.WALL,
) -> MetricObservation:
    """Return the samples of a time, in nanoseconds."""
    metric = Metric(name, "ns", source=source)
    return MetricObservation(
        metric, samples, warmup=(samples or (1.0,))[:1] * warmup, limits=limits
    )


def accuracy(
    *samples: float,
    name: str = "pcc",
    at_least: float | None = None,
    tolerance: float | None = None,
    target: float | None = None,
    note: str | None = None,
    better: Better = Better.HIGHER,
) -> MetricObservation:
    """Return the samples of an accuracy."""
    metric = Metric(name, "", better=better, kind=Kind.ACCURACY)
    limits = Limits(tolerance=tolerance, at_least=at_least, target=target)
    return MetricObservation(metric, samples, limits=limits, note=note)


def measured(
    *metrics: MetricObservation,
    environment: Mapping[str, Scalar] | None = None,
    facts: Mapping[str, Scalar] | None = None,
    hardware: Hardware | None = None,
    dropped: bool = False,
    raised: str | None = None,
) -> Subject:
    """Return a measured test."""
    observation = Observation(
        "test_model.py::test_it",
        {observed.metric.name: observed for observed in metrics},
        hardware=hardware,
        environment=environment or {},
        dropped=dropped,
        ended=None if raised is None else End(EndKind.RAISED, raised),
    )
    return Subject(observation=observation, facts=facts or {})


def io_measured(
    compute_ns: float,
    transfer_ns: float,
    both_ns: float,
    *,
    facts: Mapping[str, Scalar] | None = None,
) -> Subject:
    """Return a test that measured each alone, and both at once."""
    return measured(
        timed(compute_ns, name="io_compute_time"),
        timed(transfer_ns, name="io_transfer_time"),
        timed(both_ns, name="io_both_time"),
        facts=facts,
    )
