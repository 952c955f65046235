"""Rooms import downwards only; the contracts are in pyproject.toml."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINTER = shutil.which("lint-imports", path=sysconfig.get_path("scripts"))

needs_linter = pytest.mark.skipif(
    LINTER is None, reason="import-linter is not installed: make check runs it"
)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    assert LINTER is not None
    command = [LINTER, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@needs_linter
@pytest.mark.parametrize(
    ("room", "line", "broken"),
    [
        ("gate/judge.py", "import pytest_ttnn_perf.report.terminal", "Rooms import downwards only"),
        (
            "baselines/store.py",
            "def late():\n    from pytest_ttnn_perf.run import gate_run",
            "Rooms import downwards only",
        ),
        ("records/metric.py", "import pytest", "Only the plugin knows pytest"),
        ("observe/series.py", "import pytest_ttnn_perf.gate.judge", "The worker's side"),
    ],
)
def test_an_import_upwards_is_caught(tmp_path: Path, room: str, line: str, broken: str) -> None:
    package = tmp_path / "pytest_ttnn_perf"
    shutil.copytree(
        ROOT / "pytest_ttnn_perf", package, ignore=shutil.ignore_patterns("__pycache__")
    )
    with (package / room).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")

    done = lint(tmp_path)

    assert done.returncode == 1, done.stdout + done.stderr
    assert any(
        text.startswith(broken) and text.rstrip().endswith("BROKEN")
        for text in done.stdout.splitlines()
    ), done.stdout
