"""What A/A sessions are stored as, and what follows from them by the gate's own rules."""

from __future__ import annotations

from math import expm1, hypot, inf, log, sqrt

import pytest

from pytest_ttnn_perf.core.metric import Kind, Metric
from pytest_ttnn_perf.core.observation import NO_LIMITS, Limits, MetricObservation, Observation
from pytest_ttnn_perf.experiments.calibrate import MetricNoise, calibrate_metrics
from pytest_ttnn_perf.experiments.paired import Seeing, noise_of
from pytest_ttnn_perf.experiments.rounds import Sessions, baselines_of
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.gate.ratios import band_of, centre_of

TIME = Metric("latency", "ms")
COUNT = Metric("ops", "", kind=Kind.COUNT)


def seen(*metrics: MetricObservation) -> Observation:
    return Observation("t.py::t", {each.metric.name: each for each in metrics})


def timed(*milliseconds: float, limits: Limits = NO_LIMITS) -> Observation:
    return seen(MetricObservation(TIME, milliseconds, limits=limits))


def only_row(*observations: Observation, confirm: int = 2) -> MetricNoise:
    sessions = Sessions(len(observations), measured={"t.py::t": list(observations)})
    (row,) = calibrate_metrics(sessions, confirm=confirm)
    return row


RUNS = (timed(10, 10.1, 9.9), timed(10.3, 10.4, 10.2), timed(9.8, 9.9, 9.7))


@pytest.mark.parametrize("confirm", [0, 2])
def test_columns_follow_from_the_limit_and_the_noise_of_the_sessions(confirm: int) -> None:
    row = only_row(*RUNS, confirm=confirm)
    stored = baselines_of(list(RUNS))["latency"]
    noise = noise_of(stored)
    limit = band_of(stored, NO_LIMITS, policy=DEFAULT_POLICY).limit
    assert noise.between_sd is not None
    assert noise.centre_sd is not None
    # That nights differ by 1.5 % is in the baseline, which is of one, and in the next run.
    centre_sd = hypot(noise.centre_sd, 0.015)
    seeing = Seeing(limit, noise.between_sd, 0.015, centre_sd, 1 + confirm)
    assert row == MetricNoise(
        test="t.py::t",
        baseline=stored,
        centre=centre_of(stored),
        within=noise.within_sd,
        between=noise.between_sd,
        limit=expm1(limit),
        false_alarms=seeing.alarm_rate(),
        caught=expm1(seeing.smallest_caught()),
    )
    # By hand: scaled MADs of 1 %, and the deviation of three logarithms.
    assert row.within == pytest.approx(1.4826 * 0.01, rel=0.02)
    assert row.between == pytest.approx(log(10.3 / 9.8) / 2, rel=0.01)


def test_one_session_tells_a_limit_and_nothing_of_the_noise_between_sessions() -> None:
    row = only_row(RUNS[0])
    assert row.limit == pytest.approx(expm1(3.4 * 0.015 * sqrt(2)))
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
