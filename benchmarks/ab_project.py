"""A repository whose tests record scripted times, for whole commands of ``ttnn-perf ab``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

#: Each process finds the machine at the speed that its number says; nothing is timed.
_TEST: Final = """
import json, math, os, random
from pathlib import Path

from model import CHANGE

machine = json.loads(Path(os.environ["MACHINE"]).read_text())
count = Path(os.environ["MACHINE"] + ".count")
number = int(count.read_text()) if count.exists() else 0
count.write_text(str(number + 1))


def test_model(ttnn_perf):
    chance = random.Random(f"{machine['seed']} {number}")
    level = machine["drift"] * number + math.log1p(CHANGE) + chance.gauss(0, 0.005)
    samples = [1e7 * math.exp(level + chance.gauss(0, 0.01)) for _ in range(10)]
    ttnn_perf.record("wall_time", samples, unit="ns")
"""


def verdict_of_command(folder: Path, *, change: float, drift: float, seed: str) -> str:
    """Return the verdict of a whole command on code that is slower by ``change``."""
    write_project(folder, change=change, drift=drift, seed=seed)
    done = command_in(folder, "ab", "HEAD", "--format", "json")
    if done.returncode not in {0, 1, 7}:
        return f"exit code {done.returncode}: {done.stderr.strip()}"
    (verdict,) = json.loads(done.stdout)["verdicts"]
    return str(verdict["outcome"])


def write_project(
    folder: Path, *, change: float, drift: float = 0.0, seed: str = "", test: str = _TEST
) -> None:
    """Write a repository whose working tree is slower by ``change`` than what is committed."""
    project = folder / "project"
    project.mkdir()
    machine = json.dumps({"drift": drift, "seed": seed})
    (folder / "machine.json").write_text(machine, encoding="utf-8")
    (project / "test_model.py").write_text(test, encoding="utf-8")
    (project / "model.py").write_text("CHANGE = 0.0\n", encoding="utf-8")
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "Start"]):
        subprocess.run(["git", *who, *words], cwd=project, check=True)
    (project / "model.py").write_text(f"CHANGE = {change}\n", encoding="utf-8")


def command_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ttnn-perf in the repository."""
    environment = {
        **os.environ,
        "MACHINE": str(folder / "machine.json"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p pytest_ttnn_perf.plugin -p no:cacheprovider",
    }
    command = [sys.executable, "-m", "pytest_ttnn_perf.cli.main", *words]
    project = folder / "project"
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
