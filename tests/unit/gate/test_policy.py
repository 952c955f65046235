"""Each constant of the gate decides something; a test stands at each boundary."""

from __future__ import annotations

from math import log1p, sqrt

import pytest

from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.gate.ratios import band_of, judge_ratio, t_quantile
from pytest_ttnn_perf.records.baseline import MetricBaseline, Session
from pytest_ttnn_perf.records.metric import Metric, Source
from pytest_ttnn_perf.records.observation import Limits, MetricObservation
from pytest_ttnn_perf.records.verdict import Outcome

NO_FLOOR = Limits(tolerance=0.0)


@pytest.mark.parametrize(
    ("source", "prior"),
    [(Source.WALL, 0.015), (Source.DEVICE, 0.005), (Source.REALTIME, 0.005)],
)
def test_the_prior_of_a_source(source: Source, prior: float) -> None:
    metric = Metric("t", "ms", source=source)
    baseline = MetricBaseline(metric, (Session(1e9, 0, 10),))
    band = band_of(baseline, NO_FLOOR, policy=DEFAULT_POLICY)
    assert band.noise == pytest.approx(t_quantile(0.95, 3) * prior * sqrt(2))


def test_the_least_noise_that_is_believed() -> None:
    metric = Metric("t", "ms", source=Source.DEVICE)
    baseline = MetricBaseline(metric, tuple(Session(1e9, 0, 10) for _ in range(20)))
    band = band_of(baseline, NO_FLOOR, policy=DEFAULT_POLICY)
    # The prior alone would leave 0.005 · sqrt(3/22) = 0.0018.
    assert band.noise == pytest.approx(t_quantile(0.95, 22) * 0.003 * sqrt(1.05))


@pytest.mark.parametrize(
    ("noise", "outcome"), [(0.199, Outcome.WITHIN), (0.201, Outcome.TOO_NOISY)]
)
def test_the_noise_that_is_too_much(noise: float, outcome: Outcome) -> None:
    # One session whose spread within makes the limit: noise = t · sqrt(2) · within.
    within = log1p(noise) / (t_quantile(0.95, 3) * sqrt(2))
    mad = within * sqrt(10) / (1.2533 * 1.4826)
    metric = Metric("t", "ms")
    baseline = MetricBaseline(metric, (Session(1.0, mad, 10),))
    verdict = judge_ratio(MetricObservation(metric, (1.0,)), baseline, policy=DEFAULT_POLICY)
    assert verdict.outcome is outcome
