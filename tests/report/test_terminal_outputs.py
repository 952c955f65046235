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
PCC = """
import numpy as np
import pytest

@pytest.mark.ttnn_perf(pcc={limit})
def test_model(ttnn_perf):
    ttnn_perf.check_pcc(np.array([1.0, 2.0, 3.0, 4.0]), np.array({actual}))
"""
STEADY = "[10.0, 10.1, 9.9]"


def latency(samples: str) -> str:
    return LATENCY.format(samples=samples)


def recorded(project: Project, test: str) -> None:
    """Store a baseline of ``test``, without a word in the output under test."""
    project.write(test_model=test)
    assert project.pytest("--ttnn-perf-update=new").code == 0


@pytest.mark.parametrize(
    ("outcome", "before", "now", "code"),
    [
        ("within", latency(STEADY), latency("[10.0, 10.2, 10.1]"), 0),
        ("regressed", latency(STEADY), latency("[12.0, 12.1, 12.2]"), 1),
        ("no_data", latency(STEADY), latency("[10.0, float('nan')]"), 1),
        (
            "not_recorded",
            latency(STEADY),
            latency(STEADY).replace('"latency"', '"duration"'),
            1,
        ),
        (
            "pcc_not_finite",
            PCC.format(limit=0.99, actual="[1.0, 2.0, 3.0, 4.0]"),
            PCC.format(limit=0.99, actual="[1.0, np.nan, 3.0, 4.0]"),
            1,
        ),
    ],
)
def test_outcome_against_a_baseline(
    project: Project, outcome: str, before: str, now: str, code: int
) -> None:
    recorded(project, before)
    project.write(test_model=now)
    ran = project.pytest("--ttnn-perf")
    assert ran.code == code
    assert_golden(outcome, ran.text)


def test_outcome_without_a_baseline(project: Project) -> None:
    project.write(test_model=latency(STEADY))
    ran = project.pytest("--ttnn-perf")
    assert ran.code == 1
    assert_golden("no_baseline", ran.text)


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
