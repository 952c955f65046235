"""The tables of a report database, by the names of their columns."""

from __future__ import annotations

import math
import sqlite3
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.model.encoding.value import describe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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

    ``rank`` is None until it is chosen; then rows of other ranks are left out. A table without a
    column for it is of the time when there was one rank, and belongs to the ``lowest``.
    """

    def __init__(self, file: Path, connection: sqlite3.Connection) -> None:
        self.file = file
        self.rank: int | None = None
        self.lowest: int | None = None
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
        without_rank = "rank" not in present
        if not present or (without_rank and self.rank != self.lowest):
            return
        parts = [column if column in present else "NULL" for column in wanted]
        if longest and parts[-1] != "NULL":
            parts[-1] = f"substr({parts[-1]}, 1, {longest + 1})"
        query = f"SELECT {', '.join(parts)} FROM {table} NOT INDEXED"
        if self.rank is not None and not without_rank:
            query += f" WHERE rank = {self.rank}"
        query += f" ORDER BY {order}" if order in present else ""
        places = {column: index for index, column in enumerate(wanted)}
        for values in self._connection.execute(query):
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
        """Return whether there is such a table with a row, of whatever rank."""
        if not self._has(table):
            return False
        query = f"SELECT 1 FROM {table} LIMIT 1"
        return next(self._connection.execute(query), None) is not None
