"""A project with a stored baseline and the record of its run, to be damaged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.harness.project import Project

MODEL = """
    def test_speed(ttnn_perf):
        ttnn_perf.record("wall_time", [{samples}], unit="{unit}")
"""
#: Where not even root may write.
FORBIDDEN = Path("/sys/kernel")


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

    def write_model(self, *, samples: str = "1000, 1010, 990", unit: str = "ns") -> None:
        """Write the test, with what it records."""
        self.project.write(test_model=MODEL.format(samples=samples, unit=unit))

    def on_disk(self) -> dict[str, bytes | None]:
        """Return every file with its content, and every folder; caches apart."""
        root = self.project.path
        return {
            str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
            for path in sorted(root.rglob("*"))
            if not {"__pycache__", ".pytest_cache"} & set(path.parts)
        }


@pytest.fixture
def scene(project: Project) -> Scene:
    """Return a project after its first run."""
    scene = Scene(project)
    scene.write_model()
    assert project.pytest("--ttnn-perf-update=new", "--ttnn-perf-json=run.json").code == 0
    return scene


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
