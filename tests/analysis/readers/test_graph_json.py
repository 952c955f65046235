"""A captured graph: the most that a call holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.readers.graph import read_held
from pytest_ttnn_perf.analysis.readers.report_db import BufferType
from pytest_ttnn_perf.core.errors import InputError
from tests.analysis.readers.report_db_tables import function

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("3", "expected a captured graph"),
        ('{"graph": 3}', "['graph']: expected a list, found 3"),
        ('[{"node_type": 1}]', "[0]['node_type']: expected a string"),
        ('[{"node_type": "buffer"}]', "['counter']"),
        (numbered(*function("a", buffer("allocate", 1, 2, {}))), "['buffer_type']"),
    ],
)
def test_what_is_refused(tmp_path: Path, document: object, problem: str) -> None:
    file = tmp_path / "graph_capture.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(InputError) as caught:
        read_held(file)
    assert problem in str(caught.value)
