from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pytest_ttnn_perf.measure.pcc import Agreement, compare, compare_in_chunks

STEPS = np.arange(6.0).reshape(2, 3)


def assert_undefined(agreement: Agreement, sentence: str) -> None:
    assert math.isnan(agreement.pcc)
    assert agreement.sentence == sentence
    assert agreement.max_abs_error is None
    assert agreement.relative_l2 is None


def test_shape_mismatch() -> None:
    assert_undefined(
        compare(STEPS, STEPS.T),
        "expected has shape (2, 3) and actual has shape (3, 2): PCC does not exist",
    )


def test_empty() -> None:
    assert_undefined(
        compare(np.empty((4, 0)), np.empty((4, 0))),
        "both sides have shape (4, 0) and no element: PCC does not exist",
    )


@pytest.mark.parametrize(
    ("expected", "actual", "sides"),
    [
        (STEPS * 1j, STEPS, "expected (complex128)"),
        (STEPS, (STEPS * 1j).astype(np.complex64), "actual (complex64)"),
        (STEPS * 1j, STEPS[0] * 1j, "expected (complex128) and actual (complex128)"),
    ],
)
def test_complex(expected: Any, actual: Any, sides: str) -> None:
    assert_undefined(
        compare(expected, actual),
        f"{sides}: complex values have no PCC; compare real and imaginary parts on their own",
    )


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_non_finite_on_one_side(chunk: int) -> None:
    actual = np.ones((2, 3, 4))
    actual[1, 0, 2] = np.nan
    actual[1, 2, 0] = -np.inf
    actual[1, 2, 3] = np.nan
    assert_undefined(
        compare_in_chunks(np.arange(24.0).reshape(2, 3, 4), actual, chunk=chunk),
        "actual holds 2 NaN and 1 infinite of 24 values, the first (NaN) at [1, 0, 2]: "
        "PCC does not exist",
    )


def test_non_finite_on_both_sides_even_if_equal() -> None:
    values = np.array([0.0, 1.0, np.inf, 2.0], dtype=np.float32)
    assert_undefined(
        compare(values, values),
        "expected holds 0 NaN and 1 infinite of 4 values, the first (inf) at [2]; "
        "actual holds 0 NaN and 1 infinite of 4 values, the first (inf) at [2]: "
        "PCC does not exist",
    )


def test_non_finite_position_counts_in_the_order_of_indices_not_of_memory() -> None:
    expected = np.zeros((3, 2))
    expected[1, 1] = -np.inf
    expected[2, 0] = np.nan
    agreement = compare(np.asfortranarray(expected), np.ones((3, 2)))
    assert agreement.sentence is not None
    assert "the first (-inf) at [1, 1]:" in agreement.sentence


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
