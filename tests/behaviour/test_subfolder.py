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
