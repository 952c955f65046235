"""Names that implementations of our hooks import.

The hooks themselves are declared in ``pytest_ttnn_perf.plugin``.
"""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.runner import CustomRule
from pytest_ttnn_perf.analysis.readers import CaptureFormat
from pytest_ttnn_perf.core.finding import Answer, Evidence, Input, Severity, Subject
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Source
from pytest_ttnn_perf.core.observation import Artifact, MetricObservation, Run
from pytest_ttnn_perf.measure.recorder import metric_of, numbers_of

__all__ = [
    "Answer",
    "Artifact",
    "CaptureFormat",
    "CustomRule",
    "Evidence",
    "Hardware",
    "Input",
    "MetricObservation",
    "Run",
    "Severity",
    "Source",
    "Subject",
    "capture_metric",
    "clean",
    "found",
    "not_applicable",
    "not_measured",
]

clean, found = Answer.clean, Answer.found
not_applicable, not_measured = Answer.not_applicable, Answer.not_measured


def capture_metric(
    name: str,
    value_or_samples: object,
    *,
    unit: str = "",
    better: str | None = None,
    kind: str | None = None,
    source: Source = Source.DEVICE,
) -> MetricObservation:
    """A metric of a capture, as ``ttnn_perf.record`` takes it.

    Raises:
        UsageError: something of it cannot be meant.
    """
    metric = metric_of(name, unit=unit, better=better, kind=kind, source=source)
    return MetricObservation(metric, tuple(numbers_of(name, value_or_samples)))
