"""What each outcome becomes under each update, and how the stored sessions change."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.records.baseline import (
    MAX_SESSIONS,
    Accepted,
    MetricBaseline,
    Session,
    TestBaseline,
)
from pytest_ttnn_perf.records.metric import Kind, Metric, Source
from pytest_ttnn_perf.records.observation import JudgedTest, MetricObservation, Observation
from pytest_ttnn_perf.records.settings import Update
from pytest_ttnn_perf.records.verdict import Outcome, Reason, Verdict
from pytest_ttnn_perf.run.update import Action, action_for, plan

METRIC = Metric("t", "ms")
NOW = Accepted("2026-11-16T00:00:00Z", reason="because")
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
        (Outcome.NO_BASELINE, Reason.NEW_TEST, ADD, ADD, ADD),
        (Outcome.NO_BASELINE, Reason.NEW_METRIC, ADD, ADD, ADD),
        (Outcome.NOT_COMPARABLE, Reason.OTHER_KEY, ADD, ADD, ADD),
        (Outcome.NOT_COMPARABLE, Reason.OTHER_CONFIGURATION, BLOCK, BLOCK, REPLACE),
        (Outcome.NOT_COMPARABLE, Reason.OTHER_SOURCE, BLOCK, BLOCK, REPLACE),
        (Outcome.NOT_COMPARABLE, Reason.OTHER_DEFINITION, BLOCK, BLOCK, REPLACE),
        (Outcome.TOO_NOISY, None, BLOCK, BLOCK, BLOCK),
        (Outcome.NO_DATA, Reason.NO_SAMPLES, BLOCK, BLOCK, BLOCK),
    ],
)
def test_every_outcome_under_every_update(
    outcome: Outcome, reason: Reason | None, new: Action, improved: Action, everything: Action
) -> None:
    verdict = Verdict(METRIC, outcome, reason)
    updates = (Update.NEW, Update.IMPROVED, Update.ALL)
    assert [action_for(verdict, update) for update in updates] == [new, improved, everything]


def after(stored: TestBaseline | None, value: float, update: Update) -> TestBaseline | None:
    """Return the baseline after one more run; None when nothing is written."""
    run = Observation("t.py::t", {"t": MetricObservation(METRIC, (value,))})
    change = plan(JudgedTest(run, judge_test(run, stored)), update, accepted=NOW)
    return change(stored) if change else None


def grown(*values: float, update: Update = Update.IMPROVED) -> MetricBaseline:
    """Return the baseline that runs with an update each leave behind."""
    stored: TestBaseline | None = None
    for value in values:
        stored = after(stored, value, update) or stored
    assert stored is not None
    return stored.metrics["t"]


def test_a_full_list_is_never_rolled() -> None:
    full = grown(*(100 + i / 100 for i in range(MAX_SESSIONS + 5)))
    assert [session.median for session in full.sessions] == [100 + i / 100 for i in range(20)]


def test_an_accept_keeps_the_spread_and_resets_the_centre() -> None:
    stored = grown(100, 101, 100, 50)
    assert [session.median for session in stored.sessions] == [100, 101, 100, 50]
    assert stored.since == 3


def test_one_accept_after_another_does_not_make_the_steps_look_like_noise() -> None:
    stored = grown(100, 100, 100, 100, 80, 80, 80, 80, 60)
    assert [session.median for session in stored.current] == [60]
    run = Observation("t.py::t", {"t": MetricObservation(METRIC, (60.0,))})
    (verdict,) = judge_test(run, TestBaseline(NOW, {"t": stored}))
    assert verdict.outcome is Outcome.WITHIN


def test_the_longer_of_two_histories_tells_the_spread() -> None:
    stored = grown(100, 101, 100, 80, 60)
    assert [session.median for session in stored.sessions] == [100, 101, 100, 60]


def test_all_sessions_of_a_confirmed_run_are_stored() -> None:
    observed = MetricObservation(METRIC, (50.0,), confirmations=((51.0,), (52.0,)))
    run = Observation("t.py::t", {"t": observed})
    change = plan(JudgedTest(run, judge_test(run, None)), Update.NEW, accepted=NOW)
    assert change is not None
    assert change(None).metrics["t"].sessions == (
        Session(50, 0, 1),
        Session(51, 0, 1),
        Session(52, 0, 1),
    )


@pytest.mark.parametrize(
    ("measured", "added"),
    [
        ((106.0, 100.5), [106]),
        ((100.0 / 1.06, 100.5), [94.33962]),
        ((119.0, 100.5), [119]),
        ((121.0, 100.5), []),
        ((100.0 / 1.21, 100.5), []),
    ],
    ids=["slow", "fast", "far", "accident", "lucky accident"],
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
    change = plan(judged, Update.IMPROVED, accepted=NOW)
    result = change(stored) if change else stored
    assert result is not None
    assert [session.median for session in result.metrics["t"].sessions] == [100, *added]


def test_a_session_more_leaves_who_accepted_and_why() -> None:
    first = after(None, 100, Update.NEW)
    assert first is not None
    old = TestBaseline(Accepted("2020-01-01T00:00:00Z", reason="old"), first.metrics)
    appended, accepted = after(old, 100, Update.IMPROVED), after(old, 50, Update.IMPROVED)
    assert appended is not None
    assert accepted is not None
    assert (appended.accepted.reason, accepted.accepted.reason) == ("old", "because")


@pytest.mark.parametrize("value", [900, 1100, None], ids=["less", "more", "not told"])
def test_what_depends_on_other_tests_is_not_judged_and_leaves_the_file(value: float | None) -> None:
    peak = Metric("cb_peak_bytes", "B", kind=Kind.BYTES, source=Source.DEVICE)
    session = MetricBaseline(peak, (Session(1000, 0, 1),))
    stored = TestBaseline(NOW, {"t": grown(100), peak.name: session})
    told = {} if value is None else {peak.name: MetricObservation(peak, (value,))}
    run = Observation("t.py::t", {"t": MetricObservation(METRIC, (100,)), **told})

    verdicts = judge_test(run, stored)

    assert [verdict.metric.name for verdict in verdicts] == ["t"]
    change = plan(JudgedTest(run, verdicts), Update.IMPROVED, accepted=NOW)
    assert change is not None
    assert list(change(stored).metrics) == ["t"]
