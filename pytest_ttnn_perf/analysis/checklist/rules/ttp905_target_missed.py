"""Goals that are not reached yet."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.checklist.measurements import worst_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.metric import Better, Kind, median

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.observation import MetricObservation, Observation


@rule("TTP905", "target-missed", Severity.INFO, Input.TEST)
def target_missed(observation: Observation) -> Answer:
    """A metric has not reached its target.

    ## What it finds
    Metrics with a target in the marker of their test that are not as good as that.

    ## Why it matters
    A target says how far a model has to go. Until then it is progress, not failure.

    ## What to do
    Take the open steps of the checklist, those with the largest share of the time first.

    ## When it is no problem
    While work is under way: it never fails a test.

    ## Where it looks
    `target={"wall_time": "10 ms"}` of the marker against the median of the samples, of accuracies
    against the worst.
    """
    metrics = observation.metrics.values()
    aimed = [observed for observed in metrics if observed.limits.target is not None]
    if not aimed:
        return Answer.not_applicable("the test sets no target")
    measured = [
        observed for observed in aimed if observed.samples and all(map(isfinite, observed.samples))
    ]
    if not measured:
        return Answer.not_measured(f"{aimed[0].metric.name} has a target and no finite samples")
    ordered = sorted(measured, key=_shortfall, reverse=True)
    missed = [observed for observed in ordered if not _is_reached(observed)]
    worst = (missed or ordered)[0]
    assert worst.limits.target is not None
    target = Limit(worst.limits.target, worst.metric.unit, "the test")
    if not missed:
        return target.clean(_value(worst))
    return target.found(
        _value(worst),
        "; ".join(map(_sentence, missed)),
        (
            Evidence(observed.metric.name, _value(observed), observed.metric.unit)
            for observed in missed
        ),
    )


def _value(observed: MetricObservation) -> float:
    is_accuracy = observed.metric.kind is Kind.ACCURACY
    return worst_of(observed) if is_accuracy else median(observed.samples)


def _is_reached(observed: MetricObservation) -> bool:
    value, target = _value(observed), observed.limits.target
    assert target is not None
    return value >= target if observed.metric.better is Better.HIGHER else value <= target


def _shortfall(observed: MetricObservation) -> float:
    """Return how far a metric is behind its target, as a fraction of it."""
    target = observed.limits.target or 1.0
    behind = (_value(observed) - target) / abs(target)
    return -behind if observed.metric.better is Better.HIGHER else behind


def _sentence(observed: MetricObservation) -> str:
    metric, target = observed.metric, observed.limits.target
    unit = f" {metric.unit}" if metric.unit else ""
    return f"{metric.name} is {_value(observed):.6g}{unit}, its target {target:.6g}{unit}"
