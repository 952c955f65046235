"""Variables with which no time means anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Severity
from pytest_ttnn_perf.records.metric import Kind, Source

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.hardware import Conflict
    from pytest_ttnn_perf.records.observation import Observation

_NONE: Final = Limit(0, "variables", "with any of them a time is not the model's")


@rule("TTP004", "conflicting-environment", Severity.ERROR)
def conflicting_environment(
    conflicts: tuple[Conflict, ...] | None, observation: Observation | None
) -> Answer:
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
    if observation is not None and not any(
        observed.samples
        and observed.metric.source is Source.WALL
        and observed.metric.kind in {Kind.TIME, Kind.THROUGHPUT}
        for observed in observation.metrics.values()
    ):
        return Answer.not_applicable("no wall time was taken")
    if conflicts is None:
        return Answer.not_measured("the environment in which the times were taken is not known")
    sentences = [str(conflict) for conflict in conflicts]
    return _NONE.at_most(len(conflicts), "; ".join(sentences), map(Evidence, sentences))
