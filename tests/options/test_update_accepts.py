"""``improved`` keeps gains and gathers sessions; ``all`` accepts losses for a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    entry_of,
    failure_of,
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


ALL = ("--ttnn-perf-update=all", "--ttnn-perf-reason=wider accumulator")


def test_losses_are_accepted_with_their_reason(project: Project) -> None:
    count = {"unit": "", "kind": "count", "better": "equal"}
    write_model(project, latency=metric(12.5), launches=metric(7, **count))
    project.pytest("--ttnn-perf-update=new")
    write_model(project, latency=metric(25.5), launches=metric(8, **count))

    ran = project.pytest(*ALL)

    assert (ran.code, counts_of(ran)) == (0, "1 passed")
    assert outcomes(project) == {"latency": "REGRESSED", "launches": "REGRESSED"}
    assert stored_metric(project)["sessions"] == [[12.5, 0, 1], [25.5, 0, 1]]
    assert stored_metric(project, "launches")["sessions"] == [[7, 0, 1], [8, 0, 1]]
    assert stored_metric(project)["since"] == 1
    assert project.stored()["test_model"]["accepted"]["reason"] == "wider accumulator"
    assert sorted(entry_of(project)["written"]) == ["latency", "launches"]
    assert counts_of(project.pytest("--ttnn-perf")) == "1 passed"
    assert "written" not in entry_of(project)


def test_other_configuration_replaces_the_sessions_of_the_old_one(project: Project) -> None:
    project.write(
        test_model="""
            import os

            def test_model(ttnn_perf):
                ttnn_perf.record("latency", 12.5, unit="ms")
                ttnn_perf.facts(use_trace=os.path.exists("traced"))
        """
    )
    project.pytest("--ttnn-perf-update=new")
    (project.path / "traced").touch()

    assert counts_of(project.pytest("--ttnn-perf-update=improved")) == "1 failed"
    assert counts_of(project.pytest(*ALL)) == "1 passed"

    assert outcomes(project) == {"latency": "NOT_COMPARABLE"}
    assert stored_metric(project)["sessions"] == [[12.5, 0, 1]]
    assert project.stored()["test_model"]["configuration"] == {"use_trace": True}
    assert counts_of(project.pytest("--ttnn-perf")) == "1 passed"


def test_broken_absolute_limits_are_never_accepted(project: Project) -> None:
    project.write(
        test_model="""
            import numpy as np

            def test_model(ttnn_perf):
                ttnn_perf.record("latency", 12.5, unit="ms")
                ttnn_perf.check_accuracy(top1=0.5, at_least=0.75)
                ttnn_perf.check_accuracy(fid=31.5, at_most=20)
                ttnn_perf.check_pcc(np.arange(3.0), -np.arange(3.0))
        """
    )

    ran = project.pytest(*ALL)

    assert counts_of(ran) == "1 failed"
    assert {
        "REGRESSED: top1 0.5 is below its limit 0.75",
        "REGRESSED: fid 31.5 is above its limit 20",
        "REGRESSED: pcc -1 is below its limit 0.99",
    } <= set(failure_of(ran).splitlines())
    assert not (project.path / "baselines").exists()
