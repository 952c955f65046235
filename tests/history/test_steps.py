"""Steps of a series: found where they are, and not found where there are none."""

from __future__ import annotations

import math
import random

import pytest

from pytest_ttnn_perf.history.trends import find_steps, winsorised


def noise(seed: int, n: int, sd: float = 0.01) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0, sd) for _ in range(n)]


def positions(values: list[float]) -> list[int]:
    return [step.position for step in find_steps(winsorised(values))]


@pytest.mark.parametrize("place", [20, 100, 180])
@pytest.mark.parametrize("size", [0.06, -0.06])
def test_a_step_is_found_where_it_is(place: int, size: float) -> None:
    values = [value + size * (number >= place) for number, value in enumerate(noise(1, 200))]
    (step,) = find_steps(winsorised(values))
    assert abs(step.position - place) <= 1
    assert step.size == pytest.approx(size, abs=0.01)


def test_steps_up_and_down_are_both_found() -> None:
    values = [value + 0.06 * (80 <= number < 120) for number, value in enumerate(noise(2, 200))]
    up, down = positions(values)
    assert abs(up - 80) <= 1
    assert abs(down - 120) <= 1


def test_a_change_of_less_than_two_per_cent_is_not_told() -> None:
    quiet = noise(3, 200, sd=0.001)
    assert positions([v + 0.015 * (n >= 100) for n, v in enumerate(quiet)]) == []
    assert positions([v + 0.025 * (n >= 100) for n, v in enumerate(quiet)]) == [100]


@pytest.mark.parametrize(("runs", "found"), [(2, 0), (3, 1)])
def test_a_new_level_is_told_after_three_runs(runs: int, found: int) -> None:
    values = noise(4, 60, sd=0.005) + [value + 0.1 for value in noise(5, runs, sd=0.005)]
    assert len(positions(values)) == found


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_a_few_runs_apart_from_the_others_are_outliers(length: int) -> None:
    values = noise(6, 100, sd=0.005)
    values[50 : 50 + length] = [0.3] * length
    assert positions(values) == []


def test_two_outliers_among_the_last_three_runs_are_no_level() -> None:
    values = noise(7, 100, sd=0.005)
    values[-3], values[-1] = 0.3, 0.3
    assert positions(values) == []


def test_neighbours_that_are_alike_count_for_less() -> None:
    """Noise that wanders has levels that last for a while: each of them would be a step."""
    found = 0
    for seed in range(40):
        rng, last, values = random.Random(seed), 0.0, []
        for _ in range(365):
            last = 0.5 * last + rng.gauss(0, 0.02 * math.sqrt(0.75))
            values.append(last)
        found += bool(positions(values))
    assert found == 0
