"""What holds for percentiles of any distribution."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.measure.timing import CONFIDENCE, least_count, quantile
from tests.properties.strategies import MANY


@MANY
@given(st.lists(st.floats(0.001, 1e9), min_size=1, max_size=400), st.sampled_from([0.5, 0.9, 0.99]))
def test_a_percentile_is_a_value_of_the_sample(values: list[float], fraction: float) -> None:
    found = quantile(values, fraction)
    assert (found is None) == (len(values) < least_count(fraction))
    if found is not None:
        assert found in values
        assert sum(value <= found for value in values) >= fraction * len(values) - 1e-6


@pytest.mark.parametrize("fraction", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_one_value_less_would_not_be_enough(fraction: float) -> None:
    count = least_count(fraction)
    assert 1 - fraction**count >= CONFIDENCE > 1 - fraction ** (count - 1)
