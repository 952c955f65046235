"""What steps made of rules: one for each change, and none where nobody can tell."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.experiments.tried_rules import Tried, ratios_by_rule, tried_in
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Better, Kind
from pytest_ttnn_perf.records.step import Decision, Effect, Prediction, Step, StepFinding

ID = "a" * 40
TESTS = ("test_a.py::test_a", "test_a.py::test_b")


def prediction(code: str, promised: float, gained: float, test: str = TESTS[0]) -> Prediction:
    return Prediction(test, (code,), KERNEL_TIME, promised, gained)


def finding(code: str, saving_ns: float | None = None, **others: object) -> StepFinding:
    return StepFinding(TESTS[0], code, "name", saving_ns, **others)  # type: ignore[arg-type]


def step(number: int, *predictions: Prediction, tree: str = "", **others: object) -> Step:
    effects = tuple(
        Effect(test, KERNEL_TIME, "ns", Better.LOWER, Kind.TIME, "IMPROVED", 5e5, 4e5)
        for test in TESTS
    )
    return Step(
        id=f"20260101T00000{number}Z", at="", message=f"change {number}", decision=Decision.KEEP,
        reasons=(), base=ID, base_tree=ID, state=ID, state_tree=tree or f"{number:040}", head=ID,
        rounds=4, effects=effects, predictions=predictions, **others,  # type: ignore[arg-type]
    )  # fmt: skip


def test_tests_of_one_change_are_one_change() -> None:
    both = step(1, prediction("TTP203", 3e4, 2e4), prediction("TTP203", 1e4, 2e4, TESTS[1]))
    assert tried_in([both]) == (Tried("TTP203", "change 1", KERNEL_TIME, 40.0, 40.0, 1000.0, 4),)


def test_a_change_that_is_tried_again_counts_once_as_it_was_measured_last() -> None:
    steps = [step(number, prediction("TTP203", 1e4, 1e3 * number), tree=ID) for number in (1, 2, 3)]
    assert [one.ratio for one in tried_in(steps)] == [pytest.approx(0.3)]


def test_what_several_rules_promised_together_says_nothing_of_one() -> None:
    together = Prediction(TESTS[0], ("TTP203", "TTP311"), KERNEL_TIME, 1e4, 1e4)
    steps = [step(1, together), step(2, prediction("TTP311", 1e4, 5e3)), step(3)]
    assert ratios_by_rule(tried_in(steps)) == {"TTP311": (0.5,)}


def test_a_change_that_did_something_else_as_well_says_nothing_of_a_rule() -> None:
    one = prediction("TTP311", 1e4, 5e3)
    assert tried_in([step(1, one, opened=(finding("TTP101", 9e3),))]) == ()
    assert tried_in([step(1, one, closed=(finding("TTP203"),))]) == (), "nobody knows its part"
    waits = finding("TTP402", 9e3, gaps_ns=9e3)
    bound = finding("TTP302", 9e3, at_most=True)
    assert tried_in([step(1, one, opened=(waits, bound))]) != ()


def test_a_second_try_that_measured_nothing_takes_nothing_away() -> None:
    steps = [step(1, prediction("TTP311", 1e4, 5e3), tree=ID), step(2, tree=ID)]
    assert ratios_by_rule(tried_in(steps)) == {"TTP311": (0.5,)}
