"""Tests that do not simply pass or fail: expected failures, skips, errors around the call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.behaviour.model import counts_of, entry_of

if TYPE_CHECKING:
    from tests.harness.project import Project


def test_what_was_expected_to_fail_or_did_not_run_is_not_recorded(project: Project) -> None:
    project.write(
        test_model="""
            import unittest

            import pytest

            @pytest.mark.ttnn_perf
            @pytest.mark.xfail
            def test_measured(ttnn_perf):
                ttnn_perf.measure(int)
                assert False

            @pytest.mark.ttnn_perf
            @pytest.mark.xfail
            def test_whole_call(): assert False

            @pytest.mark.ttnn_perf
            def test_not_yet(): pytest.xfail("not yet")

            class TestModel(unittest.TestCase):
                @pytest.mark.ttnn_perf
                @unittest.expectedFailure
                def test_model(self): self.fail()

            @pytest.mark.skip
            def test_marked(ttnn_perf): pass

            def test_skips_after_recording(ttnn_perf):
                ttnn_perf.record("latency", 1, unit="ms")
                pytest.skip("no device")
        """
    )

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-json=run.json")

    assert (ran.code, counts_of(ran)) == (0, "2 skipped, 4 xfailed")
    assert project.files() == {"test_model.py", ".ttnn_perf/.gitignore", "run.json"}
    assert json.loads((project.path / "run.json").read_text())["tests"] == {}
    assert "=== ttnn-perf ===\nno test was gated: those that ran are not marked" in ran.text


def test_what_fails_around_its_call_is_recorded_as_such_and_never_passes(project: Project) -> None:
    project.write(
        test_model="""
            import pytest

            @pytest.fixture
            def no_device():
                raise RuntimeError("no device")

            @pytest.fixture
            def lost_device():
                yield
                raise RuntimeError("device lost")

            @pytest.mark.ttnn_perf
            def test_model(no_device):
                pass

            def test_lost(ttnn_perf, lost_device):
                ttnn_perf.record("latency", 12.5, unit="ms")
        """
    )

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-json=run.json")

    assert counts_of(ran) == "1 passed, 2 errors"
    assert entry_of(project)["raised"] == "in its setup: RuntimeError: no device"
    assert not (project.path / "baselines").exists()
    problem = "nothing was written: the test failed after its call, in its teardown"
    assert f"test_model.py::test_lost: {problem}" in ran.text.splitlines()
    assert "record: pytest" not in ran.text
    (project.path / "baselines").mkdir()
    gated = project.cli("gate", "run.json")
    assert gated.code == 1
    assert "the test raised in its setup: RuntimeError: no device" in gated.text
