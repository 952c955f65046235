"""``ttnn-perf`` finds the project from a folder inside it, as pytest does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import write_latency
from tests.harness.project import run_command

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\nminversion = "7.4"\n'),
        ("ttnn_perf.toml", "warmup = 1\n"),
        ("pytest.ini", "[pytest]\n"),
        ("setup.cfg", "[tool:pytest]\n"),
        ("setup.py", ""),
    ],
)
def test_baselines_are_those_of_the_project(
    project: Project, monkeypatch: pytest.MonkeyPatch, file: str, text: str
) -> None:
    (project.path / file).write_text(text)
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new")
    folder = project.path / "models" / "llama"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)

    ran = run_command("baseline", "list")

    assert "test_model.py::test_model" in ran.text, ran.errors


def test_a_project_inside_another_is_its_own(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.path / "ttnn_perf.toml").write_text("warmup = 1\n")
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new")
    inner = project.path / "inner"
    inner.mkdir()
    (inner / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(inner)

    ran = run_command("baseline", "list")

    assert "test_model.py::test_model" not in ran.text
    assert f"{inner}/baselines" in ran.errors
