"""The commands that a run prints to accept what it measured, run as they are printed."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.harness.project import Project

TESTS = """
    import pytest

    @pytest.mark.parametrize("model", ["a", "b", "c"])
    def test_model(ttnn_perf, model):
        ttnn_perf.record("latency", {numbers}[model], unit="ms")
"""
BEFORE = {"a": [10.0, 10.1], "b": [20.0, 20.1], "c": [30.0, 30.1]}
SLOWER = {"a": [15.0, 15.1], "b": [35.0, 35.1], "c": [15.0, 15.1]}


@pytest.fixture
def slowed(project: Project) -> Project:
    """A project with two tests that are slower than their baselines, and one that is faster."""
    project.write(test_model=TESTS.format(numbers=BEFORE))
    assert project.pytest("--ttnn-perf-update=new").code == 0
    project.write(test_model=TESTS.format(numbers=SLOWER))
    return project


def printed(text: str, start: str) -> list[str]:
    """Return the commands of ``ttnn-perf`` that stand behind some words."""
    found = re.findall(rf"^ *{start}: (ttnn-perf .*)$", text, flags=re.MULTILINE)
    return list(dict.fromkeys(found))


def resolve(project: Project, command: str) -> None:
    """Run a command as it was printed, from the newest record, whose name the harness hides."""
    runs = (project.path / ".ttnn_perf" / "runs").glob("*.json")
    newest = max(runs, key=lambda file: file.stat().st_mtime_ns)
    words = shlex.split(command.replace("RUN-ID", newest.stem))
    assert project.cli(*words[1:]).code == 0


def test_one_command_accepts_all_regressions_and_nothing_else(slowed: Project) -> None:
    ran = slowed.pytest("--ttnn-perf")

    (command,) = printed(ran.text, "accept all 2 regressions")
    tests = "'test_model.py::test_model[b]' 'test_model.py::test_model[a]'"
    assert command == (
        f'ttnn-perf baseline accept .ttnn_perf/runs/RUN-ID.json --reason "why" -- {tests}'
    )
    resolve(slowed, command)
    again = slowed.pytest("--ttnn-perf")
    assert again.code == 0
    assert "metrics: 2 WITHIN, 1 IMPROVED" in again.text
