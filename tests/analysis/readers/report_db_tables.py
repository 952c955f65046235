"""Small report databases, as the releases of TTNN lay them out."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf.analysis.readers.report_db import read_report_db

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.analysis.readers.report_db import Report

#: Before there was a version: no rank, no storage type, no metadata.
LEGACY = {
    "devices": "device_id int, num_y_compute_cores int, num_x_compute_cores int,"
    " worker_l1_size int, l1_num_banks int, l1_bank_size int, num_compute_cores int,"
    " total_l1_memory int, cb_limit int",
    "operations": "operation_id int UNIQUE, name text, duration float",
    "operation_arguments": "operation_id int, name text, value text",
    "tensors": "tensor_id int UNIQUE, shape text, dtype text, layout text, memory_config text,"
    " device_id int, address int, buffer_type int",
    "input_tensors": "operation_id int, input_index int, tensor_id int",
    "output_tensors": "operation_id int, output_index int, tensor_id int",
    "buffers": "operation_id int, device_id int, address int, max_size_per_bank int,"
    " buffer_type int",
    "buffer_pages": "operation_id int, page_address int, page_size int, buffer_type int",
    "captured_graph": "operation_id int, captured_graph text",
    "errors": "operation_id int, operation_name text, error_type text, error_message text,"
    " stack_trace text, timestamp text",
    "local_tensor_comparison_records": "tensor_id int, golden_tensor_id int, matches bool,"
    " desired_pcc bool, actual_pcc float",
    "global_tensor_comparison_records": "tensor_id int, golden_tensor_id int, matches bool,"
    " desired_pcc bool, actual_pcc float",
}
RANK = ", rank int NOT NULL DEFAULT 0"
#: With a rank on every table but those of the whole report, and chunks in place of pages.
RANKED = {
    **{table: columns + RANK for table, columns in LEGACY.items() if table != "buffer_pages"},
    "operations": "operation_id int, name text, duration float" + RANK,
    "tensors": "rank int NOT NULL DEFAULT 0, storage_type text, buffer_type int, address int,"
    " device_id int, memory_config text, layout text, dtype text, shape text, tensor_id int",
    "buffer_chunks": "operation_id int, chunk_address int, chunk_size int, buffer_type int" + RANK,
    "report_metadata": "key text UNIQUE, value text",
    "source_files": "id INTEGER PRIMARY KEY, path text, contents text",
}


def build(file: Path, schema: Mapping[str, str], /, **tables: Any) -> Path:
    """Write a database with these rows; each is a mapping of its columns."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        for table, columns in schema.items():
            connection.execute(f"CREATE TABLE {table} ({columns})")
        for table, rows in tables.items():
            for row in rows:
                marks = ", ".join("?" * len(row))
                values = list(row.values())
                connection.execute(
                    f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", values
                )
        connection.commit()
    return file


def one_op(name: str = "ttnn.relu", identity: int = 1, **others: object) -> dict[str, object]:
    """Return a row of operations."""
    return {"operation_id": identity, "name": name, "duration": 0.5, **others}


def report_of(folder: Path, schema: Mapping[str, str] = RANKED, /, **tables: Any) -> Report:
    """Write a database, with one op unless others are given, and read it."""
    tables.setdefault("operations", [one_op()])
    return read_report_db(build(folder / "db.sqlite", schema, **tables))


def function(name: str, *inside: dict[str, Any], arguments: Iterable[str] = ()) -> list[Any]:
    """Return the nodes of one call and of what happens in it."""
    start = {"node_type": "function_start", "params": {"name": name}, "arguments": [*arguments]}
    return [start, *inside, {"node_type": "function_end", "params": {"name": name}}]


def circular(size: object, cores: str = "{[0-0 - 7-7]}", **params: object) -> dict[str, Any]:
    """Return the node of a circular buffer."""
    given = {"size": size, "core_range_set": cores, "globally_allocated": "0", **params}
    return {"node_type": "circular_buffer_allocate", "params": given}


RELEASE: dict[str, Any] = {"node_type": "circular_buffer_deallocate_all", "params": {}}


def graph(*nodes: object, identity: int = 1) -> list[dict[str, object]]:
    """Return the rows of captured_graph for one op."""
    text = json.dumps([{"node_type": "capture_start", "params": None}, *nodes])
    return [{"operation_id": identity, "captured_graph": text}]
