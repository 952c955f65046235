"""Whole runs of the gate over tests that open mock devices with TTNN itself."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

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


def gate(folder: Path, cluster: Cluster | None, source: str, *arguments: str) -> Session:
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
        timeout=300,
        check=False,
    )
    text = done.stdout + done.stderr
    file = home / "record.json"  # a run that is refused leaves none
    record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return Session(done.returncode, text, record)


@pytest.mark.parametrize("isolate", ["inline", "process"])
@pytest.mark.parametrize("cluster", [N150, P150_X8], ids=str)
def test_a_model_on_a_device_is_measured(tmp_path: Path, cluster: Cluster, isolate: str) -> None:
    ran = gate(tmp_path, cluster, _ON_A_DEVICE, f"--ttnn-perf-isolate={isolate}")

    assert ran.code == 0, ran.text[-6000:]
    assert "1 passed" in ran.text
    wall_time = ran.metrics["wall_time"]
    assert len(wall_time["samples"]) == 5
    assert min(wall_time["samples"]) > 0
    assert wall_time["gated"] is False
    assert "report_op_count" in ran.test["verdicts"]


@pytest.mark.parametrize("cluster", CLUSTERS, ids=str)
def test_the_key_names_the_system_and_the_configuration_the_device(
    tmp_path: Path, cluster: Cluster
) -> None:
    ran = gate(tmp_path, cluster, _ON_A_DEVICE, "--ttnn-perf-isolate=inline")

    assert ran.code == 0, ran.text[-6000:]
    board = cluster.type.lower()
    assert ran.test["hardware"] == {
        "arch": cluster.arch, "board": board, "mesh": "1x1", "simulated": True,
    }  # fmt: skip
    width, height = cluster.grid
    assert ran.test["configuration"]["grid"] == f"{width}x{height}"
    assert ran.test["configuration"]["l1_small_size"] == 24576


def test_a_model_on_a_mesh_has_the_shape_of_the_mesh_in_its_key(tmp_path: Path) -> None:
    ran = gate(tmp_path, N300, _ON_A_MESH)

    assert ran.code == 0, ran.text[-6000:]
    assert ran.metrics["wall_time"]["samples"]
    assert ran.test["hardware"] == {
        "arch": "wormhole_b0", "board": "n300", "mesh": "1x2", "simulated": True,
    }  # fmt: skip


#: A model whose weights have some columns, in tiles, and which converts what it gives.
_WITH_WEIGHTS = """\
import ttnn


def test_model(ttnn_perf, device, tensor):
    a = tensor(device)
    weights = ttnn.concat([tensor(device)] * {columns}, dim=3)

    def model():
        x = ttnn.matmul(a, weights)
        for _ in range({trips}):
            x = ttnn.to_layout(ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT), ttnn.TILE_LAYOUT)
        return x

    ttnn_perf.measure(model, warmup=1, iterations=2)
"""


def test_larger_weights_and_more_calls_fail_by_name(tmp_path: Path) -> None:
    update = ("--ttnn-perf-update=new", "--ttnn-perf-confirm=0")
    first = gate(tmp_path, N150, _WITH_WEIGHTS.format(columns=1, trips=0), *update)
    assert first.code == 0, first.text[-6000:]
    kept = tmp_path / "home" / "baselines"
    assert (kept / "wormhole_b0-n150-1x1-sim" / "test_model.json").is_file()
    assert first.metrics["dram_resident_bytes"]["samples"] == [2 * 64 * 64 * 2]
    later = tmp_path / "later"
    later.mkdir()

    changed = gate(
        later, N150, _WITH_WEIGHTS.format(columns=2, trips=1), f"--ttnn-perf-baselines={kept}"
    )

    assert changed.code == 1
    assert changed.metrics["dram_resident_bytes"]["samples"] == [3 * 64 * 64 * 2]
    grown = "dram_resident_bytes 50.0 % higher, limit 2.0 % (24.00 KiB, baseline 16.00 KiB)"
    assert grown in changed.text
    assert "report_op_count 200.0 % higher, none allowed (3, baseline 1)" in changed.text
    names = changed.test["verdicts"]["report_op_count"]["detail"]
    assert "ilize" in names or "2 ttnn.to_layout" in names  # without torch, what devices run


def test_the_hardware_check_holds_on_a_mock_device(tmp_path: Path) -> None:
    main = "import sys; from pytest_ttnn_perf.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", main, "hardware-check", "--out", "out"], cwd=tmp_path,
        env=environment(tmp_path, N150), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    steps = json.loads((tmp_path / "out" / "bundle.json").read_text())["steps"]
    held = [step["name"] for step in steps if step["held"]]
    expected = ("record", "memory", "same model", "planted slow-down", "planted hang")
    assert [name for name in expected if name not in held] == []
    assert not [step for step in steps if step["held"] is False]
