"""What each outcome becomes under each update, and how the stored sessions change."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.cli.baseline_accept import RecordedTest, join_records
from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.core.metric import Kind, Metric, Source
from pytest_ttnn_perf.core.observation import (
    JudgedTest,
    MetricObservation,
    Observation,
    Outcome,
    Reason,
    Verdict,
)
from pytest_ttnn_perf.core.settings import Update
from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.gate.update import Action, action_for, plan, sessions_of, sessions_to_append

METRIC = Metric("t", "ms")
NOW = Acceptance("2026-11-16T00:00:00Z", reason="because")
BLOCK, KEEP, ADD, APPEND = Action.BLOCK, Action.KEEP, Action.ADD, Action.APPEND
ACCEPT, REPLACE = Action.ACCEPT, Action.REPLACE


@pytest.mark.parametrize(
    ("outcome", "reason", "new", "improved", "everything"),
    [
        (Outcome.WITHIN, None, KEEP, APPEND, APPEND),
        (Outcome.IMPROVED, None, KEEP, ACCEPT, ACCEPT),
        (Outcome.REGRESSED, None, BLOCK, BLOCK, ACCEPT),
        (Outcome.REGRESSED, Reason.VALUE_CHANGED, BLOCK, BLOCK, ACCEPT),
        (Outcome.REGRESSED, Reason.ABSOLUTE_LIMIT, BLOCK, BLOCK, BLOCK),
        (Outcome.REGRESSED, Reason.OUT_OF_MEMORY, BLOCK, BLOCK, BLOCK),
        (Outcome.NO_BASELINE, Reason.NEW_TEST, ADD, ADD, ADD),
        (Outcome.NO_BASELINE, Reason.NEW_METRIC, ADD, ADD, ADD),
        (Outcome.NOT_COMPARABLE, Reason.OTHER_KEY, ADD, ADD, ADD),
        (Outcome.NOT_COMPARABLE, Reason.OTHER_CONFIGURATION, BLOCK, BLOCK, REPLACE),
        (Outcome.NOT_COMPARABLE, Reason.OTHER_SOURCE, BLOCK, BLOCK, REPLACE),
        (Outcome.NOT_COMPARABLE, Reason.OTHER_DEFINITION, BLOCK, BLOCK, REPLACE),
        (Outcome.TOO_NOISY, None, KEEP, APPEND, APPEND),
        (Outcome.TOO_NOISY, Reason.SAMPLES_DIFFER, BLOCK, BLOCK, BLOCK),
        (Outcome.NO_DATA, Reason.NO_SAMPLES, BLOCK, BLOCK, BLOCK),
    ],
)
def test_every_outcome_under_every_update(
    outcome: Outcome, reason: Reason | None, new: Action, improved: Action, everything: Action
) -> None:
    verdict = Verdict(METRIC, outcome, reason)
    updates = (Update.NEW, Update.IMPROVED, Update.ALL)
    assert [action_for(verdict, update) for update in updates] == [new, improved, everything]


def after(
    stored: TestBaseline | None, value: float, update: Update, run_id: str = "run"
) -> TestBaseline | None:
    """Return the baseline after one more run; None when nothing is written."""
    run = Observation("t.py::t", {"t": MetricObservation(METRIC, (value,))})
    change = plan(JudgedTest(run, judge_test(run, stored)), update, accepted=NOW, run=run_id)
    return change(stored) if change else None


def grown(*values: float, update: Update = Update.IMPROVED) -> MetricBaseline:
    """Return the baseline that runs with an update each leave behind."""
    stored: TestBaseline | None = None
    for number, value in enumerate(values):
        stored = after(stored, value, update, f"run-{number}") or stored
    assert stored is not None
    return stored.metrics["t"]


def test_one_accept_after_another_does_not_make_the_steps_look_like_noise() -> None:
    stored = grown(100, 100, 100, 100, 80, 80, 80, 80, 60)
    assert [session.median for session in stored.current] == [60]
    run = Observation("t.py::t", {"t": MetricObservation(METRIC, (60.0,))})
    (verdict,) = judge_test(run, TestBaseline(NOW, {"t": stored}))
    assert verdict.outcome is Outcome.WITHIN
    # The longer of two histories tells the spread.
    stored = grown(100, 101, 100, 80, 60)
    assert [session.median for session in stored.sessions] == [100, 101, 100, 60]
    assert [session.run for session in stored.sessions] == ["run-0", "run-1", "run-2", "run-4"]


def test_two_runs_are_a_longer_history_than_many_sessions_of_one() -> None:
    night = [Session(100, 1, 5, "night")] * 10
    since = [Session(80, 1, 5, run) for run in ("a", "b")]
    stored = TestBaseline(NOW, {"t": MetricBaseline(METRIC, (*night, *since), since=10)})
    changed = after(stored, 50, Update.IMPROVED, "c")
    assert changed is not None
    assert [session.run for session in changed.metrics["t"].sessions] == ["a", "b", "c"]


def seen(*values: float) -> JudgedTest:
    """Return a test that was measured once, and again as often as there are more values."""
    first, *again = ((value,) for value in values)
    run = Observation("t.py::t", {"t": MetricObservation(METRIC, first, tuple(again))})
    stored = TestBaseline(NOW, {"t": grown(100, 100, 100)})
    return JudgedTest(run, judge_test(run, stored))


def test_twenty_sessions_of_one_run_leave_room_for_nineteen_other_runs() -> None:
    """A calibration fills a baseline with one run, which alone would stay provisional for good."""
    one_run = tuple(Session(10.0, 0.01, 10, "calibrated") for _ in range(20))
    baseline: TestBaseline | None = TestBaseline(NOW, {"t": MetricBaseline(METRIC, one_run)})
    for night in range(19):
        baseline = after(baseline, 10.0, Update.IMPROVED, f"night {night}")
    assert baseline is not None
    assert (len(baseline.metrics["t"].sessions), baseline.metrics["t"].runs) == (39, 20)
    assert after(baseline, 10.0, Update.IMPROVED, "another") is None


def test_records_of_several_runs_give_sessions_of_each() -> None:
    records = [("a", seen(101, 100.5)), ("b", seen(102)), ("c", seen(150))]
    told = {name: [(s.median, s.run) for s in each] for name, each in sessions_of(records).items()}
    assert told == {"t": [(101, "a"), (100.5, "a"), (102, "b"), (150, "c")]}
    # Only what is within its limits is appended, and of that the first measurement.
    added = {
        name: [(s.median, s.run) for s in each]
        for name, each in sessions_to_append(records).items()
    }
    assert added == {"t": [(101, "a"), (102, "b")]}


def test_records_joined_keep_what_the_machine_did_in_each() -> None:
    """The second record's suspect was measured beside controls; the first was none."""
    steady, suspect = seen(100), seen(130, 131)
    moved = replace(suspect.observation.metrics["t"], machine=(0.3, 0.31))
    suspect = replace(suspect, observation=replace(suspect.observation, metrics={"t": moved}))
    records = [RecordedTest("a.json", steady, "a"), RecordedTest("b.json", suspect, "b")]
    joined = join_records(records).metrics["t"]
    assert list(joined.confirmations) == [(130,), (131,)]
    assert list(joined.machine) == [None, 0.3, 0.31]
    assert not join_records([records[0]] * 2).metrics["t"].machine


@pytest.mark.parametrize(
    ("measured", "added"),
    [
        ((110.0, 100.5), [110]),
        ((100.0 / 1.1, 100.5), [90.90909]),
        ((150.0, 100.5), []),
    ],
    ids=["slow", "fast", "accident"],
)
def test_what_was_cleared_adds_the_first_measurement_not_the_one_that_cleared_it(
    measured: tuple[float, ...], added: list[float]
) -> None:
    first, *again = measured
    stored = after(None, 100, Update.NEW)
    observed = MetricObservation(METRIC, (first,), confirmations=tuple((x,) for x in again))
    run = Observation("t.py::t", {"t": observed})
    judged = JudgedTest(run, judge_test(run, stored))
    assert judged.verdicts[0].outcome is Outcome.WITHIN
    change = plan(judged, Update.IMPROVED, accepted=NOW, run="run")
    result = change(stored) if change else stored
    assert result is not None
    assert [session.median for session in result.metrics["t"].sessions] == [100, *added]


@pytest.mark.parametrize("value", [900, 1100, None], ids=["less", "more", "unknown"])
def test_what_depends_on_other_tests_is_not_judged_and_leaves_the_file(value: float | None) -> None:
    peak = Metric("cb_peak_bytes", "B", kind=Kind.BYTES, source=Source.DEVICE)
    session = MetricBaseline(peak, (Session(1000, 0, 1),))
    stored = TestBaseline(NOW, {"t": grown(100), peak.name: session})
    told = {} if value is None else {peak.name: MetricObservation(peak, (value,))}
    run = Observation("t.py::t", {"t": MetricObservation(METRIC, (100,)), **told})

    verdicts = judge_test(run, stored)

    assert [verdict.metric.name for verdict in verdicts] == ["t"]
    change = plan(JudgedTest(run, verdicts), Update.IMPROVED, accepted=NOW, run="run")
    assert change is not None
    assert list(change(stored).metrics) == ["t"]
