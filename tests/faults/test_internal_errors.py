"""Errors of ours: told as such, with a code that no verdict has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf import __version__
from tests.harness.project import run_command

if TYPE_CHECKING:
    from tests.faults.conftest import Scene
    from tests.harness.project import Project

#: Breaks something of ours in the process that loads this conftest file.
BREAKING = """
import pytest_ttnn_perf.{module} as module
def broken(*args, **kwargs):
    raise KeyError("a defect")
module.{name} = broken
"""
TEST = """
def test_speed(ttnn_perf):
    ttnn_perf.record("wall_time", 1000, unit="ns")
"""


def test_a_command_says_that_it_is_a_defect_and_what_to_report(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr("pytest_ttnn_perf.cli.records.read_run", broken)
    (scene.project.path / "my baselines").mkdir()
    ran = run_command("gate", "run.json", "--baselines", "my baselines")
    assert (ran.code, ran.text) == (8, "")
    assert ran.errors.startswith("Traceback (most recent call last):\n")
    last = ran.errors[ran.errors.index("KeyError: 'a defect'") :].splitlines()[1:]
    assert last[0].startswith(f"ttnn-perf: internal error, a defect of ttnn-perf {__version__} and")
    assert last[1] == "  the command: ttnn-perf gate run.json --baselines 'my baselines'"
    assert "traceback" in last[2]
    assert last[3].startswith(f"  the versions: ttnn-perf {__version__}, Python 3.")


@pytest.mark.parametrize(
    ("isolate", "module", "name"),
    [
        ("inline", "gate.gated_run", "GateRun.begin"),
        ("inline", "gate.gated_run", "GateRun.judge"),
        ("inline", "gate.gated_run", "GateRun.finish"),
        ("inline", "report.run", "RunResult.summary"),
        ("process", "plugin.worker", "_attach"),
    ],
)
def test_no_hook_of_ours_makes_a_verdict_of_an_internal_error(
    project: Project, isolate: str, module: str, name: str
) -> None:
    project.write(conftest=BREAKING.format(module=module, name=name), test_model=TEST)
    ran = project.pytest_process(
        "--ttnn-perf", "--ttnn-perf-missing=ignore", f"--ttnn-perf-isolate={isolate}"
    )
    assert ran.code == pytest.ExitCode.INTERNAL_ERROR
    assert "INTERNALERROR> KeyError: 'a defect'" in ran.text + ran.errors
