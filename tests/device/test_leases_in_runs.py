"""One run per chip: a second one waits, says for whom, and gives up when it was told to.

Also what the tests of this folder run: a small project of a user's on a machine with the stand-in.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import counts_of, refusal_of
from tests.device.script import Machine, Op, Script
from tests.harness.project import Ran, clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
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
#: Two models that share no op. Their wall times are long, and judged as loosely as can be: no
#: verdict is one about the machine that these tests run on.
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
#: Of the workers only; the suite's own are nobody's business.
PLUGINS = "-p no:hypothesispytest -p no:benchmark -p no:cacheprovider -p no:xdist"
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
            env=self.environment(**variables), capture_output=True, errors="replace", timeout=120,
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
    """Return the lines of the plugin while tests ran; the heading first."""
    return re.findall(r"^ttnn-perf: .*", ran.text, flags=re.MULTILINE)


def sampled(metrics: Mapping[str, Any], *sources: str) -> dict[str, tuple[str, list[float]]]:
    """Return source and samples of the metrics that come from a device."""
    return {
        name: (metric["source"], metric["samples"])
        for name, metric in metrics.items()
        if metric["source"] in sources and not name.endswith("_bytes")
    }


#: Waits inside a test, with the chip, until it is told to go on.
HELD = (
    MODELS
    + """
    @quick
    def test_held(ttnn_perf, device):
        import pathlib, time
        pathlib.Path("held").touch()
        end = time.monotonic() + 60
        while not pathlib.Path("go").exists() and time.monotonic() < end:
            time.sleep(0.05)
        ttnn_perf.measure(ttnn.add, put(device), put(device))
"""
)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[Rig, subprocess.Popen[str]]]:
    """Return a machine, and a run that has its chip until it finds the file ``go``."""
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_models=HELD)
    rig.machine.play(play())
    command = [sys.executable, "-m", "pytest", "--ttnn-perf-passes=wall", *UPDATE, "-k", "held"]
    with subprocess.Popen(
        command, cwd=rig.project, env=rig.environment(), stdout=subprocess.PIPE, text=True
    ) as first:
        try:
            while not (rig.project / "held").exists():
                assert first.poll() is None, first.communicate()[0]
                time.sleep(0.05)
            yield rig, first
        finally:
            first.kill()


def who(first: subprocess.Popen[str]) -> str:
    """Return how the run that holds the chip is named to others, as a pattern."""
    command = re.escape("__main__.py --ttnn-perf-passes=wall --ttnn-perf-update=new")
    return rf"chip 0: held by pid {first.pid} \({command}.*\) since \d{{4}}-\S+Z"


def test_a_second_run_waits_says_so_and_then_runs(
    held: tuple[Rig, subprocess.Popen[str]], tmp_path: Path
) -> None:
    rig, first = held
    command = [
        sys.executable,
        "-u",
        "-m",
        "pytest",
        "--ttnn-perf-passes=wall",
        *UPDATE,
        "-k",
        "sum",
    ]
    with subprocess.Popen(
        command, cwd=rig.project, env=rig.environment(), stdout=subprocess.PIPE, text=True
    ) as second:
        assert second.stdout is not None
        lines = iter(second.stdout.readline, "")
        told = next((line for line in lines if "waiting for" in line), "")
        assert re.fullmatch(f"ttnn-perf: waiting for {who(first)}\n", told), told
        # Nobody else has had the chip meanwhile.
        assert len(rig.machine.journal()) == 1
        (rig.project / "go").touch()
        ended = first.communicate(timeout=60)[0]
        rest = second.communicate(timeout=60)[0]
    assert (first.returncode, counts_of(Ran(0, clean(ended)))) == (0, "1 passed, 2 deselected")
    assert (second.returncode, counts_of(Ran(0, clean(rest)))) == (0, "1 passed, 2 deselected")
    owners = [each["pid"] for each in rig.machine.journal()]
    assert len(set(owners)) == 2
    assert not {first.pid, second.pid} & set(owners)
    holder = tmp_path / "tmp" / "ttnn-perf-locks" / "chip-0.holder"
    assert holder.read_text() == ""


def test_a_run_that_has_waited_long_enough_is_refused_with_who_holds_the_chip(
    held: tuple[Rig, subprocess.Popen[str]],
) -> None:
    rig, first = held
    (rig.project / "ttnn_perf.toml").write_text("lock_timeout = 0\n")

    ran = rig.pytest(None, "--ttnn-perf", "--ttnn-perf-passes=wall", "-k", "sum")

    remedy = "let it end, or name chips that are free in TT_VISIBLE_DEVICES"
    assert re.fullmatch(f"waited 0 s for {who(first)}: {remedy}", refusal_of(ran))
    assert rig.machine.journal() == []
    runs = (rig.project / ".ttnn_perf" / "runs").iterdir()
    assert [file.suffix for file in runs] == [".jsonl"]  # of the first run, which goes on


def test_another_folder_of_locks_is_another_machine(
    held: tuple[Rig, subprocess.Popen[str]], tmp_path: Path
) -> None:
    """Where runs do not see each other's locks, only the driver is left to keep them apart."""
    rig, _ = held
    (rig.project / "ttnn_perf.toml").write_text('lock_timeout = 0\nlock_folder = "locks"\n')

    ran = rig.pytest(
        None, "--ttnn-perf", "--ttnn-perf-passes=wall", "-k", "sum", FAKE_TTNN_PATIENCE="0.1"
    )

    assert ran.code == 1
    assert sorted(path.name for path in (rig.project / "locks").iterdir()) == [
        "chip-0.holder",
        "chip-0.lock",
    ]
    assert "its worker was killed by SIGABRT" in ran.text
    assert (tmp_path / "tmp" / "ttnn-perf-locks" / "chip-0.holder").read_text()
