"""Captures of a graph that TTNN makes here and now, read as the plugin reads them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.readers.graph import read_held
from pytest_ttnn_perf.analysis.readers.report_db import BufferType, read_report_db
from tests.ttnn.mock import N150, P150_X4, Cluster, ask

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.analysis.readers.report_db import Report

#: A capture asks torch for nothing but what its tensors are; there are none here.
_TORCH = """
import types
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.Tensor = type("Tensor", (), {})
"""
#: Three ops, one of which TTNN refuses.
_OPS = """
device = ttnn.open_device(device_id=0)
a, other = tensor(device, 1, 1, 64, 64), tensor(device, 1, 1, 32, 96)
ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.{mode})
{after_begin}
total = ttnn.add(a, a)
product = ttnn.matmul(total, a)
refused = said(ttnn.add, a, other)
still = ttnn.graph.is_graph_capture_active()
ttnn.graph.end_graph_capture_to_file("graph.json")
database = ttnn.graph.import_report("graph.json", "report")
tell(refused=refused, still=still, database=str(database),
     active=ttnn.graph.is_graph_capture_active())
ttnn.close_device(device)
"""
_WITHOUT_TORCH = "ttnn.graph.disable_python_io_recording()"


def _captured(
    folder: Path, *, cluster: Cluster = N150, mode: str = "NORMAL", torch: bool = True
) -> tuple[Report, dict[str, Any]]:
    ops = _OPS.format(mode=mode, after_begin="" if torch else _WITHOUT_TORCH)
    told = ask(folder, cluster, (_TORCH if torch else "") + ops)
    assert "Invalid subtile broadcast type" in told["refused"]
    assert (told["still"], told["active"]) == (True, False)
    assert told["database"] == "report/db.sqlite"
    return read_report_db(folder / "home" / "report" / "db.sqlite"), told


@pytest.mark.parametrize("cluster", [N150, P150_X4], ids=str)
@pytest.mark.parametrize("mode", ["NORMAL", "NO_DISPATCH"])
def test_a_report_holds_what_was_done(tmp_path: Path, cluster: Cluster, mode: str) -> None:
    report, _ = _captured(tmp_path, cluster=cluster, mode=mode)

    add, matmul, refused = report.operations
    assert [op.name for op in report.operations] == ["ttnn.add", "ttnn.matmul", "ttnn.add"]
    assert add.device_operations == ("BinaryNgDeviceOperation",)
    assert matmul.device_operations == ("MatmulDeviceOperation",)
    assert refused.device_operations == ()
    assert matmul.inputs == (add.outputs[0], add.inputs[0])
    (error,) = report.errors
    assert (error.operation, error.name, error.kind) == (refused.id, "ttnn.add", "RuntimeError")
    assert error.reason == "Invalid subtile broadcast type"

    tensors = [report.tensors[number] for number in (*add.inputs, *add.outputs, *matmul.outputs)]
    assert {tensor.shape for tensor in tensors} == {(1, 1, 64, 64)}
    assert {(tensor.dtype, tensor.layout) for tensor in tensors} == {("BFLOAT16", "TILE")}
    assert {tensor.memory for tensor in tensors} == {"DRAM_INTERLEAVED"}
    assert {device.compute_cores for device in report.devices} == {prod(cluster.grid)}
    # One tile of bfloat16 per bank is what a small tensor takes.
    assert add.bytes_per_bank[BufferType.DRAM] == 2048
    assert matmul.bytes_per_bank[BufferType.DRAM] == 4096


def test_kernels_are_not_what_a_call_holds(tmp_path: Path) -> None:
    _captured(tmp_path)

    assert read_held(tmp_path / "home" / "graph.json") == {BufferType.DRAM: 4096}


def test_without_what_python_passed_a_report_has_the_ops_of_the_device(tmp_path: Path) -> None:
    report, _ = _captured(tmp_path, torch=False)

    names = [op.name for op in report.operations]
    assert names == ["BinaryNgDeviceOperation", "MatmulDeviceOperation"]
    add, matmul = report.operations
    assert matmul.inputs == (add.outputs[0], add.inputs[0])
    # An op that is refused before it reaches the device leaves nothing.
    assert report.errors == ()
