"""What several records of one commit tell of one test: one observation of several sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.model.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.model.baseline import TestBaseline
    from pytest_ttnn_perf.model.observation import JudgedTest, MetricObservation, Observation


@dataclass(frozen=True, slots=True)
class Measured:
    """A test as one record tells it, judged by itself; ``record`` is the record's name."""

    record: str
    judged: JudgedTest

    @property
    def observation(self) -> Observation:
        """What it observed."""
        return self.judged.observation


def joined(measured: Sequence[Measured]) -> Observation:
    """Return the records of a test as one: each more is a confirmation of the first.

    Of what is compared exactly all samples count together, as nothing of it may differ. If they
    contradict each other, the result has a problem, and cannot be accepted.
    """
    first, *rest = measured
    if not rest:
        return first.observation
    for each in measured:
        trouble = _trouble(each.observation)
        if trouble is not None:
            return replace(first.observation, problems=(f"{each.record}: {trouble}",))
    for each in rest:
        difference = _difference(first, each)
        if difference is not None:
            return replace(first.observation, problems=(f"{each.record}: {difference}",))
    metrics = {
        name: _series([each.observation.metrics[name] for each in measured])
        for name in first.observation.metrics
    }
    return replace(first.observation, metrics=metrics, ops=rest[-1].observation.ops)


def is_stored(measured: Measured, stored: TestBaseline | None) -> bool:
    """Return whether all timings of a test are sessions of the baseline already.

    Taking the same record twice must not make its sessions count twice. Times may be equal by
    chance, as those of a simulator are: what is compared exactly must be as it is stored.
    """
    exact = (v for v in measured.judged.verdicts if not v.metric.compared_by_ratio)
    if stored is None or any(verdict.outcome is not Outcome.WITHIN for verdict in exact):
        return False
    gated = [
        (each, stored.metrics[name].sessions)
        for name, each in measured.observation.metrics.items()
        if each.metric.compared_by_ratio and name in stored.metrics
    ]
    return bool(gated) and all(
        bool(each.samples) and session_of(each, each.samples) in sessions
        for each, sessions in gated
    )


def _trouble(observation: Observation) -> str | None:
    if observation.lost is not None:
        return f"its worker {observation.lost}"
    if observation.raised is not None:
        return f"the test raised {observation.raised}"
    if observation.unconfirmed is not None:
        return f"it could not be confirmed: {observation.unconfirmed}"
    return observation.problems[0] if observation.problems else None


def _difference(first: Measured, other: Measured) -> str | None:
    ours, theirs = first.observation, other.observation
    setting = theirs.setting.first_difference(ours.setting)
    if setting is not None:
        name, now, then = setting
        return f"another configuration: {name} is {now!r}, in {first.record} {then!r}"
    for name in sorted({*ours.metrics, *theirs.metrics}):
        mine, its = ours.metrics.get(name), theirs.metrics.get(name)
        if mine is None or its is None:
            lacking = first.record if mine is None else other.record
            return f"{name} is not in {lacking}: records to be joined measure the same"
        if mine.metric != its.metric:
            return f"{name} is defined differently than in {first.record}"
    return None


def _series(measured: Sequence[MetricObservation]) -> MetricObservation:
    first, *rest = measured
    if not first.metric.compared_by_ratio:
        samples = tuple(sample for each in measured for sample in each.samples)
        return replace(first, samples=samples)
    more = (sample for each in rest for sample in (each.samples, *each.confirmations))
    return replace(first, confirmations=(*first.confirmations, *more))
