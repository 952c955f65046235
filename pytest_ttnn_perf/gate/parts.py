"""Parts of a total explain it: they do not fail a test by themselves.

An optimisation may run more ops, or spend more time in one kind of them, to spend less in all. So
while the total is judged, a count of ops or the time of a category only says where it comes from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.verdict import Outcome, Reason, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.model.observation import MetricObservation, Observation


def with_parts_explaining(
    verdicts: Iterable[Verdict], observation: Observation
) -> tuple[Verdict, ...]:
    """Return the verdicts of a test, those on changed parts as explanations of their total.

    A total that was not compared with a baseline explains nothing away, and neither does it a part
    that the author of the test gave a limit of its own.
    """
    judged = tuple(verdicts)
    if not any(verdict.metric.totals for verdict in judged):
        return judged
    compared = {each.metric.name for each in judged if _is_compared(each)}
    return tuple(
        _explaining(verdict, compared, observation.metrics.get(verdict.metric.name))
        for verdict in judged
    )


def _is_compared(verdict: Verdict) -> bool:
    return verdict.centre is not None and verdict.outcome is not Outcome.NO_DATA


def _explaining(
    verdict: Verdict, compared: set[str], observed: MetricObservation | None
) -> Verdict:
    total = next((name for name in verdict.metric.totals if name in compared), None)
    if total is None or verdict.outcome is Outcome.WITHIN or _has_own_limit(observed):
        return verdict
    return verdict._replace(
        outcome=Outcome.WITHIN, reason=Reason.EXPLAINS, detail=total, limit=None, provisional=False
    )


def _has_own_limit(observed: MetricObservation | None) -> bool:
    if observed is None:
        return False
    limits = observed.limits
    own = (limits.tolerance, limits.max_regression, limits.at_least, limits.at_most)
    return any(limit is not None for limit in own)
