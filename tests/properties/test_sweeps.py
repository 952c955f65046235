"""What holds for the points of any sweep, and for percentiles of any distribution."""

from __future__ import annotations

import math
import random
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
    from collections.abc import Callable

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


#: Ways to draw a value, each with its distribution's quantile function.
DISTRIBUTIONS: dict[str, tuple[Callable[[random.Random], float], Callable[[float], float]]] = {
    "uniform": (lambda r: r.random(), lambda q: q),
    "exponential": (lambda r: r.expovariate(1.0), lambda q: -math.log(1 - q)),
    "heavy tail": (lambda r: r.paretovariate(1.2), lambda q: (1 - q) ** (-1 / 1.2)),
    "with stalls": (
        lambda r: r.random() + (100.0 if r.random() < 0.02 else 0.0),
        lambda q: q / 0.98 if q <= 0.98 else 100.0 + (q - 0.98) / 0.02,
    ),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize(("fraction", "count"), [(0.5, 7), (0.9, 29), (0.9, 120), (0.99, 400)])
def test_the_bound_of_a_percentile_holds_as_often_as_it_says(
    name: str, fraction: float, count: int
) -> None:
    draw, true_quantile = DISTRIBUTIONS[name]
    source = random.Random(f"{name} {fraction} {count}")
    rounds = 1500
    held = 0
    for _ in range(rounds):
        found = quantile([draw(source) for _ in range(count)], fraction)
        assert found is not None
        held += found.at_most >= true_quantile(fraction)
    # Three standard errors of a share of 95 % below it; the seed is fixed.
    assert held / rounds >= CONFIDENCE - 3 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / rounds)


@MANY
@given(st.lists(st.floats(0.001, 1e9), min_size=1, max_size=400), st.sampled_from([0.5, 0.9, 0.99]))
def test_a_percentile_and_its_bound_are_values_of_the_sample_in_order(
    values: list[float], fraction: float
) -> None:
    found = quantile(values, fraction)
    assert (found is None) == (len(values) < least_count(fraction))
    if found is not None:
        assert found.value in values
        assert found.value <= found.at_most <= max(values)
        assert sum(value <= found.value for value in values) >= fraction * len(values) - 1e-6


@pytest.mark.parametrize("fraction", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_one_value_less_would_not_be_enough(fraction: float) -> None:
    count = least_count(fraction)
    assert 1 - fraction**count >= CONFIDENCE > 1 - fraction ** (count - 1)
