"""Existing tests are gated without being changed: recorded, held to their baseline, or named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.model import counts_of, entry_of, outcomes
from tests.existing.idioms import IDIOMS, change_numbers, repeat_sessions, write_project

if TYPE_CHECKING:
    from tests.harness.project import Project

#: Those whose verdict does not depend on real time.
MEASURED = {f"test_{at}": idiom for at, idiom in enumerate(IDIOMS) if not idiom.by_clock}


def gated(project: Project, test: str) -> set[str]:
    metrics = entry_of(project, f"{test}.py::test_model")["metrics"]
    return {name for name, metric in metrics.items() if metric.get("gated", True)}


def told(project: Project, outcome: str) -> set[str]:
    """Return the tests of which some metric has an outcome."""
    found = {test: outcomes(project, f"{test}.py::test_model").values() for test in MEASURED}
    return {test for test, verdicts in found.items() if outcome in verdicts}


def test_recorded_unchanged_then_six_percent_slower_fails_and_faster_does_not(
    project: Project,
) -> None:
    write_project(
        project,
        next(idiom for idiom in IDIOMS if idiom.by_clock).text,
        **{test: idiom.text for test, idiom in MEASURED.items()},
    )
    plain = project.pytest("-p", "no:ttnn_perf")
    assert counts_of(plain) == f"{len(IDIOMS)} passed"

    ran = project.pytest("--ttnn-perf-update=new")

    assert counts_of(ran) == f"{len(IDIOMS)} passed", ran.text
    for test, idiom in MEASURED.items():
        assert gated(project, test) == set(idiom.gated), idiom.name
    assert gated(project, "test_model") == {"step_time.inference_decode"}
    assert "without a gated number" not in ran.text

    for file in project.path.rglob("test_model.*"):  # its noise would be that of the others too
        file.unlink()
    change_numbers(project, 1.25)
    once = project.pytest("--ttnn-perf")  # of one run the noise is not known: 20 % fail
    assert counts_of(once) == f"{len(MEASURED)} failed", once.text
    change_numbers(project, 1.06)
    assert counts_of(project.pytest("--ttnn-perf")) == f"{len(MEASURED)} passed"

    repeat_sessions(project, 10)
    change_numbers(project, 1.06)
    slower = project.pytest("--ttnn-perf")
    assert counts_of(slower) == f"{len(MEASURED)} failed", slower.text
    assert told(project, "REGRESSED") == set(MEASURED)

    change_numbers(project, 0.8)
    faster = project.pytest("--ttnn-perf")
    assert counts_of(faster) == f"{len(MEASURED)} passed", faster.text
    assert told(project, "IMPROVED") == set(MEASURED)
