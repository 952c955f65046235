"""Axes of a sweep that change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.rule import Answer, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.sweep import AxisEffect


@rule("TTP013", "axis-without-effect", Severity.WARNING, Input.SWEEP)
def axis_without_effect(axes: tuple[AxisEffect, ...]) -> Answer:
    """An axis of a sweep changed nothing that was observed.

    ## What it finds
    Axes of a [sweep](../how-to/sweep.md) whose points, where they differ in that axis alone, differ
    in nothing else: configuration, ops, counts, bytes, accuracies, times, and whether they fit.

    ## Why it matters
    A setting that never reaches the model gives a sweep that looks fine and means nothing. The best
    point of it is chosen by noise.

    ## What to do
    Look whether the test passes the axis on to the model. If it does, let the test record what the
    axis should change, such as an accuracy or the memory in use.

    ## When it is no problem
    When the sweep is there to show that the axis does not matter: waive it with that reason.

    ## Where it looks
    All points of the sweep, once they are measured. A throughput is no proof, as it may be reckoned
    from the axis; neither is a fact that repeats the axis. Times count where they are further apart
    than noise. It is found at every point. As it is known only when the last point is measured, it
    fails the run and no test where its severity is `error`.
    """
    idle = [axis for axis in axes if axis.compared and not axis.took_effect]
    if idle:
        named = " and ".join(axis.axis for axis in idle)
        what = "axis" if len(idle) == 1 else "axes"
        return Answer.found(
            f"{what} {named} changed nothing that was observed",
            evidence=(
                Evidence(f"{axis.axis}: {counted(axis.compared, 'pair')} of points compared")
                for axis in idle
            ),
        )
    if not any(axis.compared for axis in axes):
        return Answer.not_measured("no two points differ in one axis alone")
    return Answer.clean()
