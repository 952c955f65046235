"""A project with a stored baseline and the record of its run, to be damaged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.harness.project import Project

#: Where not even root may write.
FORBIDDEN = Path("/sys/kernel")


def model(*, samples: str = "1000, 1010, 990", unit: str = "ns") -> str:
    """Return a test, with what it records."""
    return f"""
        def test_speed(ttnn_perf):
            ttnn_perf.record("wall_time", [{samples}], unit="{unit}")
    """


@dataclass(frozen=True, slots=True)
class Scene:
    """A project whose one test has a baseline and a run record."""

    project: Project

    @property
    def baseline(self) -> Path:
        """The stored baseline of the one test file."""
        return self.project.baseline()

    @property
    def record(self) -> Path:
        """The record of the run that made the baseline."""
        return self.project.path / "run.json"

    def on_disk(self) -> dict[str, bytes | None]:
        """Return every file with its content, and every folder; caches apart."""
        root = self.project.path
        return {
            str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
            for path in sorted(root.rglob("*"))
            if not {"__pycache__", ".pytest_cache"} & set(path.parts)
        }


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder as a project's first run leaves it."""
    folder = tmp_path_factory.mktemp("first_run")
    (folder / "test_model.py").write_text(dedent(model()))
    words = ["--ttnn-perf-update=new", "--ttnn-perf-json=run.json", "--ttnn-perf-isolate=inline",
             "--ttnn-perf-confirm=0", "-p", "no:cacheprovider"]  # fmt: skip
    command = [sys.executable, "-B", "-m", "pytest", *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def scene(project: Project, first_run: Path) -> Scene:
    """Return a project after its first run."""
    shutil.copytree(first_run, project.path, dirs_exist_ok=True)
    return Scene(project)


@pytest.fixture
def forbidden() -> Path:
    """Return a folder that cannot be made; permission bits would not stop root."""
    folder = FORBIDDEN / "nothing"
    if not FORBIDDEN.is_dir():
        pytest.skip(f"no {FORBIDDEN} here, where not even root may write")
    try:
        folder.mkdir()
    except OSError:
        return folder
    folder.rmdir()
    pytest.skip(f"{FORBIDDEN} is writable here")
