"""``key``: what of the hardware baselines are filed under; with the host, machines are apart."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, failure_of, write_latency

if TYPE_CHECKING:
    from tests.harness.project import Project

WITH_HOST = 'key = ["board", "mesh", "host"]'
ARCH = platform.machine()


@pytest.fixture
def model(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose keys name the machine, which is lab7."""
    monkeypatch.setenv("TTNN_PERF_MACHINE", "lab7")
    configure(project, WITH_HOST)
    write_latency(project, 10.0, 10.1)
    return project


def keys(project: Project) -> list[str]:
    """Return the keys that there are baselines of."""
    return sorted(p.name for p in (project.path / "baselines").iterdir() if p.is_dir())


def test_a_baseline_of_another_machine_is_not_comparable(
    model: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.pytest("--ttnn-perf-update=new")
    monkeypatch.setenv("TTNN_PERF_MACHINE", "lab8")
    ran = model.pytest("--ttnn-perf", "--ttnn-perf-json", "run.json")
    assert ran.code == 1
    assert "NOT_COMPARABLE" in ran.text
    assert "only on: host-ARCH-host_lab7" in failure_of(ran)
    assert model.cli("gate", "run.json").code == 1
    accepted = model.cli("baseline", "accept", "run.json")
    assert accepted.code == 0, accepted.errors
    assert keys(model) == [f"host-{ARCH}-host_lab7", f"host-{ARCH}-host_lab8"]
    assert model.cli("gate", "run.json").code == 0
    listed = model.cli("baseline", "list").text
    assert "host-ARCH-host_lab7" in listed
    assert "host-ARCH-host_lab8" in listed
