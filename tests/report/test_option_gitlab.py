"""``--ttnn-perf-gitlab`` and ``gitlab``: a code quality report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import write_latency

if TYPE_CHECKING:
    from tests.harness.project import Project


def regressions(text: str) -> list[dict[str, Any]]:
    """Return the issues that are about times."""
    return [each for each in json.loads(text) if each["check_name"] == "ttnn-perf/REGRESSED"]


@pytest.fixture
def slower(project: Project) -> Project:
    """Return a project whose test has become slower."""
    write_latency(project, 10.0)
    project.pytest("--ttnn-perf-update=new")
    write_latency(project, 20.0)
    return project


def test_issue_stands_at_the_line_of_the_test(
    slower: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_PROJECT_DIR", str(slower.path.parent))

    slower.pytest("--ttnn-perf", "--ttnn-perf-gitlab=out/quality.json")

    (issue,) = regressions((slower.path / "out/quality.json").read_text())
    source = (slower.path / "test_model.py").read_text().splitlines()
    line = source.index("@pytest.mark.ttnn_perf") + 1
    path = f"{slower.path.name}/test_model.py"
    assert issue["location"] == {"path": path, "lines": {"begin": line}}
    assert issue["severity"] == "major"


def test_nothing_wrong_is_an_empty_list(project: Project) -> None:
    project.write(test_plain="def test_plain(): pass")
    (project.path / "quality.json").write_text("earlier")

    project.pytest("--ttnn-perf", "--ttnn-perf-gitlab=quality.json")

    assert json.loads((project.path / "quality.json").read_text()) == []
