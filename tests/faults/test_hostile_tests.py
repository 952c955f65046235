"""Numbers that a test's author cannot mean fail that test, or stop the run by name; no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.refusals import PYTEST_USAGE, assert_no_traceback, assert_refused

if TYPE_CHECKING:
    from tests.faults.conftest import Scene

UPDATE = ("--ttnn-perf-update=all", "--ttnn-perf-reason=x")


@pytest.mark.parametrize(
    "call",
    [
        'record("wall_time", 10**400, unit="ns")',
        'record("wall_time", [10**400, 0.5], unit="ns")',
        'record("wall_time", [10**308, 10**308, 0.5], unit="ns")',
        'record("wall_time", 1e300, unit="ns")',
        "check_accuracy(top1=10**400)",
        "check_accuracy(top1=1.0, at_most=1e200)",
        "facts(layers=10**400)",
        "facts(scale=1e200)",
        'facts(scale=float("nan"))',
    ],
)
def test_a_number_beyond_any_measure_fails_its_test_by_name(scene: Scene, call: str) -> None:
    # Whole numbers can be larger than any float.
    scene.project.write(
        test_model=f"""
        def test_speed(ttnn_perf):
            ttnn_perf.{call}

        def test_other(ttnn_perf):
            ttnn_perf.record("wall_time", 1000, unit="ns")
        """
    )
    before = scene.project.stored()
    ran = scene.project.pytest(*UPDATE)
    assert "INTERNALERROR" not in ran.text
    assert ran.code == 1
    assert "FAILED test_model.py::test_speed" in ran.text
    # The test beside it is measured and stored, and of this one nothing is.
    assert scene.project.stored()["test_speed"] == before["test_speed"]
    assert "test_other" in scene.project.stored()


@pytest.mark.parametrize(
    "limit",
    [
        "tolerance=1e200",
        "tolerance=10**400",
        'max_regression={"wall_time": 1e200}',
        'target={"wall_time": 10**400}',
        "pcc=10**400",
    ],
)
def test_a_limit_beyond_any_measure_is_refused_before_any_test_runs(
    scene: Scene, limit: str
) -> None:
    scene.project.write(
        test_model=f"""
        import pytest

        @pytest.mark.ttnn_perf({limit})
        def test_speed(ttnn_perf):
            ttnn_perf.record("wall_time", 1000, unit="ns")
        """
    )
    before = scene.on_disk()
    ran = scene.project.pytest(*UPDATE)
    name, _, _ = limit.partition("=")
    assert_refused(ran, code=PYTEST_USAGE, says=("test_model.py::test_speed", name, "expected"))
    assert_no_traceback(ran)
    assert scene.on_disk() == before
