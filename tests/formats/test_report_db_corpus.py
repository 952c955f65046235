"""Real reports and captures of graphs, held against plain queries of the databases."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.readers.attach import read_captured_call
from pytest_ttnn_perf.analysis.readers.graph import read_held
from pytest_ttnn_perf.analysis.readers.report_db import (
    BufferType,
    is_report_db,
    read_report_db,
)
from pytest_ttnn_perf.core.metric import Source
from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.analysis.readers.report_db import ConvConfig, Operation, Report


CAPTURED = ["cnn_small", "comparison", "mlp_bf16", "mlp_bfp8"]
FILES = [*(f"{name}/db.sqlite" for name in CAPTURED), "linear_legacy.sqlite"]
TYPES = {0: BufferType.DRAM, 1: BufferType.L1, 3: BufferType.L1_SMALL}


@pytest.fixture(params=FILES)
def file(request: pytest.FixtureRequest) -> Path:
    """Return one report after another."""
    return corpus(f"report_db/{request.param}")


def query(file: Path, sql: str) -> list[Any]:
    """Ask the file itself."""
    uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        return connection.execute(sql).fetchall()


def of(name: str) -> Report:
    """Read one of the reports."""
    return read_report_db(corpus(f"report_db/{name}/db.sqlite"))


def by_id(report: Report) -> dict[int, Operation]:
    """Return the operations under their ids."""
    return {operation.id: operation for operation in report.operations}


def conv(report: Report, number: int) -> ConvConfig:
    """Return the configuration of an op that must have one."""
    config = by_id(report)[number].conv
    assert config is not None
    return config


def test_tables_as_they_stand(file: Path) -> None:
    report = read_report_db(file)
    assert is_report_db(file.read_bytes()[:100])
    operations = query(file, "SELECT operation_id, name FROM operations ORDER BY 1")
    assert [(op.id, op.name) for op in report.operations] == operations
    assert report.errors == ()
    for kind in ("input", "output"):
        rows = query(file, f"SELECT operation_id, tensor_id FROM {kind}_tensors ORDER BY rowid")
        got = [(op.id, t) for op in report.operations for t in getattr(op, f"{kind}s")]
        assert sorted(got) == sorted(rows)
    arguments = query(file, "SELECT operation_id, name, value FROM operation_arguments")
    found = {(op.id, name): text for op in report.operations for name, text in op.arguments.items()}
    assert found == {(op, name): text for op, name, text in arguments}
    devices = query(file, "SELECT device_id, num_compute_cores, cb_limit FROM devices")
    got_devices = [(d.id, d.compute_cores, d.cb_limit_bytes) for d in report.devices]
    assert got_devices == devices


def test_tensors_by_plain_text(file: Path) -> None:
    report = read_report_db(file)
    rows = query(
        file, "SELECT tensor_id, shape, dtype, layout, memory_config, address FROM tensors"
    )
    assert len(rows) == len(report.tensors)
    for identity, shape, dtype, layout, memory, address in rows:
        tensor = report.tensors[identity]
        assert tensor.shape == tuple(json.loads(re.sub(r"^.*\(|\)$", "", shape)))
        assert tensor.dtype == dtype.split(".")[-1].upper()
        assert tensor.layout == layout.split(".")[-1].upper()
        assert tensor.address == address
        if memory is None:
            assert (tensor.memory, tensor.shard) == (None, None)
            continue
        words = re.findall(r"(?:TensorMemoryLayout|BufferType)::(\w+)", memory)
        assert tensor.memory == f"{words[1]}_{words[0]}"
        nd = re.search(r"nd_shard_spec=(\{.*?\}\}\].*?\})", memory)
        assert (tensor.shard is None) == (nd is None)
        if nd is not None and tensor.shard is not None:
            spec = json.loads(nd[1])
            assert list(tensor.shard.shape) == spec["shard_shape"]
            corners = [(*c["start"].values(), *c["end"].values()) for c in spec["grid"]]
            assert list(tensor.shard.grid) == corners


def test_memory_by_plain_sums(file: Path) -> None:
    report = read_report_db(file)
    rows = query(file, "SELECT operation_id, buffer_type, sum(max_size_per_bank) FROM buffers"
                 " GROUP BY 1, 2")  # fmt: skip
    got = {(op.id, kind): n for op in report.operations for kind, n in op.bytes_per_bank.items()}
    assert got == {(op, TYPES[kind]): size for op, kind, size in rows}
    for kind in {TYPES[kind] for _, kind, _ in rows}:
        assert report.peak_bytes_per_bank[kind] == max(s for _, k, s in rows if TYPES[k] is kind)


#: Per op of cnn_small: where its input and output lie, and the shard of the output.
HEIGHT, BLOCK, DRAM = "L1_HEIGHT_SHARDED", "L1_BLOCK_SHARDED", "DRAM_INTERLEAVED"
#: Per convolution: sharding, act_block_h_override, double buffers, weights, and what runs inside.
CONVS = [
    (1, "HEIGHT_SHARDED", 32, (True, False), "BFLOAT8_B", "InterleavedToSharded Halo Move Conv2d"),
    (3, "HEIGHT_SHARDED", 64, (False, False), "BFLOAT16", "Halo Move Conv2d"),
    (9, "BLOCK_SHARDED", 0, (False, False), "BFLOAT16", "Halo Conv2d"),
    (11, "HEIGHT_SHARDED", 32, (True, False), "BFLOAT8_B", "Reshard Halo Move Conv2d"),
    (12, "BLOCK_SHARDED", 32, (True, True), "BFLOAT8_B", "Tilize InterleavedToSharded Matmul"),
    (18, None, 0, (False, False), "BFLOAT8_B",
     "InterleavedToSharded Halo Move Conv2d ShardedToInterleaved"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "layout", "height", "double", "weights", "inside"), CONVS)
def test_cnn_convolutions(
    number: int, layout: str | None, height: int, double: object, weights: str, inside: str
) -> None:
    report = of("cnn_small")
    config, operation = conv(report, number), by_id(report)[number]
    assert (config.shard_layout, config.act_block_h_override) == (layout, height)
    assert (config.enable_act_double_buffer, config.enable_weights_double_buffer) == double
    assert (config.weights_dtype, operation.fidelity) == (weights, "HiFi2")
    names = [name.replace("DeviceOperation", "") for name in operation.device_operations]
    assert names == inside.split()
    assert len(operation.inputs) == 1  # weights on the host are no input


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("fast_program_built", {BufferType.DRAM: 8192}),
        ("cnn_8_cores", {BufferType.DRAM: 14336, BufferType.L1: 6656, BufferType.L1_SMALL: 400}),
        # A trace of 20,480 bytes: ten pages of 2,048, each in a bank of its own.
        ("trace_inside", {BufferType.DRAM: 8192, BufferType.TRACE: 2048}),
    ],
)
def test_what_a_call_holds_while_it_runs(name: str, held: dict[BufferType, int]) -> None:
    graph = corpus(f"report_db/{name}/graph_capture.json")

    assert read_held(graph) == held
    told = read_captured_call(graph.with_name("db.sqlite"), graph).metrics
    assert {o.metric.name: o.samples for o in told if o.metric.source is Source.GRAPH} == {
        "l1_added_bytes": (held.get(BufferType.L1, 0),),
        "dram_added_bytes": (held[BufferType.DRAM],),
        "trace_buffer_bytes": (held.get(BufferType.TRACE, 0),),
    }
