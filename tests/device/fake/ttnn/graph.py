"""Captured graphs, and the database that is made of them."""

from __future__ import annotations

import enum
import json
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ._tensors import Tensor

_Row = dict[str, Any]
_L1_BANK = 1_395_424
_TABLES = {
    "devices": "device_id, num_compute_cores, num_x_compute_cores, num_y_compute_cores, "
    "worker_l1_size, l1_num_banks, l1_bank_size, total_l1_memory, total_l1_for_tensors, cb_limit",
    "operations": "operation_id, name, duration",
    "operation_arguments": "operation_id, name, value",
    "operation_executions": "execution_id, operation_id, physical_device_id, runtime_id, "
    "global_call_count, command_queue_id",
    "tensors": "tensor_id UNIQUE, shape, dtype, layout, memory_config, device_id, address, "
    "buffer_type, storage_type",
    "input_tensors": "operation_id, input_index, tensor_id",
    "output_tensors": "operation_id, output_index, tensor_id",
    "buffers": "operation_id, device_id, address, max_size_per_bank, buffer_type, buffer_layout",
    "captured_graph": "operation_id, captured_graph",
    "errors": "operation_id, operation_name, error_type, error_message, stack_trace, timestamp",
}


class RunMode(enum.Enum):
    NORMAL = 0


class _State:
    mode: RunMode | None = None


_nodes: list[_Row] = []
_operations: list[_Row] = []


def begin_graph_capture(run_mode: RunMode = RunMode.NORMAL) -> None:
    _State.mode = run_mode
    _nodes.clear()
    _operations.clear()
    _node("capture_start", 0)


def end_graph_capture() -> list[_Row]:
    _node("capture_end", 0)
    _State.mode = None
    return list(_nodes)


def end_graph_capture_to_file(report_path: str | Path) -> _Row:
    """Write the graph, and beside it what only Python knows of the calls."""
    path = Path(report_path)
    device = {"device_id": 0, "num_compute_cores": 64, "num_x_compute_cores": 8,
              "num_y_compute_cores": 8, "worker_l1_size": 1_499_136, "l1_num_banks": 64,
              "l1_bank_size": _L1_BANK, "total_l1_memory": 64 * 1_499_136,
              "total_l1_for_tensors": 0, "cb_limit": _L1_BANK}  # fmt: skip
    report = {
        "cluster_descriptor": "",
        "devices": [device],
        "graph": end_graph_capture(),
        "metadata": {"version": "0.81.1", "git_sha": "d80d9482a418cf04ddcbeecf6adb67010d3091e6"},
        "version": 1,
    }
    path.write_text(json.dumps(report))
    path.with_suffix(".python_io.json").write_text(json.dumps(_operations))
    return report


def import_report(report_path: str | Path, output_dir: str | Path) -> Path:
    """Make the database of a written graph; an older one at its place is deleted."""
    report = Path(report_path)
    operations = json.loads(report.with_suffix(".python_io.json").read_text())
    (device,) = json.loads(report.read_text())["devices"]
    database = Path(output_dir) / "db.sqlite"
    database.parent.mkdir(parents=True, exist_ok=True)
    database.unlink(missing_ok=True)
    connection = sqlite3.connect(database)
    with connection:
        for table, columns in _TABLES.items():
            connection.execute(f"CREATE TABLE {table} ({columns}, rank int NOT NULL DEFAULT 0)")
        connection.execute("CREATE TABLE report_metadata (key text UNIQUE, value text)")
        connection.execute("INSERT INTO report_metadata VALUES ('schema_version', '3.5')")
        _insert(connection, "devices", device)
        for table, row in (row for operation in operations for row in operation["rows"]):
            _insert(connection, table, row)
    connection.close()
    return database


def _insert(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> None:
    places = ", ".join("?" * len(row))
    command = f"INSERT OR IGNORE INTO {table} ({', '.join(row)}) VALUES ({places})"
    connection.execute(command, list(row.values()))


def record(
    name: str,
    launched: Sequence[tuple[Any, int]],
    inputs: Sequence[Tensor],
    output: Tensor,
    arguments: Mapping[str, object],
) -> None:
    """Take a call into the graph, if one is being captured."""
    if _State.mode is None:
        return
    first = _node("function_start", 1, name=name, inputs=str(len(inputs)))
    for op, _ in launched:
        _node("function_start", 2, name=op.code, inputs=str(len(inputs)))
        cores = f"{{[(x=0,y=0) - (x={max(op.cores // 8, 1) - 1},y=7)]}}"
        _node("circular_buffer_allocate", 2, address="103712", core_range_set=cores,
              device_id="0", globally_allocated="0", size="65536")  # fmt: skip
        _node("circular_buffer_deallocate_all", 2)
        _node("function_end", 2, name=op.code)
    memory = str(_buffer_type(output))
    place = {"device_id": "0", "buffer_type": memory, "address": str(_address(output)),
             "max_size_per_bank": "2048"}  # fmt: skip
    held = _node("buffer", 2, **place)
    _node("buffer_allocate", 2, **place)["connections"].append(held["counter"])
    held["connections"].append(_node("tensor", 1)["counter"])
    last = _node("function_end", 1, name=name)
    last["duration_ns"] = 1000
    number = len(_operations) + 1
    inside = _nodes[first["counter"] : last["counter"] + 1]
    rows = [
        ("operations", {"operation_id": number, "name": name, "duration": 1e-6}),
        ("captured_graph", {"operation_id": number, "captured_graph": json.dumps(inside)}),
        *(("operation_arguments", {"operation_id": number, "name": key, "value": str(value)})
          for key, value in arguments.items()),
        *_tensor_rows(number, "input", inputs),
        *_tensor_rows(number, "output", [output]),
        *(("operation_executions", {"execution_id": 1024 * runtime_id, "operation_id": number,
                                    "runtime_id": runtime_id, "physical_device_id": 0,
                                    "global_call_count": 1024 * runtime_id,
                                    "command_queue_id": 0}) for _, runtime_id in launched),
    ]  # fmt: skip
    _operations.append({"name": name, "at": time.time_ns(), "rows": rows})


def _address(tensor: Tensor) -> int:
    return 1_048_640 + 2048 * tensor.tensor_id


def _buffer_type(tensor: Tensor) -> int:
    return int(tensor.memory_config().name.startswith("L1"))


def _tensor_rows(number: int, side: str, tensors: Sequence[Tensor]) -> list[tuple[str, _Row]]:
    rows: list[tuple[str, _Row]] = []
    for index, tensor in enumerate(tensors):
        operation, identity = {"operation_id": number}, {"tensor_id": tensor.tensor_id}
        place = {
            "device_id": 0,
            "address": _address(tensor),
            "buffer_type": _buffer_type(tensor),
        }
        known = {
            "shape": f"Shape({list(tensor.shape)})",
            "dtype": str(tensor.dtype),
            "layout": str(tensor.layout),
            "memory_config": str(tensor.memory_config()),
            "storage_type": "DEVICE",
        }
        rows += [
            ("tensors", {**identity, **place, **known}),
            (f"{side}_tensors", {**operation, f"{side}_index": index, **identity}),
            ("buffers", {**operation, **place, "max_size_per_bank": 2048, "buffer_layout": 0}),
        ]
    return rows


def _node(kind: str, level: int, **params: str) -> _Row:
    node = {"arguments": [], "connections": [], "counter": len(_nodes), "input_tensors": [],
            "node_type": kind, "params": params, "stacking_level": level}  # fmt: skip
    _nodes.append(node)
    return node
