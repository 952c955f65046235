"""Which results are measured again in fresh processes, and what that does to an observation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.metric import Source
from pytest_ttnn_perf.model.verdict import Outcome, Reason
from pytest_ttnn_perf.report.progress import suspicion_line
from pytest_ttnn_perf.workflow.accept import Action, actions_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.model.observation import JudgedTest, MetricObservation, Observation
    from pytest_ttnn_perf.model.settings import Update
    from pytest_ttnn_perf.model.verdict import Verdict

#: What is the same however often it is asked for, or is told at the end alone.
MEASURED_ONCE: Final = frozenset({Source.REPLAY, Source.TRACY})
#: What makes a new centre: one lucky or unlucky process must not become it.
_DECISIVE: Final = frozenset({Action.ADD, Action.ACCEPT, Action.REPLACE})


def in_question(judged: JudgedTest, update: Update | None, *, passes: int) -> frozenset[str]:
    """Return the metrics of a test that are measured again before anything is decided.

    Those that look slower, and those that would become a baseline. Times and throughputs only:
    what is compared exactly has no luck. Each ``passes`` times at most.
    """
    observation = judged.observation
    if observation.problems or observation.raised is not None or observation.unconfirmed:
        return frozenset()
    actions = actions_of(_cleared(judged), update) if update else {}
    return frozenset(
        verdict.metric.name
        for verdict in judged.verdicts
        if verdict.metric.compared_by_ratio
        # What was recorded is the same however often it is read; Tracy reports at its end alone.
        and verdict.metric.source not in MEASURED_ONCE
        # A part is accepted with its total, and that is what is measured again.
        and verdict.reason is not Reason.EXPLAINS
        and (is_suspect(verdict) or actions.get(verdict.metric.name) in _DECISIVE)
        and len(observation.metrics[verdict.metric.name].confirmations) < passes
    )


def is_suspect(verdict: Verdict) -> bool:
    """Return whether a metric looks worse by its numbers, which may be bad luck."""
    by_ratio = verdict.metric.compared_by_ratio
    return by_ratio and verdict.outcome is Outcome.REGRESSED and verdict.reason is None


def _cleared(judged: JudgedTest) -> JudgedTest:
    """Return a judged test as it would be if all that looks worse were bad luck.

    A gain beside a suspect is measured along with it: once the suspect is cleared there may be too
    few passes left for the gain.
    """
    verdicts = (
        verdict._replace(outcome=Outcome.WITHIN) if is_suspect(verdict) else verdict
        for verdict in judged.verdicts
    )
    return replace(judged, verdicts=tuple(verdicts))


def confirmed(
    observation: Observation, names: Iterable[str], again: Observation, *, number: int
) -> Observation:
    """Return an observation with what confirm pass ``number`` measured of the metrics ``names``."""
    failed = _failed(observation, again)
    if failed is not None:
        return not_confirmed(observation, names, f"confirm pass {number}: {failed}")
    for name in names:
        if name not in again.metrics:
            why = f"confirm pass {number}: the test did not record it"
            return not_confirmed(observation, names, why)
    samples = {name: again.metrics[name].samples for name in names}
    return _with_samples(observation, samples)


def not_confirmed(observation: Observation, names: Iterable[str], why: str) -> Observation:
    """Return an observation whose metrics ``names`` could not be measured again."""
    nothing: dict[str, tuple[float, ...]] = dict.fromkeys(names, ())
    return replace(_with_samples(observation, nothing), unconfirmed=why)


def _failed(observation: Observation, again: Observation) -> str | None:
    if again.raised is not None:
        return f"the test raised {again.raised}"
    if again.problems:
        return again.problems[0]
    difference = again.setting.first_difference(observation.setting)
    if difference is not None:
        name, now, then = difference
        return f"another configuration: {name} is {now!r}, before {then!r}"
    return None


def _with_samples(observation: Observation, samples: dict[str, tuple[float, ...]]) -> Observation:
    def more(name: str, observed: MetricObservation) -> MetricObservation:
        if name not in samples:
            return observed
        return replace(observed, confirmations=(*observed.confirmations, samples[name]))

    metrics = {name: more(name, observed) for name, observed in observation.metrics.items()}
    return replace(observation, metrics=metrics)


def suspicion(judged: JudgedTest) -> str | None:
    """Say what makes a test look slower; None if it is only to be recorded."""
    suspects = [verdict for verdict in judged.verdicts if is_suspect(verdict)]
    return suspicion_line(judged.observation.test, suspects) if suspects else None
