from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_ttnn_perf.measure.pcc import Agreement, compare, compare_in_chunks

STEPS = np.arange(6.0).reshape(2, 3)


NON_FINITE = np.ones((2, 3, 4))
NON_FINITE[1, 0, 2] = NON_FINITE[1, 2, 3] = np.nan
NON_FINITE[1, 2, 0] = -np.inf
INFINITE = np.array([0.0, 1.0, np.inf, 2.0], dtype=np.float32)
#: Its first value is found in the order of indices, not of memory.
FORTRAN = np.asfortranarray([[0.0, 0.0], [0.0, -np.inf], [np.nan, 0.0]])


@pytest.mark.parametrize(
    ("expected", "actual", "sentence"),
    [
        (
            STEPS, STEPS.T,
            "expected has shape (2, 3) and actual has shape (3, 2)",
        ),
        (
            np.empty((4, 0)), np.empty((4, 0)),
            "both sides have shape (4, 0) and no element",
        ),
        (
            np.arange(24.0).reshape(2, 3, 4), NON_FINITE,
            "actual holds 2 NaN and 1 infinite of 24 values, the first (NaN) at [1, 0, 2]",
        ),
        (
            INFINITE, INFINITE,
            "expected holds 0 NaN and 1 infinite of 4 values, the first (inf) at [2]; "
            "actual holds 0 NaN and 1 infinite of 4 values, the first (inf) at [2]",
        ),
        (
            FORTRAN, np.ones((3, 2)),
            "expected holds 1 NaN and 1 infinite of 6 values, the first (-inf) at [1, 1]",
        ),
    ],
    ids=["shapes", "empty", "one side", "both sides", "order in memory"],
)  # fmt: skip
@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_a_pcc_that_does_not_exist(expected: Any, actual: Any, sentence: str, chunk: int) -> None:
    agreement = compare_in_chunks(expected, actual, chunk=chunk)
    assert math.isnan(agreement.pcc)
    assert replace(agreement, pcc=0.0) == Agreement(0.0, f"{sentence}: PCC does not exist")


@pytest.mark.parametrize(
    ("expected", "actual", "sides"),
    [
        (STEPS * 1j, STEPS, "expected (complex128)"),
        (STEPS, (STEPS * 1j).astype(np.complex64), "actual (complex64)"),
        (STEPS * 1j, STEPS[0] * 1j, "expected (complex128) and actual (complex128)"),
    ],
)
def test_complex(expected: Any, actual: Any, sides: str) -> None:
    agreement = compare(expected, actual)
    why = "complex values have no PCC; compare real and imaginary parts on their own"
    assert agreement.sentence == f"{sides}: {why}"
    assert math.isnan(agreement.pcc)


def test_both_constant_and_equal() -> None:
    assert compare(np.full((3, 3), 0.25), np.full((3, 3), 0.25)) == Agreement(
        1.0,
        "both sides are constant at 0.25: PCC is 0/0 and 1.0 by definition",
        max_abs_error=0.0,
        relative_l2=0.0,
    )


def test_both_constant_and_different() -> None:
    assert compare(np.full(3, 0.5), np.full(3, -0.25)) == Agreement(
        0.0,
        "expected is constant at 0.5 and actual is constant at -0.25: PCC is 0/0 and counts as 0.0",
        max_abs_error=0.75,
        relative_l2=1.5,
    )


@pytest.mark.parametrize(
    ("expected", "actual", "sides", "relative_l2"),
    [
        (
            STEPS,
            np.zeros((2, 3)),
            "expected runs from 0.0 to 5.0 and actual is constant at 0.0",
            1.0,
        ),
        (
            np.zeros((2, 3)),
            -STEPS,
            "expected is constant at 0.0 and actual runs from -5.0 to -0.0",
            None,
        ),
    ],
)
def test_one_side_constant(
    expected: Any, actual: Any, sides: str, relative_l2: float | None
) -> None:
    assert compare(expected, actual) == Agreement(
        0.0,
        f"{sides}: PCC is 0/0 and counts as 0.0",
        max_abs_error=5.0,
        relative_l2=relative_l2,
    )


def test_both_zero_have_a_relative_error_of_zero() -> None:
    assert compare(np.zeros(3), np.zeros(3)).relative_l2 == 0.0


@pytest.mark.parametrize("value", [0.1, 1e15, 1e300])
def test_constant_means_exactly_constant(value: float) -> None:
    # Summing 0.1 a thousand times does not give 100, so the variance alone would not tell.
    constant = np.full(1000, value)
    almost = constant.copy()
    almost[500] = np.nextafter(value, np.inf)
    assert "and actual is constant at" in str(compare(STEPS.ravel(), constant[:6]).sentence)
    assert "both sides are constant" in str(compare(constant, constant).sentence)
    assert compare(almost, almost) == Agreement(1.0, max_abs_error=0.0, relative_l2=0.0)
