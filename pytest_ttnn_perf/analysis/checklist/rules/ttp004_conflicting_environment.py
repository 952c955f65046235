"""Variables with which no time means anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf.analysis.checklist.rule import (
    Rule,
    clean,
    found,
    not_applicable,
    not_measured,
)
from pytest_ttnn_perf.records.finding import Evidence, Severity
from pytest_ttnn_perf.records.metric import Kind, Source

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.observation import Observation


@dataclass(frozen=True, slots=True)
class ConflictingEnvironment(Rule):
    """A variable was set that changes the times.

    ## What it finds
    Variables of the environment that slow kernels or calls down while times are taken: the watcher,
    prints and asserts of kernels, slow dispatch, profilers, tt-lang's dumps, logging or comparison
    in TTNN_CONFIG_OVERRIDES.

    ## Why it matters
    What is measured is then the model with its debugging. Some of them do so even when set to 0.

    ## What to do
    Unset the variable; each finding says which.

    ## When it is no problem
    Never for times. To debug, run the test without the gate.

    ## Where it looks
    The environment of the process that took the samples. The profiled pass takes no wall times: its
    environment is not looked at.
    """

    code: ClassVar[str] = "TTP004"
    name: ClassVar[str] = "conflicting-environment"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, subject: Subject) -> Answer:
        """Repeat what was seen when the samples were taken."""
        conflicts = subject.conflicts
        if subject.observation is not None and not _took_times(subject.observation):
            return not_applicable("no wall time was taken")
        if conflicts is None:
            return not_measured("the environment in which the times were taken is not known")
        if not conflicts:
            return clean(0, limit=0, unit="variables")
        return found(
            "; ".join(str(conflict) for conflict in conflicts),
            value=len(conflicts),
            limit=0,
            unit="variables",
            evidence=(Evidence(str(conflict)) for conflict in conflicts),
        )


def _took_times(observation: Observation) -> bool:
    return any(
        each.samples
        and each.metric.source is Source.WALL
        and each.metric.kind in {Kind.TIME, Kind.THROUGHPUT}
        for each in observation.metrics.values()
    )
