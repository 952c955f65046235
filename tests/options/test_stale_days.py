"""``stale_days``: baselines that are of another time are told, and fail nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, write_latency

if TYPE_CHECKING:
    from tests.harness.project import Project


def stale_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("stale: ")]


@pytest.fixture
def accepted_in_2024(project: Project) -> Project:
    write_latency(project, 12.5)
    assert project.pytest("--ttnn-perf-update=new").code == 0
    file = project.baseline()
    document = json.loads(file.read_text())
    document["tests"]["test_model"]["accepted"]["at"] = "2024-02-29T12:00:00Z"
    file.write_text(json.dumps(document))
    return project


def test_an_old_baseline_is_told(accepted_in_2024: Project) -> None:
    ran = accepted_in_2024.pytest("--ttnn-perf")

    assert ran.code == 0
    assert stale_lines(ran.text) == [
        "stale: 1 baseline older than 180 days, the oldest test_model.py::test_model of 2024-02-29"
    ]
    configure(accepted_in_2024, "stale_days = 100000")
    assert stale_lines(accepted_in_2024.pytest("--ttnn-perf").text) == []
