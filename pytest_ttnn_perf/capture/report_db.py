"""TTNN's report database, ``db.sqlite``: from the releases without a version to schema 3.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.capture.report_db_file import MAGIC, opened
from pytest_ttnn_perf.capture.report_db_graph import device_of
from pytest_ttnn_perf.capture.report_db_operations import read_operations
from pytest_ttnn_perf.capture.report_db_text import (
    bare_name,
    buffer_type,
    memory_of,
    shape_of,
    shard_of,
)
from pytest_ttnn_perf.model.report import (
    Comparison,
    Device,
    Edge,
    OperationError,
    Report,
    Scope,
    TensorRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_ttnn_perf.capture.report_db_tables import Row, Tables
    from pytest_ttnn_perf.model.report import Operation

#: A message ends with pages of a backtrace; its reason stands at the beginning.
_LONGEST_MESSAGE: Final = 20_000
_DEVICE: Final = (
    "num_compute_cores", "num_x_compute_cores", "num_y_compute_cores", "worker_l1_size",
    "l1_num_banks", "l1_bank_size", "total_l1_memory", "cb_limit",
)  # fmt: skip


def is_report_db(head: bytes) -> bool:
    """Return whether a file begins as an SQLite database does; only its tables can tell more."""
    return head.startswith(MAGIC)


def read_report_db(file: Path, *, rank: int | None = None) -> Report:
    """Read one rank of a report: the lowest where none is asked for.

    The user's sources, which a report may embed, are not read.

    Raises:
        InputError: also for a database that is cut, damaged, still written, or of something else.
    """
    from pytest_ttnn_perf.capture.report_db_tables import Tables

    with opened(file) as connection:
        tables = Tables(file, connection)
        _refuse_other(tables)
        ranks = set().union(*(tables.ranks(name) for name in ("operations", "devices", "errors")))
        if not tables.is_filled("operations") and not tables.is_filled("errors"):
            raise InputError(file, "no operations: nothing was captured")
        if rank is not None and rank not in ranks:
            known = ", ".join(str(known) for known in sorted(ranks))
            raise InputError(file, f"expected rank {rank}, found only {known}")
        tables.lowest = min(ranks)
        tables.rank = tables.lowest if rank is None else rank
        return _report(tables, tuple(sorted(ranks)), tables.rank)


def _refuse_other(tables: Tables) -> None:
    missing = {"operation_id", "name"} - set(tables.columns("operations"))
    if missing:
        found = ", ".join(tables.names[:8]) or "no table"
        expected = f"a table operations with a column {min(missing)}"
        problem = f"not a report of TTNN: expected {expected}, found {found}"
        raise InputError(tables.file, " ".join(problem.split())[:400])


def _report(tables: Tables, ranks: tuple[int, ...], rank: int) -> Report:
    operations = read_operations(tables)
    edges, edges_backwards = _edges(operations)
    details = ("buffer_chunks", "buffer_pages")
    return Report(
        schema_version=_schema_version(tables),
        ranks=ranks,
        rank=rank,
        devices=tuple(_device(row) for row in tables.kept("devices", "device_id", *_DEVICE)),
        operations=operations,
        tensors=_tensors(tables),
        edges=edges,
        edges_backwards=edges_backwards,
        comparisons=tuple(_comparisons(tables)),
        errors=tuple(_errors(tables)),
        has_buffer_details=any(tables.is_filled(table) for table in details),
    )


def _schema_version(tables: Tables) -> str | None:
    # It is the one table that all ranks share.
    rank, tables.rank = tables.rank, tables.lowest
    found = [
        row.text("value")
        for row in tables.kept("report_metadata", "key", "value", longest=100)
        if row.text("key") == "schema_version"
    ]
    tables.rank = rank
    return found[0] if found else None


def _device(row: Row) -> Device:
    return device_of(row.identity("device_id"), row.size)


def _tensors(tables: Tables) -> dict[int, TensorRecord]:
    tensors: dict[int, TensorRecord] = {}
    wanted = (
        "tensor_id", "shape", "dtype", "layout", "device_id", "address", "buffer_type",
        "storage_type", "memory_config",
    )  # fmt: skip
    for row in tables.kept("tensors", *wanted, longest=20_000):
        tensor = _tensor(row)
        if tensor.id in tensors:
            raise InputError(tables.file, f"tensors: tensor {tensor.id} stands twice")
        tensors[tensor.id] = tensor
    return tensors


def _tensor(row: Row) -> TensorRecord:
    config, address = row.text("memory_config"), row.whole("address")
    memory, kind = memory_of(config), row.text("buffer_type")
    # Releases before 3.5 wrote DRAM for whatever had no buffer at all.
    if memory is None and kind is not None and address is not None:
        memory = buffer_type(kind).value
    return TensorRecord(
        id=row.identity("tensor_id"),
        shape=shape_of(row.text("shape")),
        dtype=bare_name(row.text("dtype")),
        layout=bare_name(row.text("layout")),
        memory=memory,
        shard=shard_of(config),
        device=row.whole("device_id"),
        address=address,
        storage=bare_name(row.text("storage_type")),
    )


def _edges(operations: tuple[Operation, ...]) -> tuple[tuple[Edge, ...], tuple[Edge, ...]]:
    edges: list[Edge] = []
    waiting: list[tuple[int, int]] = []
    # An op may give back the tensor it was given, so the last producer so far is the one.
    producers: dict[int, int] = {}
    for operation in operations:
        for tensor in dict.fromkeys(operation.inputs):
            if tensor in producers:
                edges.append(Edge(tensor, producers[tensor], operation.id))
            else:
                waiting.append((tensor, operation.id))
        producers.update(dict.fromkeys(operation.outputs, operation.id))
    backwards = (
        Edge(tensor, producers[tensor], consumer)
        for tensor, consumer in waiting
        if producers.get(tensor, consumer) != consumer
    )
    return tuple(edges), tuple(backwards)


def _comparisons(tables: Tables) -> Iterator[Comparison]:
    wanted = ("tensor_id", "golden_tensor_id", "matches", "desired_pcc", "actual_pcc")
    for scope in Scope:
        for row in tables.kept(f"{scope.value}_tensor_comparison_records", *wanted):
            matches = row.whole("matches")
            yield Comparison(
                scope,
                row.identity("tensor_id"),
                row.whole("golden_tensor_id"),
                None if matches is None else bool(matches),
                row.number("desired_pcc"),
                row.number("actual_pcc"),
            )


def _errors(tables: Tables) -> Iterator[OperationError]:
    wanted = ("operation_id", "operation_name", "error_type", "error_message")
    for row in tables.kept("errors", *wanted, longest=_LONGEST_MESSAGE):
        yield OperationError(
            row.whole("operation_id"),
            row.text("operation_name"),
            row.text("error_type"),
            _reason(row.text("error_message") or ""),
        )


def _reason(message: str) -> str | None:
    """Return the line after ``info:``, where TTNN says what was wrong; else the first line."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    after = lines[lines.index("info:") + 1 :] if "info:" in lines else lines
    return next(iter(after or lines), None)
