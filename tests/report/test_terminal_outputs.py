"""The whole terminal output of a run, for every outcome there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.harness.project import Project

#: A test whose one timing is given as numbers, so that no clock decides what is printed.
LATENCY = """
import pytest

@pytest.mark.ttnn_perf
def test_model(ttnn_perf):
    ttnn_perf.record("latency", {samples}, unit="ms", kind="time")
"""
STEADY = "[10.0, 10.1, 9.9]"


def latency(samples: str) -> str:
    return LATENCY.format(samples=samples)


@pytest.mark.parametrize(
    ("outcome", "now"),
    [
        ("no_data", latency("[10.0, float('nan')]")),
        ("not_recorded", latency(STEADY).replace('"latency"', '"duration"')),
    ],
)
def test_outcome_against_a_baseline(project: Project, outcome: str, now: str) -> None:
    project.write(test_model=latency(STEADY))
    assert project.pytest("--ttnn-perf-update=new").code == 0
    project.write(test_model=now)
    ran = project.pytest("--ttnn-perf")
    assert ran.code == 1
    assert_golden(outcome, ran.text)


def test_several_tests_with_target_note_and_recorded_metrics(project: Project) -> None:
    project.write(
        test_model="""
        import numpy as np
        import pytest

        @pytest.mark.ttnn_perf(target={"latency": "8 ms"}, tolerance={"latency": 0.2})
        @pytest.mark.parametrize("batch", [1, 8])
        def test_model(ttnn_perf, batch):
            ttnn_perf.record("latency", [10.0 + batch], unit="ms", kind="time")
            ttnn_perf.record("ops", 12, kind="count")
            ttnn_perf.check_pcc(np.zeros(4), np.zeros(4))

        def test_plain():
            pass
        """
    )
    first = project.pytest("--ttnn-perf-update=new")
    second = project.pytest("--ttnn-perf", "--ttnn-perf-label", "nothing changed")
    assert (first.code, second.code) == (0, 0)
    assert_golden("several_new", first.text)
    assert_golden("several_within", second.text)
