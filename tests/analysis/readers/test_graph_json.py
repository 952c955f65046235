"""A captured graph: the calls of a program, and what ran and lay in memory in each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.readers.graph import read_graph_json, read_held
from pytest_ttnn_perf.analysis.readers.report_db import BufferType
from pytest_ttnn_perf.core.errors import InputError
from tests.analysis.readers.report_db_tables import function

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.analysis.readers.report_db import Report


def numbered(*nodes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a whole graph: each node has its number."""
    first: dict[str, Any] = {
        "arguments": [],
        "connections": [],
        "node_type": "capture_start",
        "params": None,
    }
    return [{**node, "counter": counter} for counter, node in enumerate([first, *nodes])]


def buffer(kind: str, address: int, size: int | None = None, where: object = 1) -> dict[str, Any]:
    """Return the node of a buffer that comes or goes."""
    params = {"address": address, "buffer_type": where, "device_id": 0, "max_size_per_bank": size}
    return {"node_type": f"buffer_{kind}", "params": params}


def read(folder: Path, document: object) -> Report:
    """Write a document and read it."""
    file = folder / "graph_capture.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return read_graph_json(file)


def test_the_most_that_is_held_at_one_time(tmp_path: Path) -> None:
    file = tmp_path / "graph_capture.json"
    trace = buffer("allocate", 512, 9, 4)
    document = numbered(
        buffer("deallocate", 32, 1000),  # it was there before
        *function("a", buffer("allocate", 64, 100), buffer("allocate", 128, 50),
                  buffer("deallocate", 64, 100), buffer("allocate", 64, 7, 0)),
        trace,
        buffer("deallocate", 512, 9, 4),
        *function("b", buffer("allocate", 192, 30)),
    )  # fmt: skip
    file.write_text(json.dumps({"graph": document}))

    assert read_held(file) == {BufferType.L1: 150, BufferType.DRAM: 7, BufferType.TRACE: 9}

    file.write_text(json.dumps(numbered(buffer("allocate", 64, 100), buffer("allocate", 128))))
    assert read_held(file) == {}


def test_what_belongs_to_a_program_is_not_held_by_the_call(tmp_path: Path) -> None:
    """No tensor lies in the buffers of kernels, nor in that of a trace, which is the call's own."""
    file = tmp_path / "graph_capture.json"
    kinds = {"of a tensor": ([9], 0), "of kernels": ([], 0), "of a trace": ([], 4)}
    nodes = [{"node_type": "buffer", "connections": tensors} for tensors, _ in kinds.values()]
    allocated = [
        {**buffer("allocate", 64 * number, 2**number, where), "connections": [number]}
        for number, (_, where) in enumerate(kinds.values(), start=1)
    ]
    file.write_text(json.dumps(numbered(*nodes, *allocated)))

    assert read_held(file) == {BufferType.DRAM: 2, BufferType.TRACE: 8}


def test_a_report_with_snapshots_and_devices(tmp_path: Path) -> None:
    row = {"buffer_type": 3, "device_id": 1, "max_size_per_bank": 16}
    capture = read(tmp_path, {
        "cluster_descriptor": "",
        "graph": numbered(*function("a", buffer("allocate", 64, 100))),
        "per_operation_buffers": {"1": [row, row]},
        "devices": [{"device_id": 1, "cb_limit": 5}],
    })  # fmt: skip
    assert capture.operations[0].bytes_per_bank == {BufferType.L1_SMALL: 32}
    assert (capture.devices[0].id, capture.devices[0].cb_limit_bytes) == (1, 5)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("3", "expected a captured graph"),
        ("[]", "expected the calls of a program"),
        ('{"graph": 3}', "['graph']: expected a list, found 3"),
        ('[{"node_type": 1}]', "[0]['node_type']: expected a string"),
        ('[{"node_type": "function_start", "params": {"name": "a"}}]', "['counter']"),
        (numbered(*function("a", buffer("allocate", 1, 2, {}))), "['buffer_type']"),
        ({"graph": numbered(*function("a")), "per_operation_buffers": {"1": [{}]}}, "['type']"),
        ({"graph": numbered(*function("a")), "devices": [{}]}, "['device_id']"),
    ],
)
def test_what_is_refused(tmp_path: Path, document: object, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, document)
    assert problem in str(caught.value)


def tensor(address: int | None, *, memory: str | None = "DRAM", rows: int = 32) -> dict[str, Any]:
    """Return the node of a tensor, on the host without a memory."""
    place = f"memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::{memory}"
    params = {
        "address": address, "device_id": 1, "shape": f"Shape([1, 1, {rows}, 32])",
        "dtype": "DataType::BFLOAT16", "layout": "Layout::TILE", "storage_type": "DEVICE",
        "memory_config": None if memory is None else f"MemoryConfig({place})",
    }  # fmt: skip
    return {"node_type": "tensor", "params": params}


def call(
    name: str, taken: list[dict[str, Any]], given: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a call with one program; links are places in the list, see ``linked``."""
    start, end = function(f"{name}DeviceOperation")
    start = {**start, "takes": len(taken)}
    return function(f"ttnn.{name}", start, *taken, {**end, "gives": len(given)}, *given)


def linked(*nodes: dict[str, Any]) -> list[dict[str, Any]]:
    """Number nodes, and let functions name the tensors that stand after them."""
    whole = numbered(*nodes)
    for node in whole:
        follow = [node["counter"] + 1 + place for place in range(node.pop("takes", 0))]
        given = [node["counter"] + 1 + place for place in range(node.pop("gives", 0))]
        node["input_tensors"] = follow
        node["connections"] = given
    return whole


def test_tensors_are_followed_by_where_they_lie(tmp_path: Path) -> None:
    report = read(
        tmp_path,
        linked(
            *call("matmul", [tensor(64), tensor(128)], [tensor(256, memory="L1")]),
            *call("relu", [tensor(256, memory="L1")], [tensor(None, rows=64)]),
            *call("add", [tensor(None, rows=64), tensor(64), tensor(None, memory=None)],
                  [tensor(256, memory="L1")]),
            *call("exp", [tensor(256, memory="L1"), tensor(None, rows=96)], [tensor(512)]),
        ),
    )  # fmt: skip

    matmul, relu, add, exp = report.operations
    assert (len(matmul.inputs), relu.inputs, exp.inputs) == (2, matmul.outputs, add.outputs)
    assert add.inputs == (*relu.outputs, matmul.inputs[0])  # nothing of the host
    assert add.outputs != matmul.outputs  # another tensor in the same place
    assert [(edge.producer, edge.consumer) for edge in report.edges] == [
        (matmul.id, relu.id), (relu.id, add.id), (add.id, exp.id),
    ]  # fmt: skip
    made = report.tensors[matmul.outputs[0]]
    assert (made.shape, made.dtype, made.layout, made.memory) == (
        (1, 1, 32, 32), "BFLOAT16", "TILE", "L1_INTERLEAVED",
    )  # fmt: skip


def test_what_failed_is_told_as_in_a_report(tmp_path: Path) -> None:
    params = {"error_type": "exception", "error_message": "TT_FATAL @ a\ninfo:\nOut of Memory: x\n"}
    report = read(
        tmp_path, numbered(*function("ttnn.add", {"node_type": "error", "params": params}))
    )

    (error,) = report.errors
    assert (error.operation, error.name, error.kind, error.reason) == (
        1, "ttnn.add", "exception", "Out of Memory: x",
    )  # fmt: skip
