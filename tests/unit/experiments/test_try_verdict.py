"""What a step closed, what that had promised, and what is worth trying next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.experiments.ab_report import AbResult
from pytest_ttnn_perf.experiments.try_verdict import (
    Sides,
    candidates_of,
    decide,
    finding_changes,
    predictions_of,
)
from pytest_ttnn_perf.processes.git import Commit, WorkingTree
from pytest_ttnn_perf.records.finding import Finding, RuleOutcome, Severity, Unanswered
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Better, Kind
from pytest_ttnn_perf.records.observation import Observation
from pytest_ttnn_perf.records.step import Decision, Effect, Prediction
from pytest_ttnn_perf.run.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Mapping

TEST = "test_a.py::test_a"


def finding(code: str, saving_ns: float | None = None, **more: object) -> Finding:
    found = RuleOutcome.FOUND if saving_ns is not None else RuleOutcome.CLEAN
    return Finding(code, "a-rule", Severity.WARNING, found, saving_ns=saving_ns, **more)  # type: ignore[arg-type]


def sides(
    before: Observation, after: Observation, troubles: Mapping[str, str] | None = None
) -> Sides:
    commit = Commit("0" * 40, "0000000", "Start")
    result = AbResult("HEAD", commit, WorkingTree(commit), 20, 4)
    left, right = (Sessions(20, 4, {TEST: [seen]}) for seen in (before, after))
    left.troubles.update(troubles or {})
    right.troubles.update(troubles or {})
    return Sides(result, left, right)


def test_a_finding_is_closed_where_its_rule_says_so_and_not_where_nobody_can_tell() -> None:
    then = Observation(
        TEST,
        findings=(
            finding("TTP101", 300.0, adds_ns=250.0),
            finding("TTP305", 200.0),
            finding("TTP402", 100.0),
            finding("TTP203", 90.0, waived="later"),
        ),
    )
    now = Observation(
        TEST,
        findings=(finding("TTP101"), finding("TTP402", 90.0), finding("TTP302", 20.0)),
        unanswered=(Unanswered(RuleOutcome.NOT_MEASURED, "no op table", ("TTP305",)),),
    )
    opened, closed = finding_changes(sides(then, now))
    assert [each.code for each in closed] == ["TTP101"]
    assert [each.code for each in opened] == ["TTP302"]

    kernel = Effect(
        TEST, KERNEL_TIME, "ns", Better.LOWER, Kind.TIME, "IMPROVED", before=1000.0, after=790.0
    )
    assert predictions_of(closed, [kernel]) == (
        Prediction(TEST, ("TTP101",), KERNEL_TIME, predicted_ns=250.0, measured_ns=210.0),
    )


def test_the_next_candidates_are_those_that_save_most_with_bounds_last() -> None:
    now = Observation(
        TEST,
        findings=(
            finding("TTP101", 30.0),
            finding("TTP315", 900.0, at_most=True),
            finding("TTP305", 40.0),
            finding("TTP203", 500.0, waived="later"),
            finding("TTP402", 90.0, adds_ns=10.0),
        ),
    )
    assert [each.code for each in candidates_of(sides(now, now))] == ["TTP305", "TTP101", "TTP402"]


def test_a_test_that_failed_before_as_well_is_no_reason_to_revert() -> None:
    seen = Observation(TEST)
    decision, reasons = decide(sides(seen, seen, {TEST: "round 1: it fails"}), (), edited=False)
    assert decision is Decision.CANNOT_TELL
    assert reasons[0] == f"{TEST} failed before the change: round 1: it fails"
