"""Sketches correlate as the outputs do."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ttnn_perf.measure.sketch import SUMS, agreement, sketch_of


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5, 2.0])
def test_the_correlation_is_that_of_the_outputs(noise: float, *, heavy: bool) -> None:
    chance = np.random.default_rng(3)
    one = chance.standard_normal((100, 300))
    if heavy:  # a few values of the kind that a sample of all would miss
        one[::40, ::100] *= 500
    other = one + noise * chance.standard_normal(one.shape)
    expected = np.corrcoef(one.reshape(-1), other.reshape(-1))[0, 1]
    found = agreement(sketch_of([one]), sketch_of([other]))
    assert found == pytest.approx(expected, abs=3 * (1 - expected**2) / SUMS**0.5 + 1e-6)


def test_what_has_no_agreement() -> None:
    one = sketch_of([np.arange(10.0)])
    assert agreement(one, sketch_of([np.array([1.0, np.nan])])) == 0.0, "once it had numbers"
    assert agreement((), one) is None
    assert agreement(one, sketch_of([np.arange(10.0)] * 2)) is None, "of another number of tensors"
    assert agreement(one, sketch_of([np.arange(10.0).reshape(2, 5)])) is None, "of another shape"
    large = np.array([np.finfo(float).min, 1.0, np.finfo(float).max])
    assert sketch_of([large]) == (), "no sum of them is finite"
    assert agreement(sketch_of([np.full(10, 0.1)]), one) is None, "all alike"
    assert sketch_of([]) == ()
