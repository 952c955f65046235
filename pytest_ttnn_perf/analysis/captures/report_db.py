"""TTNN's report database, ``db.sqlite``: from the releases without a version to schema 3.5."""

from __future__ import annotations

import math
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf._base.files import open_file
from pytest_ttnn_perf.analysis.captures.report_db_graph import (
    device_of,
    edges_of,
    read_operations,
    reason_in,
)
from pytest_ttnn_perf.analysis.captures.report_db_text import (
    bare_name,
    buffer_type,
    memory_of,
    shape_of,
    shard_of,
)
from pytest_ttnn_perf.records.json_value import describe
from pytest_ttnn_perf.records.ttnn_report import (
    Comparison,
    OperationError,
    Report,
    Scope,
    TensorRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class EmptyReportError(InputError):
    """A report of a program that called no op."""


MAGIC: Final = b"SQLite format 3\x00"
_GZIP: Final = b"\x1f\x8b"
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
_HEADER_BYTES: Final = 100


@contextmanager
def open_database(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading; any error of SQLite becomes an InputError."""
    import sqlite3

    try:
        before = _check_file(file)
        # Immutable: no lock, and no file beside this one; the folder may be read-only.
        uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    except OSError as cause:
        raise InputError(file, f"cannot read: {cause.strerror or cause}") from cause
    except (ValueError, sqlite3.Error) as cause:
        raise InputError(file, f"cannot read: {cause}") from cause
    try:
        for setting in ("trusted_schema=OFF", "cell_size_check=ON", "ignore_check_constraints=ON"):
            connection.execute(f"PRAGMA {setting}")
        yield connection
        if _state(file) != before:
            raise InputError(file, "it changed while it was read: wait until it is complete")
    except OSError as cause:
        raise InputError(file, f"cannot read: {cause.strerror or cause}") from cause
    # SQLite's own texts, and names in its schema, need not be UTF-8 in a damaged file.
    except (sqlite3.Error, UnicodeDecodeError) as cause:
        problem = " ".join(f"the database is damaged: {cause}".split())
        raise InputError(file, problem[:300]) from cause
    finally:
        connection.close()


def _state(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _check_file(file: Path) -> tuple[int, int]:
    """Refuse what an immutable view would misread: cut files, and changes that lie elsewhere."""
    with open_file(file) as stream:
        state = _state(file)
        header = stream.read(_HEADER_BYTES)
    if not header:
        raise InputError(file, "the file is empty")
    if header.startswith(_GZIP):
        raise InputError(file, f"packed with gzip: unpack it first, with `gunzip -k {file.name}`")
    if not header.startswith(MAGIC):
        raise InputError(file, "not an SQLite database: it does not begin as one")
    _refuse_cut(file, header, state[0])
    for suffix in ("-wal", "-journal"):
        beside = file.with_name(file.name + suffix)
        if beside.exists() and _has_changes(beside):
            problem = f"{beside.name} beside it holds changes that are not in it yet: "
            raise InputError(file, problem + "wait until its writer has closed it")
    return state


def _refuse_cut(file: Path, header: bytes, size: int) -> None:
    if len(header) < _HEADER_BYTES:
        raise InputError(file, f"the database is cut off: {size} bytes are left")
    page_bytes = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    expected = pages * (65536 if page_bytes == 1 else page_bytes)
    # The count of pages is only to be trusted where it was written with the last change.
    if header[24:28] == header[92:96] and size < expected:
        raise InputError(file, f"the database is cut off: expected {expected} bytes, found {size}")


def _has_changes(beside: Path) -> bool:
    with open_file(beside) as stream:
        begin = stream.read(len(_JOURNAL_MAGIC))
    return begin == _JOURNAL_MAGIC if beside.name.endswith("-journal") else bool(begin)


#: A message ends with pages of a backtrace; its reason stands at the beginning.
_LONGEST_MESSAGE: Final = 20_000
_DEVICE: Final = ("num_compute_cores", "l1_bank_size", "total_l1_memory", "cb_limit")


def is_report_db(head: bytes) -> bool:
    """Return whether a file begins as an SQLite database does; only its tables can tell more."""
    return head.startswith(MAGIC)


def read_report_db(file: Path) -> Report:
    """Read the lowest rank of a report.

    The user's sources, which a report may embed, are not read.

    Raises:
        InputError: also for a database that is cut, damaged, still written, or of something else.
    """
    with open_database(file) as connection:
        tables = Tables(file, connection)
        missing = {"operation_id", "name"} - set(tables.columns("operations"))
        if missing:
            names = ", ".join(tables.names[:8]) or "no table"
            expected = f"a table operations with a column {min(missing)}"
            problem = f"not a report of TTNN: expected {expected}, found {names}"
            raise InputError(file, " ".join(problem.split())[:400])
        ranks = set().union(*(tables.ranks(name) for name in ("operations", "devices", "errors")))
        if not tables.is_filled("operations") and not tables.is_filled("errors"):
            raise EmptyReportError(file, "no operations: nothing was captured")
        tables.rank = min(ranks)
        return _report(tables, tuple(sorted(ranks)))


def _report(tables: Tables, ranks: tuple[int, ...]) -> Report:
    operations = read_operations(tables)
    return Report(
        ranks=ranks,
        rank=ranks[0],
        devices=tuple(
            device_of(row.identity("device_id"), row.size)
            for row in tables.kept("devices", "device_id", *_DEVICE)
        ),
        operations=operations,
        tensors=_tensors(tables),
        edges=edges_of(operations),
        comparisons=tuple(_comparisons(tables)),
        errors=tuple(_errors(tables)),
    )


def _tensors(tables: Tables) -> dict[int, TensorRecord]:
    tensors: dict[int, TensorRecord] = {}
    wanted = (
        "tensor_id", "shape", "dtype", "layout", "device_id", "address", "buffer_type",
        "memory_config",
    )  # fmt: skip
    for row in tables.kept("tensors", *wanted, longest=20_000):
        tensor = _tensor(row)
        if tensor.id in tensors:
            raise InputError(tables.file, f"tensors: tensor {tensor.id} appears twice")
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
    )


def _comparisons(tables: Tables) -> Iterator[Comparison]:
    wanted = ("tensor_id", "desired_pcc", "actual_pcc")
    for scope in Scope:
        for row in tables.kept(f"{scope.value}_tensor_comparison_records", *wanted):
            yield Comparison(
                scope,
                row.identity("tensor_id"),
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
            reason_in(row.text("error_message") or ""),
        )


#: Kept rows of one table; a report of the largest models has some ten thousand.
MOST_ROWS: Final = 2_000_000
#: SQLite counts no further.
LARGEST: Final = 2**63 - 1


class Row(NamedTuple):
    """The wanted columns of one row; a value is None where it, or its column, is missing."""

    file: Path
    table: str
    columns: dict[str, int]
    values: tuple[object, ...]

    def whole(self, column: str) -> int | None:
        """Read a whole number."""
        value = self.values[self.columns[column]]
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            return int(value)
        if isinstance(value, int):
            return value
        raise self.refusal(column, "a whole number")

    def size(self, column: str) -> int | None:
        """Read a whole number that cannot be below zero."""
        value = self.whole(column)
        if value is not None and value < 0:
            raise self.refusal(column, "a size")
        return value

    def identity(self, column: str) -> int:
        """Read a whole number that must be there."""
        value = self.whole(column)
        if value is None:
            raise self.refusal(column, "a whole number")
        return value

    def number(self, column: str) -> float | None:
        """Read a finite number."""
        value = self.values[self.columns[column]]
        if value is None:
            return None
        if isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
        raise self.refusal(column, "a finite number")

    def text(self, column: str) -> str | None:
        """Read a text."""
        value = self.values[self.columns[column]]
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (int, float)):
            return str(value)
        raise self.refusal(column, "a text")

    def refusal(self, column: str, expected: str) -> InputError:
        """Return the error that says what was expected in a column."""
        found = describe(self.values[self.columns[column]])
        return InputError(self.file, f"{self.table}.{column}: expected {expected}, found {found}")


class Tables:
    """The tables of one rank, read row by row.

    ``rank`` is None until it is known; then rows of other ranks are left out. A table without a
    column for it is of the time when there was one rank.
    """

    def __init__(self, file: Path, connection: sqlite3.Connection) -> None:
        self.file = file
        self.rank: int | None = None
        self._connection = connection
        self._kinds = {
            str(name): (str(kind), str(sql))
            for name, kind, sql in connection.execute("SELECT name, type, sql FROM sqlite_master")
            if kind in {"table", "view"}
        }
        self._columns: dict[str, tuple[str, ...]] = {}

    @property
    def names(self) -> list[str]:
        """The names of all tables and views."""
        return sorted(self._kinds)

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a table, in lower case; none if there is no such table."""
        if table not in self._columns:
            self._columns[table] = self._checked_columns(table)
        return self._columns[table]

    def _has(self, table: str) -> bool:
        kind, definition = self._kinds.get(table, ("", ""))
        if kind == "view" or definition[:30].upper().startswith("CREATE VIRTUAL"):
            found = "a view" if kind == "view" else "a virtual one"
            raise InputError(self.file, f"{table}: expected a table with rows, found {found}")
        return bool(kind)

    def _checked_columns(self, table: str) -> tuple[str, ...]:
        if not self._has(table):
            return ()
        if sqlite3.sqlite_version_info >= (3, 33):
            # Rows can be lost in a damaged file without any error at their reading.
            (state,) = next(self._connection.execute(f"PRAGMA quick_check('{table}')"), ("ok",))
            if state != "ok":
                problem = f"the database is damaged: {table}: {state}"
                raise InputError(self.file, " ".join(problem.split())[:300])
        found = self._connection.execute(f"PRAGMA table_info('{table}')")
        return tuple(str(name).lower() for _, name, *_ in found)

    def rows(self, table: str, *wanted: str, order: str = "", longest: int = 0) -> Iterator[Row]:
        """Iterate over rows, in the order of a column if it is there, else as they were written.

        Only the first ``longest`` characters of the last wanted column are read, and one more.
        """
        present = self.columns(table)
        if not present:
            return
        parts = [column if column in present else "NULL" for column in wanted]
        if longest and parts[-1] != "NULL":
            parts[-1] = f"substr({parts[-1]}, 1, {longest + 1})"
        query = f"SELECT {', '.join(parts)} FROM {table} NOT INDEXED"
        if self.rank is not None and "rank" in present:
            query += f" WHERE rank = {self.rank}"
        query += f" ORDER BY {order}" if order in present else ""
        places = {column: index for index, column in enumerate(wanted)}
        for values in self._connection.execute(query):
            yield Row(self.file, table, places, values)

    def sums(self, table: str, *by: str, of: str) -> Iterator[Row]:
        """Iterate over the sums of a column for rows that agree in others; none without them."""
        present = self.columns(table)
        if not {*by, of} <= set(present):
            return
        query = f"SELECT {', '.join(by)}, sum({of}) FROM {table} NOT INDEXED"
        if self.rank is not None and "rank" in present:
            query += f" WHERE rank = {self.rank}"
        places = {column: index for index, column in enumerate((*by, of))}
        for values in self._connection.execute(f"{query} GROUP BY {', '.join(by)}"):
            yield Row(self.file, table, places, values)

    def kept(self, table: str, *wanted: str, order: str = "", longest: int = 0) -> Iterator[Row]:
        """Iterate over rows that will be kept: InputError for more than any report has."""
        rows = self.rows(table, *wanted, order=order, longest=longest)
        for count, row in enumerate(rows):
            if count >= MOST_ROWS:
                raise InputError(self.file, f"{table} has more than {MOST_ROWS} rows")
            yield row

    def ranks(self, table: str) -> set[int]:
        """Return the ranks that occur in a table."""
        if "rank" not in self.columns(table):
            return {0} if self.is_filled(table) else set()
        query = f"SELECT DISTINCT rank FROM {table} LIMIT 100000"
        found = self._connection.execute(query)
        rows = (Row(self.file, table, {"rank": 0}, values) for values in found)
        return {row.identity("rank") for row in rows}

    def is_filled(self, table: str) -> bool:
        """Return whether there is such a table with a row of any rank."""
        if not self._has(table):
            return False
        query = f"SELECT 1 FROM {table} LIMIT 1"
        return next(self._connection.execute(query), None) is not None
