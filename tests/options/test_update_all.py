"""``--ttnn-perf-update=all``: accepts losses for a reason, but no broken absolute limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

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


@pytest.mark.parametrize(
    ("before", "after", "sessions"),
    [
        (metric(12.5), metric(25.5), [[12.5, 0, 1], [25.5, 0, 1]]),
        (
            metric(7, unit="", kind="count", better="equal"),
            metric(8, unit="", kind="count", better="equal"),
            [[7, 0, 1], [8, 0, 1]],
        ),
        (
            metric(0.99, unit="", kind="accuracy", better="higher"),
            metric(0.98, unit="", kind="accuracy", better="higher"),
            [[0.99, 0, 1], [0.98, 0, 1]],
        ),
    ],
    ids=["time", "equal", "accuracy"],
)
def test_loss_is_accepted_with_its_reason(
    project: Project, before: dict[str, object], after: dict[str, object], sessions: list[Any]
) -> None:
    write_model(project, latency=before)
    project.pytest("--ttnn-perf-update=new")
    write_model(project, latency=after)

    ran = project.pytest(*ALL)

    assert (ran.code, counts_of(ran)) == (0, "1 passed")
    assert outcomes(project) == {"latency": "REGRESSED"}
    assert stored_metric(project)["sessions"] == sessions
    assert stored_metric(project)["since"] == 1
    assert project.stored()["test_model"]["accepted"]["reason"] == "wider accumulator"
    assert entry_of(project)["written"] == ["latency"]
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


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (
            "ttnn_perf.check_accuracy(top1=0.5, at_least=0.75)",
            "top1 0.5 is below its limit 0.75",
        ),
        (
            "ttnn_perf.check_accuracy(fid=31.5, at_most=20)",
            "fid 31.5 is above its limit 20",
        ),
        (
            "ttnn_perf.check_pcc(np.arange(3.0), -np.arange(3.0))",
            "pcc -1 is below its limit 0.99",
        ),
    ],
    ids=["at_least", "at_most", "pcc"],
)
def test_broken_absolute_limit_is_never_accepted(
    project: Project, check: str, sentence: str
) -> None:
    project.write(
        test_model=f"""
            import numpy as np

            def test_model(ttnn_perf):
                ttnn_perf.record("latency", 12.5, unit="ms")
                {check}
        """
    )

    ran = project.pytest(*ALL)

    assert counts_of(ran) == "1 failed"
    assert f"REGRESSED: {sentence}" in failure_of(ran).splitlines()
    assert not (project.path / "baselines").exists()
