"""Real captures of a graph, held against the databases that TTNN made of them."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.captures.graph_json import is_graph_json, read_graph_json
from tests.formats.test_report_db_corpus import CAPTURED, by_id, of, query
from tests.harness.corpus import corpus


@pytest.mark.parametrize("name", CAPTURED)
def test_a_captured_graph_agrees_with_its_database(name: str) -> None:
    file = corpus(f"report_db/{name}/graph_capture.json")
    assert is_graph_json(file.read_text(encoding="utf-8")[:4000])
    python_io = file.with_name("graph_capture.python_io.json").read_text(encoding="utf-8")
    assert not is_graph_json(python_io[:4000])
    capture = {operation.id: operation for operation in read_graph_json(file).operations}
    nodes = query(file.with_name("db.sqlite"), "SELECT operation_id, unique_id FROM nodes")
    report = by_id(of(name))
    compared = 0
    for identity, node in nodes:
        if node in capture:
            own, other = report[identity], capture[node]
            assert own.device_operations == other.device_operations
            assert (own.name, own.fidelity, own.reshard) == (
                other.name,
                other.fidelity,
                other.reshard,
            )
            assert own.cb_bytes_per_core == other.cb_bytes_per_core
            assert own.bytes_per_bank == other.bytes_per_bank
            compared += 1
    assert compared >= len(report) - 2
