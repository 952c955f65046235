"""Outputs with NaN or infinity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.measurements import accuracies, is_not_finite
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.observation import Observation

_NONE: Final = Limit(0, "outputs", "NaN and infinity are never right")


@rule("TTP903", "non-finite-output", Severity.ERROR, Input.TEST)
def non_finite_output(observation: Observation) -> Answer:
    """The output holds values that are not finite.

    ## What it finds
    Outputs with NaN or infinite values, and accuracies that are not a number.

    ## Why it matters
    A correlation over them does not exist. Helpers that clamp or ignore NaN call such an output
    perfect.

    ## What to do
    Find the first op that gives one, with comparison mode of TTNN. Usual causes are a softmax or an
    exponential without its maximum subtracted, a division by a sum over padding, an uninitialised
    cache, and weights beyond the range of a block format.

    ## When it is no problem
    Masks of minus infinity that are an output by design: compare them after a softmax.

    ## Where it looks
    What a checked PCC says of the values of the actual output, and the values of other accuracies.
    An expected output that is not finite is told by TTP901.
    """
    checked = accuracies(observation)
    if not checked:
        return Answer.not_measured("the test checks no output")
    bad = [output for output in checked if is_not_finite(output)]
    problems = [f"{output.metric.name}: {output.note or 'not a number'}" for output in bad]
    evidence = (Evidence(output.metric.name) for output in bad)
    return _NONE.at_most(len(bad), "; ".join(problems), evidence)
