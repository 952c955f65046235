"""Rates of alarms that have a closed form, and the noise of baselines worked out by hand."""

from __future__ import annotations

from math import exp, hypot, inf, log, nan, sqrt

import pytest

from pytest_ttnn_perf.gate.power import Noise, alarm_rate, noise_of, smallest_caught
from pytest_ttnn_perf.records.baseline import MetricBaseline, Session
from pytest_ttnn_perf.records.metric import Better, Kind, Metric

TIME = Metric("wall_time", "ns")


@pytest.mark.parametrize("measurements", [1, 2, 3, 10])
def test_at_the_limit_chance_decides_each_measurement(measurements: int) -> None:
    rate = alarm_rate(limit=0.02, session_sd=0.01, centre_sd=0, measurements=measurements)
    at_limit = alarm_rate(
        limit=0.02, session_sd=0.01, centre_sd=0, measurements=measurements, change=0.02
    )
    assert rate == pytest.approx(0.022750131948179195**measurements, rel=1e-12)
    assert at_limit == pytest.approx(0.5**measurements)


@pytest.mark.parametrize("measurements", [1, 2, 3, 10, 50])
def test_a_centre_as_noisy_as_a_session_is_the_lowest_of_them_all_by_turns(
    measurements: int,
) -> None:
    rate = alarm_rate(limit=0, session_sd=0.01, centre_sd=0.01, measurements=measurements)
    assert rate == pytest.approx(1 / (measurements + 1), rel=1e-12)


@pytest.mark.parametrize(
    ("session_sd", "centre_sd", "rate"),
    [
        # Made once with a quadrature of 20 Gauss points in each of 300 panels.
        (0.010, 0.004, 1.747168215570e-4),
        (0.004, 0.010, 1.242845176230e-2),
        (0.020, 0.005, 6.600612682254e-3),
    ],
)
def test_two_confirmations_share_the_error_of_the_centre(
    session_sd: float, centre_sd: float, rate: float
) -> None:
    found = alarm_rate(limit=0.02, session_sd=session_sd, centre_sd=centre_sd, measurements=3)
    assert found == pytest.approx(rate, rel=1e-9)


@pytest.mark.parametrize(("session_sd", "centre_sd"), [(0.01, 0.01), (0.01, 0.0101)])
def test_the_rarest_alarms_have_six_digits(session_sd: float, centre_sd: float) -> None:
    limit = 7 * hypot(session_sd, centre_sd)
    rate = alarm_rate(limit=limit, session_sd=session_sd, centre_sd=centre_sd, measurements=1)
    assert rate == pytest.approx(1.279812543886e-12, rel=1e-7, abs=0)


def test_a_rate_is_a_probability_though_its_parts_are_rounded() -> None:
    sure = alarm_rate(
        limit=0,
        session_sd=0.0026965328008220608,
        centre_sd=0.011013242343721115,
        measurements=2,
        change=1,
    )
    assert sure <= 1
    assert sure == pytest.approx(1)


def test_without_any_noise_a_change_is_caught_or_not() -> None:
    for change, rate in ((0.0199, 0), (0.02, 0), (0.0201, 1)):
        certain = alarm_rate(limit=0.02, session_sd=0, centre_sd=0, measurements=3, change=change)
        assert certain == rate
    assert smallest_caught(limit=0.02, session_sd=0, centre_sd=0, measurements=3) == 0.02


def test_the_usual_gate_catches_what_exceeds_its_limit_by_the_quantile_of_its_noise() -> None:
    # Φ⁻¹(0.8) = 0.841621; three measurements must all exceed it: Φ⁻¹(0.8^(1/3)) = 1.463376.
    one = smallest_caught(limit=0.05, session_sd=0.01, centre_sd=0, measurements=1)
    three = smallest_caught(limit=0.05, session_sd=0.01, centre_sd=0, measurements=3)
    assert one == pytest.approx(0.05 + 0.01 * 0.8416212336)
    assert three == pytest.approx(0.05 + 0.01 * 1.463376203)
    assert smallest_caught(
        limit=0.05, session_sd=0, centre_sd=0.01, measurements=3, power=0.5
    ) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", nan),
        ("change", inf),
        ("session_sd", -0.01),
        ("centre_sd", nan),
        ("measurements", 0),
    ],
)
def test_what_is_no_gate_is_refused(name: str, value: float) -> None:
    gate = {"limit": 0.02, "session_sd": 0.01, "centre_sd": 0.0, "change": 0.0, name: value}
    measurements = int(gate.pop("measurements", 3))
    with pytest.raises(ValueError, match=f"{name} is {value}, expected"):
        alarm_rate(measurements=measurements, **gate)


@pytest.mark.parametrize("power", [0.0, 1.0, nan])
def test_a_power_that_is_no_probability_between_is_refused(power: float) -> None:
    with pytest.raises(ValueError, match=f"power is {power}, expected"):
        smallest_caught(limit=0.02, session_sd=0.01, centre_sd=0, measurements=3, power=power)


def test_noise_within_and_between_sessions() -> None:
    sessions = (Session(100, 1, 10), Session(100 * exp(0.02), 3 * exp(0.02), 20))
    noise = noise_of(MetricBaseline(TIME, sessions))
    assert noise.within_sd == pytest.approx(1.4826 * 0.02)
    assert noise.between_sd == pytest.approx(0.02 / sqrt(2))
    assert noise.centre_sd == pytest.approx(1.2533 * 0.02 / 2)
    assert noise.sessions == 2


def test_only_sessions_since_the_last_accept_tell() -> None:
    sessions = tuple(Session(median, 0, 10) for median in (900, 50, 100, 102, 104))
    noise = noise_of(MetricBaseline(TIME, sessions, since=2))
    assert noise == noise_of(MetricBaseline(TIME, sessions[2:]))
    assert noise.between_sd == pytest.approx(log(104 / 100) / 2, rel=1e-3)


def test_one_session_shows_nothing_of_the_noise_between_sessions() -> None:
    noise = noise_of(MetricBaseline(TIME, (Session(900, 0, 10), Session(100, 1, 10)), since=1))
    assert noise == Noise(1.4826 * 0.01, None, None, 1)


@pytest.mark.parametrize(
    "metric",
    [Metric("pcc", "", Better.HIGHER, Kind.ACCURACY), Metric("cycles", "ns", Better.EQUAL)],
)
def test_what_is_not_compared_by_ratio_has_no_such_noise(metric: Metric) -> None:
    with pytest.raises(ValueError, match=f"{metric.name} is not compared by ratio"):
        noise_of(MetricBaseline(metric, (Session(1, 0, 1),)))
