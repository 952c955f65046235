"""``--ttnn-perf-artifacts`` and ``artifacts``: where run records are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import refusal_of, write_latency

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.mark.parametrize("folder", [".ttnn_perf", "out/deep"])
def test_folder_ignores_itself(project: Project, folder: str) -> None:
    write_latency(project, 12.5)
    project.run("git", "init", "-q")

    project.pytest("--ttnn-perf", f"--ttnn-perf-artifacts={folder}")

    assert (project.path / folder / ".gitignore").read_text() == "*\n"
    untracked = project.run("git", "ls-files", "--others", "--exclude-standard").text
    assert not [line for line in untracked.splitlines() if line.startswith(folder)]


def test_ignore_file_of_the_users_own_stays(project: Project) -> None:
    write_latency(project, 12.5)
    (project.path / "out").mkdir()
    (project.path / "out/.gitignore").write_text("runs/\n")

    project.pytest("--ttnn-perf", "--ttnn-perf-artifacts=out")

    assert (project.path / "out/.gitignore").read_text() == "runs/\n"


def test_each_run_leaves_one_record_and_nothing_else(project: Project) -> None:
    write_latency(project, 12.5)

    first = project.pytest("--ttnn-perf")
    project.pytest("--ttnn-perf")

    kept = sorted(file for file in project.files() if file.startswith(".ttnn_perf/"))
    assert kept[0] == ".ttnn_perf/.gitignore"
    assert len(kept) == 3
    assert all(file.endswith(".json") for file in kept[1:])
    assert "run record: .ttnn_perf/runs/RUN-ID.json" in first.text.splitlines()


def test_folder_that_cannot_be_written_is_refused_before_any_test(project: Project) -> None:
    write_latency(project, 12.5)

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-artifacts=numbers.json/out")

    assert refusal_of(ran) == f"{project.path}/numbers.json/out: cannot write: Not a directory"
