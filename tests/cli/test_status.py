"""What ``ttnn-perf status`` and ``ttnn-perf explain`` say of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.harness.baselines import stored, times
from tests.harness.golden import assert_golden
from tests.harness.project import run_command

if TYPE_CHECKING:
    from tests.harness.baselines import Desk

SLOW, NEW, GONE = "test_a.py::test_slow", "test_a.py::test_new", "test_a.py::test_gone"


@pytest.fixture
def measured(desk: Desk) -> Desk:
    """Return a project in which one test is slower, one new, and one was not measured."""
    (desk.path / ".ttnn_perf" / "runs").mkdir(parents=True)
    for test in (SLOW, GONE):
        desk.store(test, stored(times(2.0, 2.01, 2.02)))
    desk.record(".ttnn_perf/runs/20260101T000000Z-aaaaaa.json", tests={SLOW: [9.0, 9.0]})
    full = {"places": ["test_a.py"], "others": [], "unasked": []}
    tests = {SLOW: [3.0, 3.01, 3.02], NEW: [1.0, 1.01]}
    desk.record(
        ".ttnn_perf/runs/20260102T000000Z-bbbbbb.json", tests=tests, label="wider", collected=full
    )
    return desk


def assert_says(name: str, *words: str, code: int = 0) -> None:
    ran = run_command(*words)
    assert_golden(name, ran.text + ran.errors)
    assert ran.code == code


@pytest.mark.usefixtures("measured")
def test_the_last_run_against_the_baselines() -> None:
    assert_says("status_table", "status")


@pytest.mark.usefixtures("desk")
def test_a_project_that_has_measured_nothing() -> None:
    assert_says("status_empty", "status")
    assert_says("explain_no_run", "explain", SLOW, code=2)


@pytest.mark.usefixtures("measured")
def test_a_test_is_explained_alone() -> None:
    assert_says("explain_test", "explain", SLOW)
    assert_says("explain_unknown_test", "explain", "test_a.py::test_slo", code=2)
    assert_says("explain_unknown_rule", "explain", "TTP20", code=2)
    assert_says("explain_nothing", "explain", "test_slow", code=2)


def test_a_record_is_explained_whole(measured: Desk) -> None:
    record = ".ttnn_perf/runs/20260102T000000Z-bbbbbb.json"
    assert run_command("explain", record, "--format", "json").text == (
        run_command("gate", record, "--format", "json").text
    )
    (measured.path / "broken.json").write_text("{")
    assert run_command("explain", "broken.json").code == 3
    explained = run_command("explain", "TTP203").text
    assert explained == run_command("rules", "TTP203").text
    assert "tech_reports/tensor_layouts/tensor_layouts.md" in explained


def test_a_test_that_raised_has_not_passed(desk: Desk) -> None:
    desk.store(SLOW, stored(times(2.0, 2.01, 2.02)))
    (desk.path / ".ttnn_perf" / "runs").mkdir(parents=True)
    metrics = {"latency": {"unit": "ms", "kind": "time", "samples": [2.0, 2.01, 2.0]}}
    raised = {"metrics": {}, "raised": "AssertionError"}
    tests = {SLOW: {**raised, "metrics": metrics}, NEW: raised}
    desk.record(".ttnn_perf/runs/1.json", tests=tests)
    assert_says("status_raised", "status")


def test_a_record_that_cannot_be_read_is_named(measured: Desk) -> None:
    (measured.path / ".ttnn_perf/runs/20260103T000000Z-cccccc.json").write_text("[]")
    ran = run_command("status")
    assert ran.code == 3
    assert ran.errors.startswith("ttnn-perf: .ttnn_perf/runs/20260103T000000Z-cccccc.json:1: ")
