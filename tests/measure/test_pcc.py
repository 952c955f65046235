"""PCC: ordinary values, laws, precision, and every special case."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.measure.pcc import Agreement, compare


def noisy(size: int, *, seed: int = 0, noise: float = 0.1) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    x = random.standard_normal(size)
    return x, x + noise * random.standard_normal(size)


def exact_pcc(x: Any, y: Any) -> float:
    """Correlate without any rounding before the last two steps."""
    a, b = [Fraction(v) for v in x.tolist()], [Fraction(v) for v in y.tolist()]
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    aa = sum((v - mean_a) ** 2 for v in a)
    bb = sum((v - mean_b) ** 2 for v in b)
    ab = sum((v - mean_a) * (w - mean_b) for v, w in zip(a, b, strict=True))
    return math.sqrt(ab * ab / (aa * bb)) * (1 if ab > 0 else -1)


class TestProperties:
    @given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 200), chunk=st.integers(1, 70))
    def test_agrees_with_numpy_whatever_the_chunks(self, seed: int, size: int, chunk: int) -> None:
        x, y = noisy(size, seed=seed, noise=1.0)
        assume(min(x.std(), y.std()) > 1e-3)
        agreement = compare(x, y, chunk=chunk)
        assert agreement.pcc == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-9)
        assert abs(compare(x, -7.0 * x).pcc) <= 1.0
        assert agreement.max_abs_error == np.abs(y - x).max()
        relative = np.linalg.norm(y - x) / np.linalg.norm(x)
        assert agreement.relative_l2 == pytest.approx(relative, rel=1e-12)


def with_outlier(values: Any, place: int, value: float) -> Any:
    values = values.copy()
    values[place] = value
    return values


X, Y = noisy(300, noise=0.3)
HARD = {
    "large common offset": (X + 1e9, Y + 1e9),
    "offset of one side": (X, Y - 1e12),
    "a spread of a few units in the last place": (1.0 + X * 1e-15, 1.0 + Y * 1e-15),
    "outlier on one side": (X, with_outlier(Y, 170, 1e10)),
    "outlier on both sides": (with_outlier(X, 3, -1e12), with_outlier(Y, 170, 1e12)),
    "offset and outlier": (X + 1e8, with_outlier(Y + 1e8, 0, 3e8)),
    "chunks far apart": (X + np.repeat([0, 1e9, -1e9], 100), Y + np.repeat([5e8, 0, 1e3], 100)),
    "at the limits of float32": (X * 1e-38, Y * 1e37),
}


class TestPrecision:
    @pytest.mark.parametrize("chunk", [1, 7, 100, 300])
    @pytest.mark.parametrize("name", HARD)
    def test_against_exact_arithmetic(self, name: str, chunk: int) -> None:
        x, y = HARD[name]
        agreement = compare(x, y, chunk=chunk)
        assert agreement.pcc == pytest.approx(exact_pcc(x, y), abs=2e-13)
        assert agreement.sentence is None


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
    agreement = compare(expected, actual, chunk=chunk)
    assert math.isnan(agreement.pcc)
    assert replace(agreement, pcc=0.0) == Agreement(0.0, f"{sentence}: PCC does not exist")


@pytest.mark.parametrize(
    ("expected", "actual", "told"),
    [
        (
            np.full((3, 3), 0.25), np.full((3, 3), 0.25),
            (1.0, "both sides are constant at 0.25: PCC is 0/0 and 1.0 by definition", 0.0, 0.0),
        ),
        (
            np.full(3, 0.5), np.full(3, -0.25),
            (0.0, "expected is constant at 0.5 and actual is constant at -0.25: PCC is 0/0 and "
             "counts as 0.0", 0.75, 1.5),
        ),
        (
            STEPS, np.zeros((2, 3)),
            (0.0, "expected runs from 0.0 to 5.0 and actual is constant at 0.0: PCC is 0/0 and "
             "counts as 0.0", 5.0, 1.0),
        ),
        (
            np.zeros((2, 3)), -STEPS,
            (0.0, "expected is constant at 0.0 and actual runs from -5.0 to -0.0: PCC is 0/0 and "
             "counts as 0.0", 5.0, None),
        ),
    ],
    ids=["equal", "different", "actual", "expected"],
)  # fmt: skip
def test_constant_sides(expected: Any, actual: Any, told: tuple[Any, ...]) -> None:
    pcc, sentence, error, relative_l2 = told
    assert compare(expected, actual) == Agreement(
        pcc, sentence, max_abs_error=error, relative_l2=relative_l2
    )


@pytest.mark.parametrize("value", [0.1, 1e15, 1e300])
def test_constant_means_exactly_constant(value: float) -> None:
    # Summing 0.1 a thousand times does not give 100, so the variance alone would not tell.
    constant = np.full(1000, value)
    almost = constant.copy()
    almost[500] = np.nextafter(value, np.inf)
    assert "and actual is constant at" in str(compare(STEPS.ravel(), constant[:6]).sentence)
    assert "both sides are constant" in str(compare(constant, constant).sentence)
    assert compare(almost, almost) == Agreement(1.0, max_abs_error=0.0, relative_l2=0.0)


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_what_float64_cannot_square_is_never_a_pass(factor: float) -> None:
    assert math.isnan(compare(X * factor, Y * factor).pcc)
