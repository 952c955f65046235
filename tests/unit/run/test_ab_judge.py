"""Both sides of a comparison, metric by metric: what is judged, how, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.experiments.ab_rounds import (
    AbResult,
    Compared,
    _Listener,
    compare_tests,
    movement,
)
from pytest_ttnn_perf.gate.paired import Paired
from pytest_ttnn_perf.processes.git import Commit, WorkingTree
from pytest_ttnn_perf.records.messages import Collected
from pytest_ttnn_perf.records.metric import Better, Kind, Metric
from pytest_ttnn_perf.records.observation import MetricObservation, Observation
from pytest_ttnn_perf.records.verdict import Outcome, Reason, Verdict
from pytest_ttnn_perf.run.sessions import SessionListener, Sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

TEST = "t.py::test_t"
TIME = Metric("latency", "ms")
COUNT = Metric("ops", "", kind=Kind.COUNT)
PCC = Metric("pcc", "", Better.HIGHER, Kind.ACCURACY)
HASH = Metric("hash", "", Better.EQUAL, Kind.COUNT)
START = Commit("a" * 40, "aaaaaaa", "Start")


def seen(*values: float | None, metric: Metric = TIME, **more: object) -> list[Observation]:
    """Return what a side measured, round by round; None for a round without the metric."""
    return [
        Observation(
            TEST,
            {} if value is None else {metric.name: MetricObservation(metric, (value,))},
            **more,  # type: ignore[arg-type]
        )
        for value in values
    ]


def judged(before: Sequence[Observation], after: Sequence[Observation]) -> list[Compared]:
    return list(compare_tests({TEST: before}, {TEST: after}))


def outcome(before: Sequence[Observation], after: Sequence[Observation]) -> tuple[str, str | None]:
    (only,) = judged(before, after)
    reason = only.paired.verdict.reason
    return only.outcome.value, reason and reason.value


def test_only_rounds_that_both_sides_have_are_judged() -> None:
    (only,) = judged(seen(10, 10, 10), seen(12, 12, 12, 99))
    assert (only.outcome, only.rounds) == (Outcome.REGRESSED, 3)
    assert (only.before, only.after) == ((10, 10, 10), (12, 12, 12))
    assert judged(seen(10, 10), seen(12, 12, 12)) == [], "two are too few"


def test_a_test_that_one_side_does_not_have_is_not_judged() -> None:
    assert list(compare_tests({}, {TEST: seen(10, 10, 10)})) == []


@pytest.mark.parametrize(
    ("metric", "before", "after", "expected"),
    [
        (COUNT, (7, 7, 7), (8, 8, 8), "REGRESSED"),
        (COUNT, (7, 7, 7), (7, 7, 8), "WITHIN"),
        (COUNT, (7, 7, 7), (6, 6, 6), "IMPROVED"),
        (PCC, (0.999, 0.999, 0.999), (0.999, 0.999, 0.990), "REGRESSED"),
        (PCC, (0.999, 0.999, 0.999), (0.998, 0.998, 0.998), "WITHIN"),
    ],
)
def test_counts_and_accuracies_are_judged_by_the_gates_own_rules(
    metric: Metric, before: tuple[float, ...], after: tuple[float, ...], expected: str
) -> None:
    """By difference, however many rounds agree; of an accuracy the worst one counts."""
    found = judged(seen(*before, metric=metric), seen(*after, metric=metric))
    assert [each.outcome.value for each in found] == [expected]
    assert (found[0].paired.low, found[0].paired.high) == (None, None)


def test_a_value_that_must_not_change_must_not_do_so_on_either_side() -> None:
    def hashes(*values: float) -> list[Observation]:
        return seen(*values, metric=HASH)

    assert outcome(hashes(7, 7, 7), hashes(7, 7, 7)) == ("WITHIN", None)
    assert outcome(hashes(7, 7, 7), hashes(8, 8, 8)) == ("REGRESSED", "value changed")
    assert outcome(hashes(7, 7, 7), hashes(7, 7, 8)) == ("TOO_NOISY", "samples differ")
    assert outcome(hashes(8, 7, 8), hashes(8, 8, 8)) == ("TOO_NOISY", "samples differ")


def test_metrics_of_one_side_are_told_and_not_judged() -> None:
    new, old = judged(seen(7, 7, 7, metric=COUNT), seen(1, 1, 1))
    assert {new.paired.verdict.reason, old.paired.verdict.reason} == {
        Reason.NEW_METRIC,
        Reason.NOT_RECORDED,
    }
    assert {new.outcome, old.outcome} == {Outcome.NOT_COMPARABLE}


def test_a_metric_that_is_missing_in_a_round_is_no_data() -> None:
    assert outcome(seen(1, 1, 1), seen(1, None, 1)) == ("NO_DATA", "not recorded")
    assert outcome(seen(None, 1, 1), seen(1, 1, 1)) == ("NO_DATA", "not recorded")


def test_another_configuration_is_not_compared_and_named() -> None:
    (only,) = judged(seen(9, 9, 9, facts={"batch": 1}), seen(9, 9, 9, facts={"batch": 2}))
    assert only.outcome is Outcome.NOT_COMPARABLE
    assert only.obstacle is not None
    assert (only.obstacle.field, only.obstacle.before, only.obstacle.after) == ("batch", 1, 2)


def test_what_is_only_recorded_is_not_judged() -> None:
    told = MetricObservation(TIME, (1.0,), gated=False)
    observations = [Observation(TEST, {"latency": told})] * 3
    assert judged(observations, observations) == []


def test_the_machine_is_told_by_how_far_the_same_code_moved() -> None:
    steady, moving = seen(10, 10, 10), seen(10, 11, 10)
    moved = movement({"a": steady, "b": moving})
    assert moved is not None
    assert moved[0] == pytest.approx(0.1)
    assert moved[1:] == ("b", "latency")
    assert movement({"a": seen(7, 9, 7, metric=COUNT)}) is None


@pytest.mark.parametrize(
    ("outcomes", "failed"),
    [
        (["WITHIN", "IMPROVED"], False),
        (["WITHIN", "REGRESSED"], True),
        (["WITHIN", "TOO_NOISY"], True),
        (["WITHIN", "NO_DATA"], True),
        (["WITHIN", "NOT_COMPARABLE"], False),
        (["NOT_COMPARABLE"], True),
        ([], True),
    ],
)
def test_what_nobody_can_tell_is_no_pass(outcomes: list[str], failed: bool) -> None:
    verdicts = (Paired(Verdict(TIME, Outcome(each))) for each in outcomes)
    all_of_them = tuple(Compared(TEST, each, 3) for each in verdicts)
    result = AbResult("main", START, WorkingTree(START), 3, 3, all_of_them)
    assert result.failed is failed


def test_a_test_that_failed_is_no_pass() -> None:
    within = (Compared(TEST, Paired(Verdict(TIME, Outcome.WITHIN)), 3),)
    troubles = {TEST: "main, round 1: ValueError"}
    result = AbResult("main", START, WorkingTree(START), 3, 3, within, troubles=troubles)
    assert result.failed


def test_tests_that_run_side_by_side_are_refused() -> None:
    listener = _Listener(SessionListener(Sessions(3), 1, lambda _done, _of: None))
    with pytest.raises(UsageError, match="leave out -n and --tx"):
        listener.receive(Collected([TEST], None, [], []))
