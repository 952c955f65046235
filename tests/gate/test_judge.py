"""Verdicts on metrics of each kind, and of a record, which is judged anew as in its run."""

from __future__ import annotations

from math import exp, expm1
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import (
    NO_LIMITS,
    End,
    EndKind,
    JudgedTest,
    Limits,
    MetricObservation,
    Observation,
    Outcome,
    Reason,
    Run,
    Verdict,
    decode_run,
    encode_run,
)
from pytest_ttnn_perf.core.settings import Settings
from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.gate.judging import judge_run
from pytest_ttnn_perf.gate.machine_shift import Suites
from pytest_ttnn_perf.gate.ratios import band_of, suite_of
from pytest_ttnn_perf.gate.store import BaselineStore
from tests.harness.baselines import N150, T3K, stored, times

if TYPE_CHECKING:
    from tests.harness.baselines import Desk


LATENCY = Metric("latency", "ms", kind=Kind.TIME)
KERNEL = Metric("kernel_time", "ms", source=Source.DEVICE)
SUITE = suite_of([times(10, 10, 10)] * 8)
#: The limit of a test with three equal runs in a suite of such tests.
LIMIT = band_of(times(10, 10, 10), NO_LIMITS, suite=SUITE).limit


def seen(test: str, *limits: float, machine: tuple[float, ...] = ()) -> JudgedTest:
    """Return a test that was worse by so many limits, at first and in each confirm pass."""
    first, *again = ((10 * exp(each * LIMIT),) * 10 for each in limits)
    moves = tuple(expm1(move * LIMIT) for move in machine)
    observed = MetricObservation(LATENCY, first, tuple(again), moves)
    return JudgedTest(Observation(test, {"latency": observed}), ())


def outcomes(desk: Desk, *tests: JudgedTest, refuted: bool = False) -> dict[str, str]:
    """Return the outcomes of a record, judged against three equal runs of 10 ms each."""
    for judged in tests:
        desk.store(judged.observation.test, stored(times(10, 10, 10)))
    run = Run(N150, {each.observation.test: each for each in tests}, shift_refuted=refuted)
    read = decode_run(encode_run(run))
    judged_run = judge_run(read, BaselineStore(desk.root), Settings())
    return {name[6:]: each.verdicts[0].outcome.value for name, each in judged_run.tests.items()}


def test_verdicts_follow_from_all_measurements_of_a_record(desk: Desk) -> None:
    observed = MetricObservation(LATENCY, (11.0,) * 10, ((),))
    lost = Observation(
        "t.py::unconfirmed", {"latency": observed}, ended=End(EndKind.UNCONFIRMED, "pass 1: gone")
    )
    found = outcomes(
        desk,
        seen("t.py::confirmed", 1.5, 1.2, 1.2, machine=(0, 0, 0)),
        seen("t.py::cleared", 1.5, 0.4, machine=(0, 0)),
        seen("t.py::excused", 1.5, 1.5, machine=(0.8, 0.8)),
        JudgedTest(lost, ()),
        *(seen(f"t.py::steady{k}", 0.1 * (-1) ** k) for k in range(12)),
    )
    told = {name: outcome for name, outcome in found.items() if not name.startswith("steady")}
    assert told == {
        "confirmed": "REGRESSED",
        "cleared": "WITHIN",
        "excused": "WITHIN",
        "unconfirmed": "NO_DATA",
    }


@pytest.mark.parametrize("refuted", [False, True])
def test_a_shift_that_was_refuted_stays_so(desk: Desk, refuted: bool) -> None:
    """By how they moved at first, the machine did: what the controls showed is in the record."""
    moved = [seen(f"t.py::t{k}", 2.0, 2.0, machine=(0, 0)) for k in range(5)]
    found = outcomes(desk, *moved, *(seen(f"t.py::s{k}", 0.0) for k in range(3)), refuted=refuted)
    # Judged beside controls that stood still, they are slower either way.
    assert {found[f"t{k}"] for k in range(5)} == {"REGRESSED"}
    once = [seen(f"t.py::t{k}", 2.0) for k in range(5)]
    found = outcomes(desk, *once, seen("t.py::s0", 0.0), refuted=refuted)
    assert {found[f"t{k}"] for k in range(5)} == {"REGRESSED" if refuted else "SHIFTED"}


def test_a_machine_that_is_a_little_slower_excuses_and_is_no_shift(
    desk: Desk,
) -> None:
    assert set(outcomes(desk, *(seen(f"t.py::t{k}", 0.9) for k in range(8))).values()) == {"WITHIN"}
    found = outcomes(desk, *(seen(f"t.py::t{k}", 0.9 + 0.2 * (k == 0)) for k in range(8)))
    assert found["t0"] == "WITHIN"  # as slow as the others


def test_the_baselines_of_a_key_teach_how_quiet_its_device_is(desk: Desk) -> None:
    for k in range(8):
        sessions = (Session(10, 0, 5, "a"), Session(10 * exp(0.02 * (-1) ** k), 0, 5, "b"))
        desk.store(f"t{k}.py::t", stored(MetricBaseline(KERNEL, sessions)))
    broken = next(desk.root.rglob("t0.json")).with_name("broken.json")
    broken.write_text("{")  # the trouble of another test
    suites = Suites(BaselineStore(desk.root))
    suite = suites.of(N150)[Source.DEVICE]
    # Eight tests with one degree of freedom each, and the prior.
    assert suite.variance == pytest.approx((8 * 0.02**2 / 2 + 10 * 0.005**2) / 18)
    assert not suites.of(T3K)


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
