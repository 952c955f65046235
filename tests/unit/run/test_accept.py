"""What each outcome becomes under each update, and how the stored sessions change."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.records.baseline import (
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


def test_one_accept_after_another_does_not_make_the_steps_look_like_noise() -> None:
    stored = grown(100, 100, 100, 100, 80, 80, 80, 80, 60)
    assert [session.median for session in stored.current] == [60]
    run = Observation("t.py::t", {"t": MetricObservation(METRIC, (60.0,))})
    (verdict,) = judge_test(run, TestBaseline(NOW, {"t": stored}))
    assert verdict.outcome is Outcome.WITHIN


def test_the_longer_of_two_histories_tells_the_spread() -> None:
    stored = grown(100, 101, 100, 80, 60)
    assert [session.median for session in stored.sessions] == [100, 101, 100, 60]


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
