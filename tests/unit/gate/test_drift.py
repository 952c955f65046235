"""Which samples are called drift: each threshold from both sides, and how often chance passes."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.gate.machine_shift import DriftKind, drift_of

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Draws so many samples' deviations from a steady level; logarithms.
    Draw = Callable[[Random, int], list[float]]


def stepped(before: int, after: int, change: float, *, jitter: float = 0.0) -> list[float]:
    """Return samples with a step; ``jitter`` moves them up and down in turn, by a logarithm."""
    level = 1e6 * (1 + change)
    return jittered([1e6] * before + [level] * after, jitter)


def ramped(count: int, change: float, *, jitter: float = 0.0) -> list[float]:
    return jittered([1e6 * (1 + change) ** (k / (count - 1)) for k in range(count)], jitter)


def jittered(samples: list[float], jitter: float) -> list[float]:
    return [sample * math.exp(jitter if k % 2 else -jitter) for k, sample in enumerate(samples)]


def kind_of(samples: list[float]) -> DriftKind | None:
    drift = drift_of(samples)
    return drift.kind if drift else None


@pytest.mark.parametrize(
    ("samples", "kind", "change", "position"),
    [
        (stepped(5, 5, 0.10), DriftKind.STEP, 0.10, 5),
        (stepped(7, 3, -0.10), DriftKind.STEP, -0.10, 7),
        (stepped(2, 8, 1 / 1.2 - 1), DriftKind.STEP, 1 / 1.2 - 1, 2),
        (stepped(3, 97, 0.05), DriftKind.STEP, 0.05, 3),
        (ramped(10, 0.10), DriftKind.TREND, 0.10, 0),
        (ramped(30, -0.05), DriftKind.TREND, -0.05, 0),
    ],
    ids=["step", "late step down", "clock ramps up", "short start", "trend", "trend down"],
)
def test_what_drifted_by_how_much_and_when(
    samples: list[float], kind: DriftKind, change: float, position: int
) -> None:
    drift = drift_of(samples)
    assert drift
    assert (drift.kind, drift.position) == (kind, position)
    assert drift.change == pytest.approx(change)


def test_seven_samples_are_too_few() -> None:
    assert drift_of([]) is None
    assert drift_of(ramped(7, 9.0)) is None
    assert kind_of(ramped(8, 9.0)) is DriftKind.TREND


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("shape", [lambda change: stepped(20, 20, change), lambda c: ramped(40, c)])
def test_no_change_below_two_per_cent_is_reported(
    shape: Callable[[float], list[float]], sign: int
) -> None:
    assert drift_of(shape(sign * 0.0199)) is None
    found = drift_of(shape(sign * 0.0205))
    assert found
    assert found.change == pytest.approx(sign * 0.0205)


@pytest.mark.parametrize(
    ("before", "after", "too_small", "enough"),
    [
        (5, 5, 0.045, 0.052),  # 1 of 252 orders
        (7, 3, 0.078, 0.084),  # 1 of 120
        (2, 8, 0.155, 0.168),  # 1 of 45
        (4, 4, 0.110, 0.123),  # 1 of 70
        (2, 7, 9.0, None),  # 1 of 36 is too probable for any size
    ],
)
def test_the_fewer_orders_there_are_the_larger_a_step_must_be(
    before: int, after: int, too_small: float, enough: float | None
) -> None:
    assert drift_of(stepped(before, after, too_small)) is None
    if enough:
        assert kind_of(stepped(before, after, enough)) is DriftKind.STEP


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (2, 22, DriftKind.STEP),
        (2, 23, None),
        (3, 22, DriftKind.STEP),
        (8, 2, None),
        (7, 3, DriftKind.STEP),
        (1, 9, None),
    ],
)
def test_two_samples_are_a_step_only_if_they_are_the_first_of_few(
    before: int, after: int, kind: DriftKind | None
) -> None:
    assert kind_of(stepped(before, after, -0.3)) is kind


def test_an_exception_to_a_step_needs_many_samples_that_follow_it() -> None:
    # By chance 10 of 48,620 orders are as good at a place, 11 of 184,756 with two samples more.
    few, many = stepped(9, 9, 0.5), stepped(10, 10, 0.5)
    few[1], many[1] = few[-1], many[-1]
    assert drift_of(few) is None
    assert kind_of(many) is DriftKind.STEP


@pytest.mark.parametrize(
    ("jitter", "kind"), [(0.0206, DriftKind.TREND), (0.0218, None)], ids=["plain", "hidden"]
)
def test_a_trend_must_stand_out_from_the_noise(jitter: float, kind: DriftKind | None) -> None:
    # A change of 10 % is 4.5 mean deviations of 0.0212 each.
    assert kind_of(ramped(60, 0.10, jitter=jitter)) is kind


@pytest.mark.parametrize(
    ("jitter", "kind"), [(0.0168, DriftKind.STEP), (0.0178, None)], ids=["plain", "hidden"]
)
def test_a_step_must_stand_out_from_the_noise(jitter: float, kind: DriftKind | None) -> None:
    # A change of 10 % is 5.5 mean deviations of 0.0173 each.
    assert kind_of(stepped(6, 54, 0.10, jitter=jitter)) is kind


def test_a_step_that_is_also_a_trend_need_only_explain_it_better() -> None:
    # 5 mean deviations: too little for a step that is no trend.
    assert drift_of(stepped(6, 54, 0.10, jitter=0.019)) is None
    assert kind_of(stepped(30, 30, 0.10, jitter=0.019)) is DriftKind.STEP


@pytest.mark.parametrize(
    ("steepness", "kind"), [(1.5, DriftKind.TREND), (3.0, DriftKind.STEP)], ids=["slow", "fast"]
)
def test_a_transition_is_what_explains_it_better(steepness: float, kind: DriftKind) -> None:
    places = [2 * k / 29 - 1 for k in range(30)]
    assert kind_of([math.exp(0.1 * math.tanh(steepness * place)) for place in places]) is kind


@pytest.mark.parametrize("place", [0, 1, 5, 9])
@pytest.mark.parametrize("factor", [100, 0.01])
def test_one_outlier_is_no_drift(place: int, factor: float) -> None:
    samples = jittered([1e6] * 10, 0.01)
    samples[place] *= factor
    assert drift_of(samples) is None


@pytest.mark.parametrize("samples", [stepped(15, 15, 0.1), ramped(30, 0.1)])
def test_one_outlier_hides_no_drift_in_many_samples(samples: list[float]) -> None:
    kind = kind_of(samples)
    samples[20] *= 100
    assert kind is not None
    assert kind_of(samples) is kind


def test_of_very_many_samples_a_step_is_placed_to_a_hundredth() -> None:
    drift = drift_of(stepped(3_337, 6_663, 0.1, jitter=0.05))
    assert drift
    assert drift.kind is DriftKind.STEP
    assert drift.change == pytest.approx(0.1)
    assert drift.position == pytest.approx(3_337, abs=100)
    assert kind_of(ramped(10_000, 0.1, jitter=0.05)) is DriftKind.TREND


def test_a_change_beyond_any_measure_is_a_number() -> None:
    drift = drift_of([1e-300] * 10 + [1e100] * 10)
    assert drift
    assert drift.kind is DriftKind.STEP
    assert math.isfinite(drift.change)


def noise(sd: float) -> Draw:
    return lambda rng, count: [rng.gauss(0, sd) for _ in range(count)]


def with_slow_share(share: float, factor: float) -> Draw:
    """Draw samples of 1 % noise, a share of which takes ``factor`` times as long."""

    def draw(rng: Random, count: int) -> list[float]:
        slow = math.log(factor)
        return [rng.gauss(0, 0.01) + (slow if rng.random() < share else 0) for _ in range(count)]

    return draw


def correlated(rng: Random, count: int) -> list[float]:
    """Draw noise of 3 % in which half of each deviation lasts until the next sample."""
    levels = [rng.gauss(0, 0.03)]
    while len(levels) < count:
        levels.append(0.5 * levels[-1] + rng.gauss(0, 0.03 * math.sqrt(0.75)))
    return levels


def one_outlier(rng: Random, count: int) -> list[float]:
    levels = [rng.gauss(0, 0.01) for _ in range(count)]
    levels[rng.randrange(count)] += rng.choice((-1, 1)) * math.log(2)
    return levels


def found_share(draw: Draw, count: int, *, draws: int) -> float:
    rng = Random(1)
    samples = ([math.exp(level) for level in draw(rng, count)] for _ in range(draws))
    return sum(drift_of(each) is not None for each in samples) / draws


@pytest.mark.parametrize(("count", "draws"), [(10, 1_500), (20, 600), (50, 60)])
@pytest.mark.parametrize(
    ("draw", "most"),
    [
        (noise(0.01), 0.005),
        (noise(0.05), 0.005),
        (one_outlier, 0.005),
        (with_slow_share(0.05, 1.5), 0.005),
        (with_slow_share(0.5, 1.05), 0.005),
        (with_slow_share(0.2, 1.05), 0.005),
        (correlated, 0.05),
    ],
    ids=["1 %", "5 %", "outlier", "heavy tail", "two modes", "a rare mode", "correlated"],
)
def test_steady_samples_are_seldom_called_drift(
    draw: Draw, most: float, count: int, draws: int
) -> None:
    assert found_share(draw, count, draws=draws) <= most


@pytest.mark.parametrize(
    ("count", "draws", "least"), [(10, 150, 0.9), (20, 120, 0.99), (50, 30, 0.99)]
)
@pytest.mark.parametrize("change", [0.1, -0.1])
@pytest.mark.parametrize("start", [None, 0.3, 0.5, 0.7], ids=["ramp", "early", "half", "late"])
def test_ten_per_cent_over_one_per_cent_of_noise_is_found(
    start: float | None, change: float, count: int, draws: int, least: float
) -> None:
    def draw(rng: Random, count: int) -> list[float]:
        shape = ramped(count, change)
        if start is not None:
            position = round(start * count)
            shape = stepped(position, count - position, change)
        return [math.log(value) + rng.gauss(0, 0.01) for value in shape]

    assert found_share(draw, count, draws=draws) >= least
