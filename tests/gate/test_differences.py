"""Counts, bytes, accuracies and values that must not change."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.observation import (
    NO_LIMITS,
    Limits,
    MetricObservation,
    Observation,
    Outcome,
    Reason,
    Verdict,
)
from pytest_ttnn_perf.gate.judge import judge_test

COUNT = Metric("ops", "", kind=Kind.COUNT)
BYTES = Metric("dram", "B", kind=Kind.BYTES)
PCC = Metric("pcc", "", Better.HIGHER, Kind.ACCURACY)
FID = Metric("fid", "", Better.LOWER, Kind.ACCURACY)
HASH = Metric("hash", "", Better.EQUAL, Kind.COUNT)


def judged(metric: Metric, then: float, *now: float, limits: Limits = NO_LIMITS) -> Verdict:
    stored = MetricBaseline(metric, (Session(then, 0, 1),))
    run = Observation("t", {metric.name: MetricObservation(metric, now, limits=limits)})
    baseline = TestBaseline(Acceptance("2026-11-16T00:00:00Z"), {metric.name: stored})
    (verdict,) = judge_test(run, baseline)
    return verdict


@pytest.mark.parametrize(
    ("metric", "then", "now", "outcome"),
    [
        (COUNT, 10, 11, Outcome.REGRESSED),
        (COUNT, 10, 9, Outcome.IMPROVED),
        (COUNT, 0, 0, Outcome.WITHIN),
        (COUNT, 0, 1, Outcome.REGRESSED),
        (BYTES, 1000, 1020, Outcome.WITHIN),
        (BYTES, 1000, 1021, Outcome.REGRESSED),
        (BYTES, 1000, 979, Outcome.IMPROVED),
        (PCC, 0.999, 0.9971, Outcome.WITHIN),
        (PCC, 0.999, 0.9969, Outcome.REGRESSED),
        (PCC, 0.99, 0.9925, Outcome.IMPROVED),
        (FID, 20, 20.03, Outcome.WITHIN),
        (FID, 20, 20.05, Outcome.REGRESSED),
        (HASH, 7, 6, Outcome.REGRESSED),
    ],
)
def test_outcomes(metric: Metric, then: float, now: float, outcome: Outcome) -> None:
    assert judged(metric, then, now).outcome is outcome


def test_a_change_from_nothing_has_no_size() -> None:
    verdict = judged(COUNT, 0, 3)
    assert (verdict.change, verdict.limit) == (None, 0.0)
    assert judged(COUNT, 0, 0).change == 0.0


def test_the_worst_accuracy_counts_not_the_typical_one() -> None:
    verdict = judged(PCC, 0.999, 0.9999, 0.9, 0.9999)
    assert (verdict.outcome, verdict.observed) == (Outcome.REGRESSED, 0.9)
    assert judged(FID, 20, 19, 30, 19).observed == 30


def test_tolerance_and_cap_of_the_author() -> None:
    assert judged(COUNT, 100, 105, limits=Limits(tolerance=0.05)).outcome is Outcome.WITHIN
    assert judged(PCC, 0.999, 0.98, limits=Limits(tolerance=0.05)).outcome is Outcome.WITHIN
    capped = Limits(tolerance=0.5, max_regression=0.01)
    assert judged(BYTES, 1000, 1011, limits=capped).outcome is Outcome.REGRESSED


@pytest.mark.parametrize(
    ("limits", "bound"), [(Limits(at_least=0.99), 0.99), (Limits(at_most=0.5), 0.5)]
)
def test_a_broken_absolute_limit_fails_whatever_is_stored(limits: Limits, bound: float) -> None:
    run = Observation("t", {"pcc": MetricObservation(PCC, (0.9,), limits=limits)})
    (verdict,) = judge_test(run, None)
    assert (verdict.outcome, verdict.reason) == (Outcome.REGRESSED, Reason.ABSOLUTE_LIMIT)
    assert verdict.bound == bound


def test_samples_that_must_be_equal_and_are_not() -> None:
    verdict = judged(HASH, 7, 7, 8)
    assert (verdict.outcome, verdict.reason) == (Outcome.TOO_NOISY, Reason.SAMPLES_DIFFER)
    assert verdict.detail == "7 to 8"
