"""Laws of drift within samples, and of what a gate can see."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.experiments.paired import Seeing
from pytest_ttnn_perf.gate.machine_shift import DriftKind, drift_of
from tests.properties.strategies import FEW, MANY, SOME, between


@st.composite
def drifting(draw: st.DrawFn) -> list[float]:
    """Draw noisy samples that ramp, step, both, or neither."""
    count = draw(st.integers(8, 40))
    # Noise by seed: Hypothesis is fond of equal numbers, which samples seldom are.
    rng = Random(draw(st.integers(0, 10_000)))
    noise, ramp, step = draw(between(0, 0.03)), draw(between(-0.2, 0.2)), draw(between(-0.5, 0.5))
    position = draw(st.integers(0, count))
    levels = [
        rng.gauss(10, noise) + ramp * k / count + (step if k >= position else 0)
        for k in range(count)
    ]
    return [math.exp(level) for level in levels]


@MANY
@given(drifting(), between(-30, 30).map(math.exp))
def test_drift_does_not_depend_on_the_unit(samples: list[float], factor: float) -> None:
    found, scaled = drift_of(samples), drift_of([sample * factor for sample in samples])
    assert (found is None) == (scaled is None)
    if found and scaled:
        assert (scaled.kind, scaled.position) == (found.kind, found.position)
        assert scaled.change == pytest.approx(found.change, rel=1e-6)


@MANY
@given(drifting())
def test_a_throughput_drifts_where_its_time_does(samples: list[float]) -> None:
    time, rate = drift_of(samples), drift_of([1e6 / sample for sample in samples])
    assert (time is None) == (rate is None)
    if time and rate:
        assert (rate.kind, rate.position) == (time.kind, time.position)
        assert (1 + rate.change) * (1 + time.change) == pytest.approx(1)


@MANY
@given(drifting())
def test_backwards_a_drift_goes_the_other_way(samples: list[float]) -> None:
    there, back = drift_of(samples), drift_of(samples[::-1])
    assume(there and back and there.kind is back.kind)
    assert there
    assert back
    # Two samples may be a step at the start, and never at the end.
    assume(2 not in {there.position, back.position})
    assert (1 + there.change) * (1 + back.change) == pytest.approx(1)
    if there.kind is DriftKind.STEP:
        assert there.position + back.position == len(samples)


@MANY
@given(st.lists(between(-1e3, 1e3) | st.floats(), max_size=30) | drifting())
def test_what_is_reported_is_large_and_within_the_samples(samples: list[float]) -> None:
    drift = drift_of(samples)
    assert drift is None or (abs(drift.change) >= 0.02 and min(samples) > 0)
    if drift and drift.kind is DriftKind.STEP:
        assert 2 <= drift.position <= len(samples) - 3
        most = max(samples) / min(samples) * (1 + 1e-9)
        assert 1 / most <= 1 + drift.change <= most
    elif drift:
        assert drift.position == 0


GATES = st.builds(
    Seeing,
    limit=between(0, 0.2),
    session_sd=between(1e-4, 0.1),
    run_sd=between(1e-4, 0.1),
    centre_sd=between(1e-4, 0.1),
    measurements=st.integers(1, 12),
)
CHANGES = between(-0.1, 0.3)


@SOME
@given(GATES, CHANGES, between(0, 0.1), st.integers(1, 5))
def test_what_is_caught_rises_with_the_change_and_falls_with_the_limit(
    gate: Seeing, change: float, more: float, again: int
) -> None:
    rate = gate.catch_rate(change)
    assert 0 <= rate <= 1
    least, most = rate * (1 - 1e-9), rate * (1 + 1e-9)
    assert gate.catch_rate(change + more) >= least
    assert replace(gate, limit=gate.limit + more).catch_rate(change) <= most
    # What is measured more often gives fewer false alarms, and none is caught by mistake.
    oftener = replace(gate, measurements=gate.measurements + again)
    assert oftener.alarm_rate() <= gate.alarm_rate() * (1 + 1e-9)
    assert gate.catch_rate(0) <= gate.alarm_rate() * (1 + 1e-9)


@SOME
@given(GATES, CHANGES)
def test_one_measurement_adds_all_noises(gate: Seeing, change: float) -> None:
    one = replace(gate, measurements=1)
    sd = math.hypot(gate.session_sd, gate.run_sd, gate.centre_sd)
    expected = math.erfc((gate.limit - change) / sd / math.sqrt(2)) / 2
    assert one.catch_rate(change) == pytest.approx(expected, rel=1e-6, abs=1e-18)


@SOME
@given(GATES, CHANGES)
def test_a_noise_that_vanishes_is_none(gate: Seeing, change: float) -> None:
    for hardly, none in (
        (replace(gate, session_sd=1e-12), replace(gate, session_sd=0)),
        (replace(gate, run_sd=1e-12), replace(gate, run_sd=0)),
        (replace(gate, centre_sd=1e-12), replace(gate, centre_sd=0)),
    ):
        there, not_there = hardly.catch_rate(change), none.catch_rate(change)
        assert there == pytest.approx(not_there, rel=1e-5, abs=1e-18)


@FEW
@given(GATES, CHANGES, between(-5, 5).map(math.exp))
def test_only_the_ratios_of_limit_noise_and_change_count(
    gate: Seeing, change: float, factor: float
) -> None:
    scaled = Seeing(
        gate.limit * factor,
        gate.session_sd * factor,
        gate.run_sd * factor,
        gate.centre_sd * factor,
        gate.measurements,
    )
    expected = gate.catch_rate(change)
    assert scaled.catch_rate(change * factor) == pytest.approx(expected, rel=1e-6, abs=1e-18)


@FEW
@given(GATES, between(0.6, 0.99))
def test_the_smallest_change_caught_is_caught_with_that_power(gate: Seeing, power: float) -> None:
    assert gate.catch_rate(gate.smallest_caught(power)) == pytest.approx(power, abs=1e-9)
