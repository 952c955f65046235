"""Existing tests are gated without being changed: recorded, held to their baseline, or named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, entry_of, outcomes
from tests.existing.idioms import (
    IDIOMS,
    Idiom,
    change_numbers,
    repeat_sessions,
    write_project,
)

if TYPE_CHECKING:
    from tests.harness.project import Project

TEST = "test_model.py::test_model"
MEASURED = [idiom for idiom in IDIOMS if not idiom.by_clock]


def gated(project: Project) -> tuple[str, ...]:
    metrics = entry_of(project, TEST)["metrics"]
    return tuple(sorted(name for name, metric in metrics.items() if metric.get("gated", True)))


@pytest.mark.parametrize("idiom", IDIOMS, ids=lambda idiom: idiom.name)
def test_recorded_and_gated_unchanged(project: Project, idiom: Idiom) -> None:
    write_project(project, idiom.text)
    plain = project.pytest("-p", "no:ttnn_perf")
    assert counts_of(plain) == "1 passed"

    ran = project.pytest("--ttnn-perf-update=new")

    assert counts_of(ran) == "1 passed", ran.text
    assert gated(project) == tuple(sorted(idiom.gated))
    assert "without a gated number" not in ran.text


@pytest.mark.parametrize("idiom", MEASURED, ids=lambda idiom: idiom.name)
def test_six_percent_slower_fails_and_faster_does_not(project: Project, idiom: Idiom) -> None:
    write_project(project, idiom.text)
    project.pytest("--ttnn-perf-update=new")
    repeat_sessions(project)

    change_numbers(project, 1.06)
    slower = project.pytest("--ttnn-perf")
    assert counts_of(slower) == "1 failed", slower.text
    assert "REGRESSED" in outcomes(project, TEST).values()

    change_numbers(project, 0.8)
    faster = project.pytest("--ttnn-perf")
    assert counts_of(faster) == "1 passed", faster.text
    assert "IMPROVED" in outcomes(project, TEST).values()


@pytest.mark.long
def test_processes_side_by_side_observe_the_same(project: Project) -> None:
    write_project(project, IDIOMS[4].text)

    ran = project.pytest_process(
        "--ttnn-perf-update=new", "--ttnn-perf-isolate=process", "--ttnn-perf-confirm=1", "-n2"
    )

    assert counts_of(ran) == "1 passed", ran.text + ran.errors
    assert gated(project) == tuple(sorted(IDIOMS[4].gated))
    metrics = entry_of(project, TEST)["metrics"]
    assert metrics["tokens/s/user.inference_decode"]["confirmations"] == [[50.0]]
