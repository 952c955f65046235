"""What holds for the points of any sweep, and for percentiles of any distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import JudgedTest, MetricObservation, Observation, SweepPoint
from pytest_ttnn_perf.gate.sweeps import sweeps_of
from pytest_ttnn_perf.measure.timing import CONFIDENCE, least_count, quantile
from tests.properties.strategies import MANY, SOME

if TYPE_CHECKING:
    from pytest_ttnn_perf.gate.sweeps import Sweep

TIMES = st.lists(
    st.one_of(st.none(), st.floats(1.0, 1e6)), min_size=1, max_size=30
)  # None is out of memory


def swept(times: list[float | None]) -> Sweep:
    """Return the sweep over batches that took these times; None had no room."""
    metric = Metric("wall_time", "ns")
    (sweep,) = sweeps_of(
        JudgedTest(
            Observation(
                f"t[{batch}]",
                {"wall_time": MetricObservation(metric, (time,))} if time else {},
                sweep=SweepPoint("t", {"batch": batch}),
                out_of_memory=None if time else "none",
                environment={"batch": batch},
            )
        )
        for batch, time in enumerate(times, start=1)
    )
    return sweep


@SOME
@given(TIMES)
def test_the_best_is_among_what_was_measured(times: list[float | None]) -> None:
    sweep = swept(times)
    rates = {f"t[{batch}]": batch * 1e9 / time for batch, time in enumerate(times, start=1) if time}
    assert bool(sweep.best) == bool(rates)
    if rates:
        assert sweep.best[0] == max(rates, key=rates.__getitem__)
        # Nothing that was left out is within the least difference that counts.
        others = [rate for test, rate in rates.items() if test not in sweep.best]
        assert all(rate < max(rates.values()) / 1.02 for rate in others)


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
