"""Both sides of a comparison, metric by metric: what is judged, how, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.observation import (
    MetricObservation,
    Observation,
    Outcome,
    Reason,
    Verdict,
)
from pytest_ttnn_perf.experiments.ab import AbResult
from pytest_ttnn_perf.experiments.paired import Comparison, Plan
from pytest_ttnn_perf.experiments.repository import Commit, WorkingTree
from pytest_ttnn_perf.experiments.rounds import (
    Session,
    Sessions,
    compare_tests,
    run_rounds,
    undecided_tests,
)
from pytest_ttnn_perf.plugin.wire import Message

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


def judged(before: Sequence[Observation], after: Sequence[Observation]) -> list[Comparison]:
    return compare_tests({TEST: before}, {TEST: after}, Plan(20))


def outcome(before: Sequence[Observation], after: Sequence[Observation]) -> tuple[str, str | None]:
    (only,) = judged(before, after)
    reason = only.verdict.reason
    return only.outcome.value, reason and reason.value


def test_only_rounds_that_both_sides_have_are_judged() -> None:
    (only,) = judged(seen(10, 10, 10), seen(12, 12, 12, 99))
    assert (only.outcome, only.rounds) == (Outcome.REGRESSED, 3)
    assert (only.before, only.after) == ((10, 10, 10), (12, 12, 12))
    assert judged(seen(10, 10), seen(12, 12, 12)) == [], "two are too few"


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
    assert (found[0].low, found[0].high) == (None, None)


def test_a_value_that_must_not_change_must_not_do_so_on_either_side() -> None:
    def hashes(*values: float) -> list[Observation]:
        return seen(*values, metric=HASH)

    assert outcome(hashes(7, 7, 7), hashes(7, 7, 7)) == ("WITHIN", None)
    assert outcome(hashes(7, 7, 7), hashes(8, 8, 8)) == ("REGRESSED", "value changed")
    assert outcome(hashes(7, 7, 7), hashes(7, 7, 8)) == ("TOO_NOISY", "samples differ")
    assert outcome(hashes(8, 7, 8), hashes(8, 8, 8)) == ("TOO_NOISY", "samples differ")


def test_metrics_of_one_side_are_told_and_not_judged() -> None:
    new, old = judged(seen(7, 7, 7, metric=COUNT), seen(1, 1, 1))
    assert {new.verdict.reason, old.verdict.reason} == {
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


def test_two_metrics_share_one_chance_of_a_false_alarm() -> None:
    """Beside more tests the same rounds tell less: any of them might be the lucky one."""
    slower = [1.043, 1.067, 1.057, 1.053]
    alone = compare_tests({"a": seen(1, 1, 1, 1)}, {"a": seen(*slower)}, Plan(4))
    many = {f"t{number}": seen(1, 1, 1, 1) for number in range(30)}
    beside = compare_tests({"a": seen(1, 1, 1, 1), **many}, {"a": seen(*slower), **many}, Plan(4))
    assert [each.word for each in alone] == ["REGRESSED"]
    assert beside[0].word == "INCONCLUSIVE"
    assert undecided_tests(beside) == ("a",)


def test_a_verdict_that_is_established_stays_while_its_test_is_measured_on() -> None:
    """Another metric of it is not known yet."""

    def both(times: Sequence[float], others: Sequence[float]) -> list[Observation]:
        other = Metric("other", "ms")
        return [
            Observation(
                TEST,
                {
                    TIME.name: MetricObservation(TIME, (time,)),
                    other.name: MetricObservation(other, (each,)),
                },
            )
            for time, each in zip(times, others, strict=True)
        ]

    wild = [1.0, 1.2, 0.9, 1.1, 0.8, 1.0]
    before = both([1.0] * 6, [1.0] * 6)
    time, other = judged(before, both([2.0] * 4 + [1.0] * 2, wild))
    assert (time.word, time.rounds, len(time.after)) == ("REGRESSED", 4, 6)
    assert (other.word, other.rounds) == ("INCONCLUSIVE", 6)


class Scripted:
    """Rounds that were measured before: of each test, so many that none fails."""

    def __init__(self, *tests: str) -> None:
        self.before, self.after = Sessions(20), Sessions(20)
        self.tests = tests
        self.asked: list[tuple[str, ...]] = []

    def run(self, number: int, tests: Sequence[str] | None) -> str | None:
        self.asked.append(tuple(self.tests if tests is None else tests))
        for test in self.asked[-1]:
            for found in (self.before, self.after):
                found.measured.setdefault(test, []).extend(seen(1))
        if number == 11:
            raise KeyboardInterrupt
        return None


def test_tests_of_which_all_is_known_are_not_measured_on() -> None:
    turns, looks = Scripted("a", "b", "c"), []

    def look(number: int) -> Sequence[str]:
        looks.append(number)
        return {4: ("b", "c"), 5: ("b", "c"), 6: ("c",), 7: ("c",), 8: ()}[number]

    assert run_rounds(turns, rounds=20, look=look) is None
    assert looks == [4, 5, 6, 7, 8]
    assert turns.asked == [("a", "b", "c")] * 4 + [("b", "c")] * 2 + [("c",)] * 2


def test_ctrl_c_keeps_what_was_measured() -> None:
    turns = Scripted("a")
    assert run_rounds(turns, rounds=20, look=lambda _: ("a",)) == "interrupted"
    assert len(turns.asked) == 11


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
    verdicts = (Verdict(TIME, Outcome(each)) for each in outcomes)
    all_of_them = tuple(Comparison(each, rounds=3, test=TEST) for each in verdicts)
    result = AbResult("main", START, WorkingTree(START), 3, 3, all_of_them)
    assert result.failed is failed
    assert not result.inconclusive


def test_tests_that_run_side_by_side_are_refused() -> None:
    listener = Session(Sessions(3), 1, lambda _done, _of: None, is_round=True)
    with pytest.raises(UsageError, match="leave out -n and --tx"):
        listener.receive(Message("collected", {"tests": [TEST], "measured": None}))
