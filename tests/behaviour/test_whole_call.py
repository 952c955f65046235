"""Marked tests that do not use the fixture: run once, unchanged, and measured as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.model import (
    counts_of,
    entry_of,
    failure_of,
    outcomes,
    store_sessions,
)

if TYPE_CHECKING:
    from tests.harness.project import Project

#: A call time no test can reach, and one that every test stays below: 1 ns and 11 days.
IMPOSSIBLE, ENDLESS = [1.0, 0, 1], [1e15, 0, 1]

STYLES = """
    import unittest

    import pytest

    @pytest.mark.ttnn_perf
    def test_model():
        print("ran once")

    @pytest.mark.ttnn_perf
    @pytest.mark.parametrize("activation", ["relu"])
    @pytest.mark.parametrize("batch", [8])
    def test_parameter(batch, activation):
        print("ran once")

    @pytest.mark.ttnn_perf
    class TestClass:
        def test_model(self):
            print("ran once")

    class TestUnittest(unittest.TestCase):
        @pytest.mark.ttnn_perf
        def test_model(self):
            print("ran once")
"""
NAMES = (
    "test_model", "test_parameter[8-relu]", "TestClass::test_model", "TestUnittest::test_model",
)  # fmt: skip


def test_call_is_measured_once_and_compared_with_its_baseline(project: Project) -> None:
    project.write(test_model=STYLES)

    ran = project.pytest("--ttnn-perf", "-s")

    assert counts_of(ran) == "4 failed"
    assert ran.text.count("ran once") == 4
    for name in NAMES:
        entry = entry_of(project, f"test_model.py::{name}")
        assert list(entry["metrics"]) == ["call_time"]
        call_time = entry["metrics"]["call_time"]
        assert len(call_time["samples"]) == 1
        assert "warmup" not in call_time
        assert entry["verdicts"]["call_time"]["reason"] == "new test"

    project.pytest("--ttnn-perf-update=new")
    for session, outcome, counts in (
        (IMPOSSIBLE, "REGRESSED", "4 failed"),
        (ENDLESS, "IMPROVED", "4 passed"),
    ):
        for name in NAMES:
            store_sessions(project, session, test=name, name="call_time")
        assert counts_of(project.pytest("--ttnn-perf")) == counts
        for name in NAMES:
            assert outcomes(project, f"test_model.py::{name}") == {"call_time": outcome}


def test_async_test_is_refused_as_a_whole_and_recorded_as_such(project: Project) -> None:
    project.write(
        test_model="""
            import pytest

            @pytest.mark.ttnn_perf
            async def test_model():
                pass
        """
    )

    ran = project.pytest("--ttnn-perf")

    assert counts_of(ran) == "1 failed"
    assert failure_of(ran) == (
        "ttnn-perf cannot measure the async test test_model.py::test_model as a whole: the event "
        "loop would be part of its time; use `await ttnn_perf.measure_async(...)` in it"
    )
    assert entry_of(project)["raised"].startswith("Failed: ttnn-perf cannot measure the async test")


def test_fixtures_of_the_test_are_not_timed(project: Project) -> None:
    project.write(
        test_model="""
            import pytest
            from pytest_ttnn_perf.plugin import worker

            clock = [0]

            @pytest.fixture(autouse=True)
            def slow(monkeypatch):
                monkeypatch.setattr(worker, "perf_counter_ns", lambda: clock[0])
                clock[0] += 1000
                yield
                clock[0] += 1000

            @pytest.mark.ttnn_perf
            def test_model():
                clock[0] += 5
        """
    )

    project.pytest("--ttnn-perf")

    assert entry_of(project)["metrics"]["call_time"]["samples"] == [5]
