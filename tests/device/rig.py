"""A small project of a user's on a machine with the stand-in: what the tests of this folder run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from tests.device.script import Machine, Op, Script
from tests.harness.project import Ran, clean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONFTEST = """
    import pytest
    import ttnn

    @pytest.fixture
    def device(request):
        device = ttnn.open_device(device_id=0, **getattr(request, "param", {}))
        yield device
        ttnn.close_device(device)

    @pytest.fixture
    def mesh(request):
        mesh = ttnn.open_mesh_device(ttnn.MeshShape(*request.param))
        yield mesh
        ttnn.close_mesh_device(mesh)
"""
#: Two models that share no op. Their wall times follow from the script, by a clock of their own,
#: and are judged as loosely as can be: what these tests are about is the device.
MODELS = """
    import numpy as np
    import pytest
    import ttnn

    quick = pytest.mark.ttnn_perf(warmup=1, iterations=3, tolerance={"wall_time": 0.9})

    def put(device):
        ones = np.ones((32, 32), np.float32)
        return ttnn.from_torch(ones, layout=ttnn.TILE_LAYOUT, device=device)

    @quick
    def test_dense(ttnn_perf, device):
        x = put(device)
        ttnn_perf.measure(lambda: ttnn.relu(ttnn.matmul(x, x)))

    @quick
    def test_sum(ttnn_perf, device):
        x = put(device)
        ttnn_perf.measure(ttnn.add, x, x)
"""
DENSE, SUM = "test_models.py::test_dense", "test_models.py::test_sum"
KEY = "wormhole_b0-n150-1x1"
OPS = (Op("matmul", 6e6), Op("relu", 5e5), Op("add", 2e6))
UPDATE = ("--ttnn-perf-update=new", "--ttnn-perf-confirm=0")
#: Longer than a worker takes to start, however busy the machine is; what hangs is not waited for.
SILENCE = ("--ttnn-perf-timeout=60", "-p", "time_flies")
#: Of the workers only; the suite's own are nobody's business.
PLUGINS = "-p steady_clock -p no:hypothesispytest -p no:benchmark -p no:cacheprovider -p no:xdist"
_NOT_OURS = ("PYTEST_", "CI", "GITHUB_", "FORCE_COLOR", "PY_COLORS")


def play(**more: Any) -> Script:
    """Return a machine with Tracy, whose host waits for many times as long as its device works."""
    return Script(**{"tracy": True, "wall": 5.0, "ops": OPS, **more})


@dataclass(frozen=True, slots=True)
class Rig:
    """A project of a user's on a machine with the stand-in, all in one folder."""

    path: Path

    @property
    def project(self) -> Path:
        return self.path / "project"

    @property
    def machine(self) -> Machine:
        return Machine(self.path / "machine")

    def write(self, **files: str) -> Rig:
        """Write Python files, named without their suffix."""
        self.project.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (self.project / f"{name}.py").write_text(dedent(text))
        return self

    def copied_to(self, path: Path) -> Rig:
        """Return the same project, with its baselines, on another machine."""
        shutil.copytree(self.project, path / "project")
        return Rig(path)

    def environment(self, **variables: str) -> dict[str, str]:
        """Return variables for a run; chips are leased from this machine alone."""
        (self.path / "devices").mkdir(exist_ok=True)
        (self.path / "devices" / "0").touch()
        (self.path / "tmp").mkdir(exist_ok=True)
        ours = self.machine.environment(
            TTNN_PERF_DEVICES=str(self.path / "devices"), TMPDIR=str(self.path / "tmp")
        )
        ours = {n: v for n, v in ours.items() if not n.startswith(_NOT_OURS)}
        return {**ours, "COLUMNS": "120", "PYTEST_ADDOPTS": PLUGINS, **variables}

    def pytest(self, script: Script | None, *arguments: str, **variables: str) -> Ran:
        """Run pytest on the machine, once it plays the script; its journal starts anew."""
        if script is not None:
            self.machine.play(script)
        (self.machine.path / "journal.jsonl").unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments], cwd=self.project, text=True,
            env=self.environment(**variables), capture_output=True, errors="replace", timeout=300,
            check=False,
        )  # fmt: skip
        return Ran(done.returncode, clean(done.stdout), clean(done.stderr))

    def record(self) -> dict[str, Any]:
        """Return the newest run record."""
        files = (self.project / ".ttnn_perf" / "runs").glob("*.json")
        newest = max(files, key=lambda file: file.stat().st_mtime_ns)
        record: dict[str, Any] = json.loads(newest.read_text())
        return record

    def metrics(self, test: str) -> dict[str, Any]:
        """Return the metrics of a test in the newest record."""
        metrics: dict[str, Any] = self.record()["tests"][test]["metrics"]
        return metrics

    def outcomes(self, test: str) -> dict[str, str]:
        """Return the verdicts of a test in the newest record."""
        verdicts = self.record()["tests"][test]["verdicts"]
        return {name: verdict["outcome"] for name, verdict in verdicts.items()}

    def workers(self) -> list[str]:
        """Return which workers of the last run had the chip, in that order: ``1-device`` ..."""
        logs = [each["variables"]["TT_METAL_LOGS_PATH"] for each in self.machine.journal()]
        return [log.split("/")[-2] for log in logs]


def said(ran: Ran) -> list[str]:
    """Return the lines of the plugin while tests ran; the heading first.

    Without how far a pass is, which only a slow machine comes to say.
    """
    lines = re.findall(r"^(?:ttnn-perf: |confirm ).*", ran.text, flags=re.MULTILINE)
    return [line for line in lines if not line.endswith(" left")]


def sampled(metrics: Mapping[str, Any], *sources: str) -> dict[str, tuple[str, list[float]]]:
    """Return source and samples of the metrics that come from a device."""
    return {
        name: (metric["source"], metric["samples"])
        for name, metric in metrics.items()
        if metric["source"] in sources and not name.endswith("_bytes")
    }
