from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp903_non_finite_output import non_finite_output
from pytest_ttnn_perf.measure.pcc import compare
from pytest_ttnn_perf.records.finding import Evidence, Subject
from tests.rules.answers import ask
from tests.rules.observations import accuracy, measured, timed

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.observation import MetricObservation

RULE = non_finite_output
CLEAN = clean(0, limit=0, unit="outputs")
FINE, BROKEN = [1.0, 2.0, 3.0], [1.0, math.nan, math.inf]


def checked(expected: list[float], actual: list[float]) -> MetricObservation:
    """Return a PCC with the note that a real comparison gives it."""
    agreement = compare(np.array(expected), np.array(actual))
    return accuracy(agreement.pcc, note=agreement.sentence)


def test_an_output_with_nan_and_infinity() -> None:
    text = (
        "pcc: actual holds 1 NaN and 1 infinite of 3 values, the first (NaN) at [1]: "
        "PCC does not exist"
    )
    assert ask(RULE, measured(checked(FINE, BROKEN))) == found(
        text, value=1, limit=0, unit="outputs", evidence=[Evidence("pcc")]
    )


def test_both_sides() -> None:
    assert ask(RULE, measured(checked(BROKEN, BROKEN))).value == 1


def test_an_accuracy_that_is_no_number() -> None:
    text = "top1: not a number"
    assert ask(RULE, measured(accuracy(math.nan, name="top1"))) == found(
        text, value=1, limit=0, unit="outputs", evidence=[Evidence("top1")]
    )


def test_finite_outputs_are_clean() -> None:
    assert ask(RULE, measured(checked(FINE, FINE))) == CLEAN
    assert ask(RULE, measured(checked(FINE, [0.0, 0.0, 0.0]))) == CLEAN


def test_a_pcc_that_does_not_exist_for_another_reason() -> None:
    assert ask(RULE, measured(checked(FINE, [1.0]))) == CLEAN
    assert ask(RULE, measured(checked(BROKEN, FINE))) == CLEAN


def test_without_input() -> None:
    assert ask(RULE, measured(timed(5.0))) == not_measured("the test checks no output")
    assert ask(RULE, Subject()) == not_measured("needs a measured test")
