"""``--ttnn-perf-update=all``: accepts losses for a reason, but no broken absolute limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.model import (
    counts_of,
    entry_of,
    failure_of,
    metric,
    outcomes,
    stored_metric,
    write_model,
)

if TYPE_CHECKING:
    from tests.harness.project import Project

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
