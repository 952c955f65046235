"""``--ttnn-perf-baselines`` and ``baselines``: where they lie, seen from where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    configure,
    counts_of,
    refusal_of,
    write_latency,
)

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.fixture
def below(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose user stands in a folder below its root."""
    (project.path / "pytest.ini").write_text("[pytest]\n")
    write_latency(project, 12.5)
    (project.path / "below").mkdir()
    monkeypatch.chdir(project.path / "below")
    return project


def folders_of(project: Project) -> set[str]:
    """Return the folders in which baselines were written."""
    found = project.path.rglob("host-*/test_model.json")
    return {str(file.parent.parent.relative_to(project.path)) for file in found}


def test_default_is_a_folder_of_the_root(below: Project) -> None:
    ran = below.pytest("--ttnn-perf-update=new", "..")

    assert folders_of(below) == {"baselines"}
    assert counts_of(ran) == "1 passed"


def test_option_is_relative_to_where_the_user_stands(below: Project) -> None:
    ran = below.pytest("--ttnn-perf-update=new", "--ttnn-perf-baselines", "kept/here", "..")

    assert folders_of(below) == {"below/kept/here"}
    assert "ttnn-perf: gate on, key host-ARCH, baselines kept/here, update new" in ran.text


def test_setting_is_relative_to_the_root(below: Project) -> None:
    configure(below, 'baselines = "kept/here"')

    below.pytest("--ttnn-perf-update=new", "..")

    assert folders_of(below) == {"kept/here"}


def test_option_wins_over_the_setting(below: Project) -> None:
    configure(below, 'baselines = "kept/here"')

    below.pytest("--ttnn-perf-update=new", "--ttnn-perf-baselines=mine", "..")

    assert folders_of(below) == {"below/mine"}


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
    file.write_text(file.read_text().replace("[12.5, 0, 1]", '["fast", 0, 1]'))

    ran = project.pytest("--ttnn-perf")

    assert refusal_of(ran) == (
        f"{file}:11: ['tests']['test_model']['metrics']['latency']['sessions'][0][0]: "
        "expected a number, found 'fast'"
    )
    assert counts_of(ran) == "no tests ran"
