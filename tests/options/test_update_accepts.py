"""``improved`` keeps gains and gathers sessions; ``all`` accepts losses for a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.model import (
    counts_of,
    entry_of,
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


def test_a_gain_with_far_fewer_ops_takes_a_reason(project: Project) -> None:
    """A capture that was cut at the end of a row has half of the ops, and half of the time."""
    project.write(
        test_model="""
            def test_model(ttnn_perf):
                ttnn_perf.attach("ops.csv")
        """
    )
    lines = capture(*(op("MatmulDeviceOperation", 90_000) for _ in range(10))).splitlines()

    def updated(ops: int, *options: str) -> tuple[str, bool]:
        """Return what an update says of a capture with so many ops, and whether it writes."""
        (project.path / "ops.csv").write_text("\n".join(lines[: ops - 10 or None]) + "\n")
        before = project.stored() if (project.path / "baselines").exists() else {}
        return project.pytest(*options).text, project.stored() != before

    assert updated(10, "--ttnn-perf-update=new")[1]
    text, is_written = updated(9, "--ttnn-perf-update")
    assert ("ops changed" in text, is_written) == (False, True)
    text, is_written = updated(4, "--ttnn-perf-update")
    assert not is_written
    assert "faster; ops changed: 9 → 4" in text
    assert "accept: ttnn-perf baseline accept" in text
    assert updated(4, "--ttnn-perf-update=all", "--ttnn-perf-reason=fused")[1]


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
