"""What A/A sessions tell of a test, and what a gate could see of it."""

from __future__ import annotations

from math import exp, expm1, hypot, inf, log, sqrt
from random import Random
from statistics import NormalDist, fmean

import pytest

from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import NO_LIMITS, Limits, MetricObservation, Observation
from pytest_ttnn_perf.experiments.calibrate import MetricNoise, calibrate_metrics
from pytest_ttnn_perf.experiments.rounds import Sessions, baselines_of
from pytest_ttnn_perf.gate.ratios import band_of

TIME = Metric("latency", "ms")


def timed(*milliseconds: float, limits: Limits = NO_LIMITS) -> Observation:
    return Observation("t.py::t", {TIME.name: MetricObservation(TIME, milliseconds, limits=limits)})


def only_row(*observations: Observation, confirm: int = 2) -> MetricNoise:
    sessions = Sessions(len(observations), measured={"t.py::t": list(observations)})
    (row,) = calibrate_metrics(sessions, confirm)
    return row


RUNS = (timed(10, 10.1, 9.9), timed(10.3, 10.4, 10.2), timed(9.8, 9.9, 9.7))


@pytest.mark.parametrize("confirm", [0, 2])
def test_columns_follow_from_the_limit_and_the_noise_of_the_sessions(confirm: int) -> None:
    row = only_row(*RUNS, confirm=confirm)
    limit = band_of(baselines_of(list(RUNS))["latency"], NO_LIMITS).limit
    # By hand: scaled MADs of 1 %, and the deviation of three logarithms.
    assert row.within == pytest.approx(1.4826 * 0.01, rel=0.02)
    assert row.between == pytest.approx(log(10.3 / 9.8) / 2, rel=0.01)
    assert row.between is not None
    # That nights differ by 1.5 % is in the baseline, which is of one, and in the next run.
    centre_sd = 1.2533 * row.between / sqrt(3)
    sd = hypot(row.between / sqrt(1 + confirm), centre_sd, 0.015, 0.015)
    assert row.limit == pytest.approx(expm1(limit))
    assert row.false_alarms == pytest.approx(1 - NormalDist(0, sd).cdf(limit), rel=1e-3)
    assert row.caught == pytest.approx(expm1(limit + NormalDist(0, sd).inv_cdf(0.8)), rel=1e-3)


def simulated(row: MetricNoise, change: float, confirm: int) -> float:
    """Return the share of runs that fail a test, by the gate's rule and with a fixed seed."""
    rng, draws, failed, limit = Random(5), 8_000, 0, log(1 + row.limit)
    for _ in range(draws):
        shared = change + rng.gauss(0, 0.015 * sqrt(2))
        seen = [shared + rng.gauss(0, row.between or 0.0) for _ in range(1 + confirm)]
        again = seen[1:]
        suspect = seen[0] > 0.7 * limit or not again
        agreed = all(value > 0.5 * limit for value in again)
        first = min(seen[0], max(again, default=seen[0]))
        failed += suspect and agreed and fmean([first, *again]) > limit
    return failed / draws


@pytest.mark.parametrize("confirm", [0, 2])
def test_rates_are_those_of_simulated_runs(confirm: int) -> None:
    row = only_row(*(timed(10 * exp(off)) for off in (0.01, -0.01) * 5), confirm=confirm)
    error = 0.023  # four standard errors of a share of 8,000
    assert row.false_alarms == pytest.approx(simulated(row, 0.0, confirm), abs=error)
    assert row.caught is not None
    assert simulated(row, log(1 + row.caught), confirm) == pytest.approx(0.8, abs=2 * error)


def test_one_session_tells_a_limit_and_nothing_of_the_noise_between_sessions() -> None:
    row = only_row(RUNS[0])
    assert row.limit == pytest.approx(0.1107, abs=1e-4)
    assert (row.between, row.false_alarms, row.caught) == (None, None, None)


def test_limits_of_the_test_count() -> None:
    capped = only_row(*[timed(10, limits=Limits(max_regression=0.01))] * 2)
    assert capped.limit == pytest.approx(0.01)
    wide = only_row(*[timed(10, limits=Limits(tolerance=0.3))] * 2)
    assert wide.limit == pytest.approx(0.3)


def test_noise_beyond_any_measure_has_a_number() -> None:
    row = only_row(timed(1e-90), timed(1e90))
    assert row.caught is not None
    assert 1e100 < row.caught < inf
