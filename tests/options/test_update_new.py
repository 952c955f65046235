"""``--ttnn-perf-update=new``: adds what has no baseline, and changes nothing that has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    failure_of,
    metric,
    outcomes,
    stored_metric,
    write_latency,
    write_model,
)

if TYPE_CHECKING:
    from tests.harness.project import Project

NEW = "--ttnn-perf-update=new"


@pytest.fixture
def known(project: Project) -> Project:
    """A project whose test has a baseline of 12.5 ms."""
    write_latency(project, 12.5, 12.5)
    project.pytest(NEW)
    return project


def test_new_test_is_written_and_passes(project: Project) -> None:
    write_latency(project, 12, 13, 15)

    ran = project.pytest(NEW)

    assert (ran.code, counts_of(ran)) == (0, "1 passed")
    counted = "1 test gated; 1 written; metrics: 1 NO_BASELINE; checklist: 1 warning"
    assert counted in ran.text.splitlines()
    # Median, median distance from it, number of samples.
    assert stored_metric(project) == {
        "better": "lower",
        "kind": "time",
        "sessions": [[13, 1, 3]],
        "since": 0,
        "source": "wall",
        "unit": "ms",
    }


def test_new_metric_is_added_beside_known_ones(known: Project) -> None:
    write_model(known, latency=metric(12.5, 12.5), ops=metric(7, unit="", kind="count"))

    ran = known.pytest(NEW)

    assert counts_of(ran) == "1 passed"
    assert stored_metric(known)["sessions"] == [[12.5, 0, 2]]
    assert stored_metric(known, "ops")["sessions"] == [[7, 0, 1]]


@pytest.mark.parametrize(
    ("milliseconds", "outcome", "counts"),
    [(12.6, "WITHIN", "1 passed"), (6.5, "IMPROVED", "1 passed"), (25.5, "REGRESSED", "1 failed")],
)
def test_known_metric_keeps_its_baseline(
    known: Project, milliseconds: float, outcome: str, counts: str
) -> None:
    before = known.baseline().read_text()
    write_latency(known, milliseconds)

    ran = known.pytest(NEW)

    assert counts_of(ran) == counts
    assert outcomes(known) == {"latency": outcome}
    assert known.baseline().read_text() == before


def test_new_metric_of_a_regressed_test_is_not_written(known: Project) -> None:
    before = known.baseline().read_text()
    write_model(known, latency=metric(25.5), ops=metric(7, unit="", kind="count"))

    ran = known.pytest(NEW)

    assert failure_of(ran).splitlines()[::2] == [
        "REGRESSED: latency 25.50 ms, baseline 12.50 ms: 104.0 % slower, limit 9.1 % "
        "(1 sample against 1 session; sample noise assumed; one run seen)",
        "NO_BASELINE: ops 7 has no baseline: the metric is new in this test",
    ]
    assert known.baseline().read_text() == before


def test_a_new_metric_is_added_beside_one_that_is_too_noisy_to_gate(project: Project) -> None:
    """With one run it fails nothing, and so it keeps nothing else from being recorded."""
    noisy = metric(10, 30, 90, 5, 60)
    write_model(project, latency=noisy)
    assert "too noisy to gate" in project.pytest(NEW).text
    write_model(project, latency=noisy, warm=metric(6.5))

    ran = project.pytest(NEW)

    assert counts_of(ran) == "1 passed"
    assert stored_metric(project, "warm")["sessions"] == [[6.5, 0, 1]]
