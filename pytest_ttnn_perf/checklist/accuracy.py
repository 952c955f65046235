"""What a test measured of the correctness of its outputs."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.metric import Better, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.model.observation import MetricObservation, Observation

#: Why rules about PCC cannot tell.
NO_PCC: Final = "the test checks no PCC"
#: What is recorded beside every PCC that exists.
_BESIDE: Final = ("_max_abs_error", "_relative_l2")
#: How a PCC that does not exist says that the output is not finite.
_NOT_FINITE: Final = re.compile(r"\bactual holds \d+ NaN and \d+ infinite\b")


def accuracies(observation: Observation) -> Sequence[MetricObservation]:
    """Return the accuracies that a test checks; not the errors recorded beside a PCC."""
    return [
        observed
        for observed in observation.metrics.values()
        if observed.metric.kind is Kind.ACCURACY
        and observed.samples
        and not observed.metric.name.endswith(_BESIDE)
    ]


def pccs(observation: Observation) -> Sequence[MetricObservation]:
    """Return the accuracies that are correlations: by their name, or by what is beside them."""
    return [each for each in accuracies(observation) if _is_pcc(each, observation.metrics)]


def worst_of(observed: MetricObservation) -> float:
    """Return the sample that is judged; NaN if one is none."""
    if any(math.isnan(sample) for sample in observed.samples):
        return math.nan
    lowest, highest = min(observed.samples), max(observed.samples)
    return highest if observed.metric.better is Better.LOWER else lowest


def is_not_finite(observed: MetricObservation) -> bool:
    """Tell whether an accuracy is none because the output has values that are not finite."""
    if not math.isnan(worst_of(observed)):
        return False
    return observed.note is None or _NOT_FINITE.search(observed.note) is not None


def _is_pcc(observed: MetricObservation, metrics: Mapping[str, MetricObservation]) -> bool:
    name = observed.metric.name
    if observed.metric.better is not Better.HIGHER:
        return False
    return "pcc" in name.lower() or any(f"{name}{end}" in metrics for end in _BESIDE)
