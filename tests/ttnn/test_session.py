"""Whole runs of the gate over tests that open mock devices with TTNN itself."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.capture.report_db import read_report_db
from tests.ttnn.mock import CLUSTERS, N150, N300, P150_X8, Cluster, environment

if TYPE_CHECKING:
    from pathlib import Path

_CONFTEST = """\
import numpy as np
import pytest
import ttnn


@pytest.fixture(scope="module")
def device():
    device = ttnn.open_device(device_id=0, l1_small_size=24576)
    yield device
    ttnn.close_device(device)


@pytest.fixture
def mesh_device():
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 2))
    yield mesh
    ttnn.close_mesh_device(mesh)


@pytest.fixture
def tensor():
    def on(device):
        ones = ttnn.Tensor(np.ones((1, 1, 64, 64), dtype=np.float32), ttnn.bfloat16)
        return ones.to(ttnn.TILE_LAYOUT).to(device)
    return on
"""
_ON_A_DEVICE = """\
import ttnn


def test_model(ttnn_perf, device, tensor):
    a = tensor(device)

    def model():
        return ttnn.matmul(ttnn.add(a, a), a)

    ttnn_perf.measure(model, sync=lambda: ttnn.synchronize_device(device), warmup=2, iterations=5)
"""
_ON_A_MESH = _ON_A_DEVICE.replace("device", "mesh_device").replace(
    "synchronize_mesh_device", "synchronize_device"
)
TEST = "test_model.py::test_model"


@dataclass(frozen=True, slots=True)
class Session:
    """A run that has ended."""

    code: int
    text: str
    record: dict[str, Any]

    @property
    def test(self) -> dict[str, Any]:
        """What the record says about the one test."""
        test = self.record["tests"][TEST]
        assert isinstance(test, dict)
        return test

    @property
    def metrics(self) -> dict[str, Any]:
        """What it measured, by the names of the metrics."""
        metrics = self.test["metrics"]
        assert isinstance(metrics, dict)
        return metrics


def gate(folder: Path, cluster: Cluster, source: str, *arguments: str) -> Session:
    """Run the gate over one file with one test, in a project of its own."""
    home = folder / "home"
    home.mkdir()
    (home / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    (home / "test_model.py").write_text(source, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
    ]
    options = ["--ttnn-perf", "--ttnn-perf-missing=ignore", "--ttnn-perf-json=record.json"]
    done = subprocess.run(
        [*command, *options, *arguments],
        cwd=home,
        env=environment(folder, cluster),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    text = done.stdout + done.stderr
    assert (home / "record.json").exists(), text[-6000:]
    record = json.loads((home / "record.json").read_text(encoding="utf-8"))
    return Session(done.returncode, text, record)


@pytest.mark.parametrize("isolate", ["inline", "process"])
@pytest.mark.parametrize("cluster", [N150, P150_X8], ids=str)
def test_a_model_on_a_device_is_measured(tmp_path: Path, cluster: Cluster, isolate: str) -> None:
    ran = gate(tmp_path, cluster, _ON_A_DEVICE, f"--ttnn-perf-isolate={isolate}")

    assert ran.code == 0, ran.text[-6000:]
    assert "1 passed" in ran.text
    samples = ran.metrics["wall_time"]["samples"]
    assert len(samples) == 5
    assert min(samples) > 0


@pytest.mark.parametrize("cluster", CLUSTERS, ids=str)
def test_the_key_names_the_system_and_the_configuration_the_device(
    tmp_path: Path, cluster: Cluster
) -> None:
    ran = gate(tmp_path, cluster, _ON_A_DEVICE, "--ttnn-perf-isolate=inline")

    assert ran.code == 0, ran.text[-6000:]
    board = cluster.type.lower()
    assert ran.test["hardware"] == {"arch": cluster.arch, "board": board, "mesh": "1x1"}
    width, height = cluster.grid
    assert ran.test["configuration"]["grid"] == f"{width}x{height}"
    assert ran.test["configuration"]["l1_small_size"] == 24576


def test_a_model_on_a_mesh_has_the_shape_of_the_mesh_in_its_key(tmp_path: Path) -> None:
    ran = gate(tmp_path, N300, _ON_A_MESH)

    assert ran.code == 0, ran.text[-6000:]
    assert ran.metrics["wall_time"]["samples"]
    assert ran.test["hardware"] == {"arch": "wormhole_b0", "board": "n300", "mesh": "1x2"}


def test_the_report_database_of_a_model_is_stored(tmp_path: Path) -> None:
    ran = gate(tmp_path, N150, _ON_A_DEVICE)

    assert ran.code == 0, ran.text[-6000:]
    (database,) = (tmp_path / "home" / ".ttnn_perf").rglob("db.sqlite")
    ops = [op.name for op in read_report_db(database).operations]
    assert ops in (
        ["ttnn.add", "ttnn.matmul"],
        ["BinaryNgDeviceOperation", "MatmulDeviceOperation"],  # without torch
    )


# Room for what the plugin is learning: the preflight finds no Tracy in this build and keeps that;
# the real-time profiler is unavailable here, and the header says why.
