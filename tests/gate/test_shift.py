"""What a run shows of its machine, and what that explains."""

from __future__ import annotations

from math import expm1, log, nan, sqrt
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import (
    MetricObservation,
    Observation,
    Outcome,
    Reason,
    Shift,
    Verdict,
)
from pytest_ttnn_perf.gate.machine_shift import (
    Suites,
    bears_out,
    change_again,
    explain_by_shift,
    likeness,
)
from pytest_ttnn_perf.gate.ratios import news_of
from pytest_ttnn_perf.gate.store import BaselineStore

if TYPE_CHECKING:
    from pathlib import Path

TIME = Metric("latency", "ms")
KERNEL = Metric("kernel", "ns", source=Source.DEVICE)
RATE = Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
COUNT = Metric("ops", "", kind=Kind.COUNT)
HOST = Hardware("host", "x")


def history(metric: Metric, *values: float) -> MetricBaseline:
    runs = enumerate(values or [1e6] * 5)
    return MetricBaseline(metric, tuple(Session(value, 0.0, 9, f"r{k}") for k, value in runs))


def seen(folder: Path, changes: dict[Metric, list[float]]) -> tuple[Suites, Shift | None]:
    """Return what is known after a run whose tests are worse by so much, as logarithms."""
    count = max(map(len, changes.values()))
    stored = TestBaseline(Acceptance("now"), {m.name: history(m) for m in changes})
    store = BaselineStore(folder)
    store.amend_keys({HOST: {f"t.py::t{k}": lambda _: stored for k in range(count)}})
    suites = Suites(store)
    tests = []
    for k in range(count):
        metrics = {
            metric.name: MetricObservation(metric, (1e6 * 2.718281828459045 ** worse[k],))
            for metric, worse in changes.items()
        }
        tests.append((HOST, Observation(f"t.py::t{k}", metrics)))
    return suites, suites.see(tests)


@pytest.mark.parametrize("metric", [TIME, KERNEL])
def test_a_machine_is_judged_like_a_test_and_by_the_median_of_its_tests(
    tmp_path: Path, metric: Metric
) -> None:
    suites, shift = seen(tmp_path, {metric: [0.2, 0.2, 0.2, 0.0, 0.3]})
    assert shift is not None
    assert (shift.moved, shift.voting, shift.source) == (4, 5, metric.source)
    assert shift.change == pytest.approx(expm1(0.2))
    assert suites.of(HOST)[metric.source].move == pytest.approx(0.2, rel=0.01)
    suites.excuse_nothing(metric.source)
    assert suites.of(HOST)[metric.source].move == 0.0


@pytest.mark.parametrize(
    "changes", [[0.2, 0.2], [0.2, 0.2, 0.0, 0.0, 0.0], [0.02] * 5], ids=["two", "few", "little"]
)
def test_what_is_no_shift(tmp_path: Path, changes: list[float]) -> None:
    suites, shift = seen(tmp_path, {TIME: changes})
    assert shift is None
    assert (suites.of(HOST)[Source.WALL].move is None) == (len(changes) < 3)


def test_device_times_have_their_own_shift(tmp_path: Path) -> None:
    suites, shift = seen(tmp_path, {TIME: [0.3] * 5, KERNEL: [0.0] * 5})
    assert shift
    assert shift.source is Source.WALL
    assert suites.of(HOST)[Source.DEVICE].move == 0.0


def test_tests_that_lie_further_apart_than_usual_are_judged_with_more_noise(
    tmp_path: Path,
) -> None:
    suites, _ = seen(tmp_path, {TIME: [0.3, -0.3, 0.2, -0.2, 0.0, 0.1, -0.1, 0.25]})
    assert suites.of(HOST)[Source.WALL].spread == 2.0
    assert seen(tmp_path, {TIME: [0.001] * 8})[0].of(HOST)[Source.WALL].spread == 1.0


@pytest.mark.parametrize(("move", "does"), [(0.039, False), (0.041, True), (-0.2, False)])
def test_controls_bear_a_shift_out_from_half_of_it_on(move: float, does: bool) -> None:
    assert bears_out(Shift(expm1(0.08), 5, 8), expm1(move)) is does


@pytest.mark.parametrize(("move", "tests"), [(0.02, 1), (-0.02, 1), (0.0125, 1), (0.02, 4)])
def test_a_move_is_believed_as_far_as_it_stands_out_from_its_error(move: float, tests: int) -> None:
    error = 1.2533 * 0.01 / sqrt(tests)
    believed = move - error**2 / move if abs(move) > error else 0.0
    assert news_of(move, 0.01, tests) == pytest.approx(believed)


@pytest.mark.parametrize(
    ("metric", "samples", "change"),
    [
        (TIME, (110.0, 120.0, 130.0), log(1.2)),
        (RATE, (80.0,), log(1 / 0.8)),
        (TIME, (), None),
        (TIME, (110.0, nan), None),
        (TIME, (0.0,), None),
        (COUNT, (110.0,), None),
    ],
)
def test_how_far_a_metric_moved_when_it_was_measured_again(
    metric: Metric, samples: tuple[float, ...], change: float | None
) -> None:
    verdict = Verdict(metric, Outcome.WITHIN, centre=100.0, change=0.0, limit=0.04)
    found = change_again(verdict, samples)
    assert found == (None if change is None else pytest.approx(change))


EXCUSED = Verdict(TIME, Outcome.WITHIN, centre=1.0, change=0.01, limit=0.04, machine=0.1)


def test_what_is_beyond_its_limit_and_only_as_slow_as_the_machine_is_labelled() -> None:
    (after,) = explain_by_shift([EXCUSED], Shift(0.1, 5, 5))
    assert (after.outcome, after.reason) == (Outcome.SHIFTED, Reason.SHIFTED)
    assert after.change == pytest.approx(1.01 * 1.1 - 1)  # as it was measured


@pytest.mark.parametrize(
    "verdict",
    [
        replace(EXCUSED, machine=0.02),
        replace(EXCUSED, machine=None),
        replace(EXCUSED, metric=KERNEL),
        replace(EXCUSED, outcome=Outcome.REGRESSED, change=0.05),
        replace(EXCUSED, outcome=Outcome.NO_DATA, reason=Reason.NOT_CONFIRMED),
    ],
    ids=["within", "unknown", "device", "regressed", "no data"],
)
def test_what_a_shift_does_not_explain(verdict: Verdict) -> None:
    assert explain_by_shift([verdict], Shift(0.1, 5, 5)) == (verdict,)


def test_tests_are_alike_by_their_runs_and_as_long_as_these_are_few_by_their_noise() -> None:
    moves = [1.0, 1.2, 0.9, 1.3, 0.8, 1.1, 1.25, 0.85]
    suspect = history(TIME, *[100 * move for move in moves])
    along = history(TIME, *[7 * move for move in moves])
    against = history(TIME, *[7 / move for move in moves])
    assert likeness(suspect, along) == pytest.approx(1.0)
    for other in (against, history(TIME, *[7.0] * 8)):
        assert likeness(suspect, other) < 0.2
    few = [history(TIME, *values) for values in ((100.0,), (5.0,))]
    assert likeness(*few) > 0.9
