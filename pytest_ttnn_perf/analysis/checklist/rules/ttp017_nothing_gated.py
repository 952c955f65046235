"""Tests that somebody wants gated, and that tell nothing that is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.rule import Answer, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.observation import Asked

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.observation import Observation


@rule("TTP017", "nothing-gated", Severity.ERROR, Input.TEST)
def nothing_gated(observation: Observation) -> Answer:
    """A test that is to be gated ends without a gated number.

    ## What it finds
    Tests with the `ttnn_perf` marker or fixture of which no number is gated: an error. Tests that a
    marker of the setting `markers` takes in: a warning. Tests that only `--ttnn-perf-all` takes in
    are not asked.

    ## Why it matters
    Such a test passes however slow it becomes, and looks as if it were gated.

    ## What to do
    Measure with `ttnn_perf.measure(...)` or `ttnn_perf.record(...)`, or report through a helper
    that is observed, under a name that is known; for the time of the whole call set
    `gate_call_time = true`.

    ## When it is no problem
    Never for a test that asks for it itself: take the marker away. Tests that share a marker with
    others may have nothing to measure; waive the rule there.

    ## Where it looks
    The metrics that the test recorded, or that were observed, and whether they are gated.
    """
    asked, metrics = observation.asked, observation.metrics
    if asked is None:
        return Answer.not_applicable("nobody asked for this test by name")
    if not metrics:
        return Answer.not_measured("the test recorded nothing")
    if any(observed.gated for observed in metrics.values()):
        return Answer.clean()
    evidence = (
        Evidence(f"{name}: {observed.why_ungated or 'recorded only'}")
        for name, observed in metrics.items()
    )
    only = f"{counted(len(metrics), 'number')} recorded, none of them gated"
    found = Answer.found(only, value=0.0, unit="gated numbers", evidence=evidence)
    return found if asked is Asked.TEST else replace(found, severity=Severity.WARNING)
