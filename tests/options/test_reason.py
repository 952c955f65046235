"""``--ttnn-perf-reason`` and ``reason``: kept beside the numbers it explains."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import refusal_of, write_latency

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.mark.parametrize("option", [[], ["--ttnn-perf"]], ids=["idle", "gated"])
def test_reason_without_an_update_is_refused(project: Project, option: list[str]) -> None:
    write_latency(project, 12.5)

    ran = project.pytest(*option, "--ttnn-perf-reason", "more layers")

    assert refusal_of(ran) == (
        "--ttnn-perf-reason explains an update, and nothing is written without one: "
        "add --ttnn-perf-update, or leave it out"
    )


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
