from __future__ import annotations

import math

import numpy as np

from pytest_ttnn_perf.measure.pcc import compare
from tests.rules.answers import Ask, Evidence, limit, not_measured
from tests.rules.observations import MetricObservation, accuracy, measured, timed

ask = Ask("TTP903")
LIMIT = limit(0, "outputs")
CLEAN = LIMIT.clean(0)
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
    assert ask(measured(checked(FINE, BROKEN))) == LIMIT.found(1, text, [Evidence("pcc")])


def test_both_sides() -> None:
    assert ask(measured(checked(BROKEN, BROKEN))).value == 1


def test_an_accuracy_that_is_no_number() -> None:
    text = "top1: not a number"
    assert ask(measured(accuracy(math.nan, name="top1"))) == LIMIT.found(
        1, text, [Evidence("top1")]
    )


def test_finite_outputs_are_clean() -> None:
    assert ask(measured(checked(FINE, FINE))) == CLEAN
    assert ask(measured(checked(FINE, [0.0, 0.0, 0.0]))) == CLEAN


def test_a_pcc_that_does_not_exist_for_another_reason() -> None:
    assert ask(measured(checked(FINE, [1.0]))) == CLEAN
    assert ask(measured(checked(BROKEN, FINE))) == CLEAN


def test_without_input() -> None:
    assert ask(measured(timed(5.0))) == not_measured("the test checks no output")
