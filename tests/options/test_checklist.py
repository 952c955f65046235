"""``--ttnn-perf-checklist`` and ``checklist``: whether errors of the checklist fail a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.findings import ERROR, WARNING, checklist_of, write_model
from tests.behaviour.model import (
    MODEL,
    configure,
    counts_of,
    entry_of,
    failure_of,
)

if TYPE_CHECKING:
    from tests.harness.project import Project


def test_errors_fail_and_are_not_stored(project: Project) -> None:
    write_model(project)

    ran = project.pytest("--ttnn-perf-update=new")

    assert counts_of(ran) == "1 failed"
    assert failure_of(ran).splitlines() == [
        ERROR,
        "    fix: Use a batch that is a multiple of the number of devices that share it.",
        "    see: ttnn-perf rules TTP701",
        "NO_BASELINE: latency 12.50 ms has no baseline: the test is new",
    ]
    assert not (project.path / "baselines").exists()


def test_report_tells_the_same_and_fails_nothing(project: Project) -> None:
    write_model(project)

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-checklist=report")

    assert counts_of(ran) == "1 passed"
    assert checklist_of(ran)[0] == f"{MODEL}: {ERROR}"
    assert f"{MODEL}: {WARNING}" in checklist_of(ran)
    assert "checklist: 1 error, 1 warning" in ran.text
    assert project.baseline().exists()


def test_off_asks_nothing(project: Project) -> None:
    write_model(project)

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-checklist", "off")

    assert counts_of(ran) == "1 passed"
    assert "checklist" not in ran.text
    assert entry_of(project)["findings"] == entry_of(project)["unanswered"] == []


def test_checklist_has_its_twin(project: Project) -> None:
    write_model(project)
    configure(project, 'checklist = "report"')

    assert counts_of(project.pytest("--ttnn-perf-update=new")) == "1 passed"
    assert counts_of(project.pytest("--ttnn-perf", "--ttnn-perf-checklist=enforce")) == "1 failed"


def test_a_record_is_gated_as_the_project_has_it(project: Project) -> None:
    write_model(project)
    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-checklist=report")
    project.pytest("--ttnn-perf", "--ttnn-perf-json=run.json", "--ttnn-perf-checklist=report")

    asked = project.cli("gate", "run.json", "--checklist", "report")
    assert asked.code == 0
    enforced = project.cli("gate", "run.json")
    configure(project, 'checklist = "report"')
    reported = project.cli("gate", "run.json")

    assert (enforced.code, reported.code) == (1, 0)
    assert f"{MODEL}: {ERROR}" in enforced.text.splitlines()
    assert f"{MODEL}: {ERROR}" in reported.text.splitlines()
