"""``--ttnn-perf-update=improved``: keeps gains, and gathers sessions of what stayed the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    metric,
    outcomes,
    stored_metric,
    write_latency,
    write_model,
)
from tests.harness.captures import capture, op

if TYPE_CHECKING:
    from tests.harness.project import Project

IMPROVED = "--ttnn-perf-update=improved"


def test_sessions_within_limits_are_appended_and_a_gain_starts_a_new_centre(
    project: Project,
) -> None:
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-reason=first")
    accepted = project.stored()["test_model"]["accepted"]
    write_latency(project, 12.6)
    assert counts_of(project.pytest(IMPROVED, "--ttnn-perf-reason=another")) == "1 passed"
    assert stored_metric(project)["sessions"] == [[12.5, 0, 1], [12.6, 0, 1]]
    assert stored_metric(project)["since"] == 0
    assert project.stored()["test_model"]["accepted"] == accepted  # that was no decision

    write_latency(project, 6.5)
    assert counts_of(project.pytest(IMPROVED, "--ttnn-perf-reason=fused")) == "1 passed"
    assert stored_metric(project)["sessions"] == [[12.5, 0, 1], [12.6, 0, 1], [6.5, 0, 1]]
    assert stored_metric(project)["since"] == 2
    assert project.stored()["test_model"]["accepted"]["reason"] == "fused"

    # A loss is not written, and takes the gain beside it along.
    write_model(project, latency=metric(12.5), other=metric(1))
    project.pytest("--ttnn-perf-update=all", "--ttnn-perf-reason=back")
    text = project.baseline().read_text()
    write_model(project, latency=metric(25.5), other=metric(0.5))
    assert counts_of(project.pytest(IMPROVED)) == "1 failed"
    assert outcomes(project) == {"latency": "REGRESSED", "other": "IMPROVED"}
    assert project.baseline().read_text() == text


@pytest.mark.parametrize(("ops", "is_written"), [(5, False), (9, True)])
def test_a_gain_with_far_fewer_ops_takes_a_reason(
    project: Project, ops: int, is_written: bool
) -> None:
    """A capture that was cut at the end of a row has half of the ops, and half of the time."""
    source = """
        from pathlib import Path

        def test_model(ttnn_perf):
            ttnn_perf.attach(Path(__file__).with_name("ops.csv"))
    """
    project.write(test_model=source)
    lines = capture(*(op("MatmulDeviceOperation", 90_000) for _ in range(10))).splitlines()
    file = project.path / "ops.csv"
    file.write_text("\n".join(lines) + "\n")
    assert project.pytest("--ttnn-perf-update=new").code == 0
    before = project.stored()["test_model"]
    file.write_text("\n".join(lines[: ops - 10]) + "\n")

    ran = project.pytest("--ttnn-perf-update")

    assert (project.stored()["test_model"] != before) is is_written
    assert ("faster; ops changed: 10 → 5" in ran.text) is not is_written
    assert ("accept it with: ttnn-perf baseline accept" in ran.text) is not is_written
    why = ("--ttnn-perf-update=all", "--ttnn-perf-reason=fused")
    assert project.pytest(*why).code == 0
    assert project.stored()["test_model"] != before
