"""Rates of alarms in closed form and by simulation, and the noise of baselines by hand."""

from __future__ import annotations

from math import exp, log, pi, sqrt
from random import Random
from statistics import NormalDist, fmean

import pytest

from pytest_ttnn_perf.core.baseline import MetricBaseline, Session
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.experiments.paired import Noise, Seeing, noise_of

TIME = Metric("wall_time", "ns")
TABLE = NormalDist()


@pytest.mark.parametrize("measurements", [1, 2, 3, 10])
def test_the_mean_of_all_measurements_gives_alarms(measurements: int) -> None:
    # What is new in each process averages out; what runs and baselines share does not.
    seeing = Seeing(0.05, 0.02, 0.012, 0.005, measurements)
    sd = sqrt(0.02**2 / measurements + 0.012**2 + 0.005**2)
    assert seeing.alarm_rate() == pytest.approx(1 - TABLE.cdf(0.05 / sd))


def test_what_is_caught_meets_all_conditions() -> None:
    one = Seeing(0.05, 0.02, 0.0, 0.0, 1)
    assert one.catch_rate(0.05) == pytest.approx(0.5)
    assert one.smallest_caught() == pytest.approx(0.05 + 0.02 * TABLE.inv_cdf(0.8))
    # At 0.06 the mean is 0.01 beyond the limit, the first 0.025 beyond 0.7, the rest 0.035 beyond
    # half of it.
    three = Seeing(0.05, 0.02, 0.0, 0.0, 3)
    # The mean is lower by what the furthest of two lies beyond the other, by a ninth of that.
    mean = 0.01 - 0.02 * 2 / sqrt(pi) / 9
    expected = TABLE.cdf(mean / 0.02 * sqrt(2.5)) * TABLE.cdf(1.25) * TABLE.cdf(1.75) ** 2
    assert three.catch_rate(0.06) == pytest.approx(expected)


def simulated(seeing: Seeing, change: float) -> float:
    """Return the share of runs that fail a test, by the rule and with a fixed seed."""
    rng, draws, failed = Random(5), 8_000, 0
    for _ in range(draws):
        shared = change + rng.gauss(0, seeing.run_sd) - rng.gauss(0, seeing.centre_sd)
        seen = [shared + rng.gauss(0, seeing.session_sd) for _ in range(seeing.measurements)]
        again = seen[1:]
        suspect = seen[0] > 0.7 * seeing.limit or not again
        agreed = all(value > 0.5 * seeing.limit for value in again)
        first = min(seen[0], max(again, default=seen[0]))
        failed += suspect and agreed and fmean([first, *again]) > seeing.limit
    return failed / draws


@pytest.mark.parametrize(
    ("session_sd", "run_sd", "centre_sd", "measurements"),
    [(0.02, 0.005, 0.005, 3), (0.005, 0.02, 0.01, 1)],
)
def test_rates_are_those_of_simulated_runs_or_err_to_the_safe_side(
    session_sd: float, run_sd: float, centre_sd: float, measurements: int
) -> None:
    seeing = Seeing(0.03, session_sd, run_sd, centre_sd, measurements)
    error = 0.023  # four standard errors of a share of 8,000
    assert simulated(seeing, 0.0) <= seeing.alarm_rate() + error
    assert simulated(seeing, 0.0) >= seeing.alarm_rate() / 2 - error
    for change in (0.03, 0.06):
        assert simulated(seeing, change) >= seeing.catch_rate(change) - error
    assert 0.8 - error <= simulated(seeing, seeing.smallest_caught()) <= 0.9 + error


def test_without_any_noise_a_change_is_caught_or_not() -> None:
    certain = Seeing(0.02, 0.0, 0.0, 0.0, 3)
    assert [certain.catch_rate(change) for change in (0.0199, 0.02, 0.0201)] == [0, 0, 1]
    assert (certain.alarm_rate(), certain.smallest_caught()) == (0, 0.02)


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
