"""Outputs that do not agree with what was expected."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.checklist.measurements import NO_PCC, pccs, worst_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.settings import USUAL_PCC

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.observation import MetricObservation, Observation


@rule("TTP901", "pcc-below-limit", Severity.ERROR, Input.TEST)
def pcc_below_limit(
    observation: Observation,
    *,
    least: Limit = Limit(USUAL_PCC, "PCC", "bring-up guides of tt-metal"),
) -> Answer:
    """A PCC is below its limit.

    ## What it finds
    Correlations of an output with what was expected that are below the limit, or do not exist.

    ## Why it matters
    A model that is fast and wrong is of no use to anybody.

    ## What to do
    Undo the last change of a format, a fidelity or a layout; then compare layer by layer, with
    `ttnn_perf.check_layers` or comparison mode of TTNN, to find where the outputs part.

    ## When it is no problem
    Never. A model that cannot reach 0.99 sets a limit of its own, with its reason.

    ## Where it looks
    The worst sample of every PCC of the test: what `check_pcc` records, and other accuracies with
    pcc in their names. The limit is that of the call, the marker or the setting `pcc`; a PCC
    without any has the one below. What the gate says of a PCC by itself is not said twice.
    """
    checked = pccs(observation)
    if not checked:
        return Answer.not_measured(NO_PCC)
    limits = {
        pcc.metric.name: least.value if pcc.limits.at_least is None else pcc.limits.at_least
        for pcc in checked
    }
    # NaN is below nothing; it comes first, then the one furthest below its limit.
    short = [pcc for pcc in checked if not worst_of(pcc) >= limits[pcc.metric.name]]
    ordered = sorted(short or checked, key=lambda pcc: _rank(pcc, limits))
    worst = ordered[0]
    bound = replace(least, value=limits[worst.metric.name])
    if not short:
        return bound.clean(_finite(worst))
    return bound.found(
        _finite(worst),
        "; ".join(_sentence(pcc, limits) for pcc in ordered),
        (Evidence(pcc.metric.name, _finite(pcc), "PCC") for pcc in ordered),
    )


def _rank(observed: MetricObservation, limits: dict[str, float]) -> float:
    distance = worst_of(observed) - limits[observed.metric.name]
    return -math.inf if math.isnan(distance) else distance


def _finite(observed: MetricObservation) -> float | None:
    worst = worst_of(observed)
    return None if math.isnan(worst) else worst


def _sentence(observed: MetricObservation, limits: dict[str, float]) -> str:
    name, value = observed.metric.name, _finite(observed)
    if value is None:
        return f"{name} does not exist: {observed.note or 'it is not a number'}"
    return f"{name} is {value:.6g}, below {limits[name]:g}"
