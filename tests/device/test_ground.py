"""The users' ground stands while the gate is off."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.device.children import command
from tests.device.ground import ground
from tests.device.script import Machine, Script

if TYPE_CHECKING:
    from pathlib import Path

PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    monkeypatch.delenv("CI", raising=False)
    return ground(tmp_path / "ground")


def test_the_models_run(project: Path, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine")
    machine.play(Script(cluster="N300", chips=2, remote=1))
    ran = command(machine, *PYTEST, "models/mlp", cwd=project)
    assert ran.code == 0, ran.text
    assert "6 passed, 1 skipped" in ran.text
    assert (project / "generated" / "test_reports" / "most_recent_tests.xml").exists()
    assert len(machine.journal()) == 1


def test_a_test_that_profiles_in_a_child(project: Path, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine")
    machine.play(Script(tracy=True))
    ran = command(machine, *PYTEST, "models/perf", cwd=project)
    assert ran.code == 0, ran.text + ran.errors
    (owner,) = machine.journal()
    assert owner["variables"]["TT_METAL_DEVICE_PROFILER"] == "1"


def test_a_failing_device_is_noted_by_the_teardown_of_the_project(
    project: Path, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "machine")
    machine.play(Script(noise=float("nan")))
    ran = command(machine, *PYTEST, "models/mlp/tests/test_mlp_traced.py", cwd=project)
    assert ran.code == 1, ran.text
    noted = (project / "generated" / "resets.txt").read_text()
    assert noted == "models/mlp/tests/test_mlp_traced.py::test_mlp_traced[device_params0] [0]\n"
