"""``--ttnn-perf-baselines`` and ``baselines``: where they lie, seen from where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.model import (
    counts_of,
    refusal_of,
    write_latency,
)

if TYPE_CHECKING:
    from tests.harness.project import Project


def test_runs_compare_with_the_folder_they_are_given(project: Project) -> None:
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-baselines=one")

    assert counts_of(project.pytest("--ttnn-perf", "--ttnn-perf-baselines=one")) == "1 passed"
    assert counts_of(project.pytest("--ttnn-perf", "--ttnn-perf-baselines=two")) == "1 failed"


def test_folder_that_cannot_be_written_is_refused_before_any_test(project: Project) -> None:
    project.write(test_model="def test_model(ttnn_perf): open('ran', 'w').close()")
    (project.path / "file").write_text("")

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-baselines=file/below")

    assert refusal_of(ran) == f"{project.path}/file/below: cannot write: Not a directory"
    assert project.files() == {"test_model.py", "file"}


def test_broken_baseline_stops_the_run_before_any_test(project: Project) -> None:
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new")
    file = project.baseline()
    file.write_text(file.read_text().replace("[12.5, ", '["fast", '))

    ran = project.pytest("--ttnn-perf")

    assert refusal_of(ran) == (
        f"{file}:11: ['tests']['test_model']['metrics']['latency']['sessions'][0][0]: "
        "expected a number, found 'fast'"
    )
    assert counts_of(ran) == "no tests ran"
