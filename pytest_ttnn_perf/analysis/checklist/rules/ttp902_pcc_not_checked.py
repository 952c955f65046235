"""Tests that measure time, and nothing else."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.measurements import accuracies, pccs
from pytest_ttnn_perf.analysis.checklist.rule import Answer, rule
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.metric import Source
from pytest_ttnn_perf.records.observation import NO_LIMITS, Observation


@rule("TTP902", "pcc-not-checked", Severity.WARNING, Input.TEST)
def pcc_not_checked(observation: Observation) -> Answer:
    """A measured test does not check its output.

    ## What it finds
    Tests that measure something without checking a PCC, or any other accuracy with a limit.

    ## Why it matters
    Most optimizations trade precision for speed. Without a check, a model that skips its work is
    the fastest.

    ## What to do
    Call `ttnn_perf.check_pcc(expected, actual)` with the output that `measure` returns; for models
    that are judged as a whole, `check_accuracy` with `at_least`.

    ## When it is no problem
    Tests of transfers, of compile times, and others that have no output to compare.

    ## Where it looks
    The PCC and the accuracies that the test recorded.
    """
    if pccs(observation):
        return Answer.clean()
    held = [
        observed.metric.name for observed in accuracies(observation) if observed.limits != NO_LIMITS
    ]
    if held:
        return Answer.clean(reason=f"{', '.join(held)} checked in its place")
    if observation.raised or observation.lost or observation.out_of_memory:
        return Answer.not_measured("the test did not reach its end")
    if not observation.metrics:
        return Answer.not_applicable("the test measures nothing")
    if not any(observed.gated for observed in observation.metrics.values()):
        return Answer.not_applicable("nothing of the test is gated")
    if all(observed.metric.source is not Source.WALL for observed in observation.metrics.values()):
        return Answer.not_measured(
            "only the device was measured: outputs are checked in another pass"
        )
    return Answer.found("the test measures its model without checking the output")
