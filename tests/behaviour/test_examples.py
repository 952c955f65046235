"""The examples are run as a user's own tests are, in any clone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from pytest_ttnn_perf.machine.environment import ROOT

REPOSITORY = Path(__file__).parents[2]


def tracked(*places: str) -> list[Path]:
    """Return the files of the repository at these places that a clone has."""
    if (REPOSITORY / ".git").exists():
        command = ["git", "ls-files", "--", *places]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
        return [REPOSITORY / name for name in done.stdout.splitlines()]
    found = [
        path for place in places for path in [REPOSITORY / place, *(REPOSITORY / place).rglob("*")]
    ]
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


def stored(folder: Path) -> dict[str, Any]:
    """Return the baselines of all examples by their tests."""
    files = sorted(folder.rglob("*.json"))
    return {
        name: test for file in files for name, test in json.loads(file.read_text())["tests"].items()
    }


def test_examples_pass_in_a_fresh_clone(tmp_path: Path) -> None:
    files = tracked("baselines", "conftest.py", "examples", "pyproject.toml")
    for file in files:
        copy = tmp_path / file.relative_to(REPOSITORY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    environment = {name: value for name, value in os.environ.items() if name != ROOT}
    command = [sys.executable, "-m", "pytest", "examples", "-q", "-p", "no:cacheprovider"]

    done = subprocess.run(
        [*command, "--ttnn-perf"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "16 tests gated; metrics: 38 WITHIN; 35 recorded only\n" in done.stdout
    assert "TTP006" not in done.stdout  # a busy host has no part in simulated times
    assert stored(tmp_path / "baselines") == stored(REPOSITORY / "baselines")
