"""``--ttnn-perf-reason`` and ``reason``: kept beside the numbers it explains."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import write_latency

if TYPE_CHECKING:
    from tests.harness.project import Project


def reason_of(project: Project) -> object:
    """Return the stored reason."""
    return project.stored()["test_model"]["accepted"]["reason"]


@pytest.mark.parametrize("what", ["new", "improved", "all"])
def test_reason_is_stored_with_every_kind_of_update(project: Project, what: str) -> None:
    write_latency(project, 12.5)

    project.pytest(f"--ttnn-perf-update={what}", "--ttnn-perf-reason", 'it\'s "faster" – ü')

    assert reason_of(project) == 'it\'s "faster" – ü'


def test_reason_stands_beside_time_commit_and_ttnn(project: Project) -> None:
    project.run("git", "init", "-q")
    identity = ["-c", "user.name=me", "-c", "user.email=me@here"]
    project.run("git", *identity, "commit", "-q", "--allow-empty", "-m", "first")
    commit = project.run("git", "rev-parse", "HEAD").text
    write_latency(project, 12.5)

    project.pytest("--ttnn-perf-update=new")

    accepted = project.stored()["test_model"]["accepted"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", accepted.pop("at"))
    assert "python" in accepted.pop("environment")
    assert accepted == {"commit": commit[:12], "reason": None, "ttnn": None}
