"""Databases that must be refused, each in one sentence, and never written to."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.report_db import read_report_db
from pytest_ttnn_perf.core.errors import InputError
from tests.analysis.readers.report_db_tables import (
    RANKED,
    build,
    circular,
    function,
    graph,
    one_op,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a good database of several pages."""
    rows = [{"operation_id": 1, "name": str(n), "value": "x" * 200} for n in range(100)]
    return build(tmp_path / "a?b#c%41 d.sqlite", RANKED, operations=[one_op()],
                 operation_arguments=rows)  # fmt: skip


def refusal(file: Path) -> str:
    """Return what is said of a database; it is one line that names the file."""
    with pytest.raises(InputError) as caught:
        read_report_db(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)
    return caught.value.problem


def test_any_name_is_read_and_nothing_is_written_beside_it(file: Path) -> None:
    folder = file.parent
    content = file.read_bytes()
    folder.chmod(0o500)
    file.chmod(0o400)
    try:
        assert len(read_report_db(file).operations[0].arguments) == 100
    finally:
        folder.chmod(0o700)
    assert [path.name for path in folder.iterdir()] == [file.name]
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b"OP CODE,OP TYPE\n", "not an SQLite database"),
        (b"SQLite format 3\x00", "the database is cut off"),
    ],
)
def test_what_is_no_database(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "db.sqlite"
    file.write_bytes(content)
    assert problem in refusal(file)


def test_a_database_of_something_else(tmp_path: Path) -> None:
    file = build(tmp_path / "a.db", {"songs": "title text", "albums": "name text"})
    assert "expected a table operations with columns operation_id and name" in refusal(file)


@pytest.mark.parametrize(
    ("table", "row", "problem"),
    [
        ("operations", {"operation_id": "one"}, "operations.operation_id: expected a whole number"),
        ("operations", {"operation_id": 2, "name": b"\x01"}, "operations.name: expected a text"),
        ("tensors", {"tensor_id": 1.5}, "tensors.tensor_id: expected a whole number, found 1.5"),
        ("local_tensor_comparison_records", {"tensor_id": 1, "actual_pcc": "ok"}, "actual_pcc"),
    ],
)
def test_values_that_cannot_be(
    tmp_path: Path, table: str, row: dict[str, object], problem: str
) -> None:
    tables = {"operations": [one_op()]}
    tables[table] = [*tables.get(table, []), row]
    assert problem in refusal(build(tmp_path / "db.sqlite", RANKED, **tables))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("{}", "expected a list, found an object"),
        ("[{}]", "['node_type']"),
        ('[{"node_type": "function_start"}]', "['params']"),
        ('[{"node_type": "function_start", "params": {"name": 3}}]', "expected a string, found 3"),
        (f'[{{"node_type": "x", "params": {"9" * 5000}}}]', "not valid JSON"),
    ],
)
def test_a_graph_that_is_none(tmp_path: Path, text: str, problem: str) -> None:
    rows = [{"operation_id": 1, "captured_graph": text}]
    file = build(tmp_path / "db.sqlite", RANKED, operations=[one_op()], captured_graph=rows)
    said = refusal(file)
    assert said.startswith("captured_graph of operation 1: ")
    assert problem in said


@pytest.mark.parametrize(
    "node",
    [
        circular("many"),
        circular(10**30),
        circular(1, "{[5-5 - 0-0]}"),
        circular(1, "{[0-0 - 999999-1]}"),
        {"node_type": "circular_buffer_allocate", "params": None},
    ],
)
def test_a_circular_buffer_that_cannot_be(tmp_path: Path, node: dict[str, object]) -> None:
    rows = graph(*function("A", node))
    file = build(tmp_path / "db.sqlite", RANKED, operations=[one_op()], captured_graph=rows)
    assert "captured_graph of operation 1: [2]['params']" in refusal(file)


def test_changes_that_are_not_in_the_file_yet(tmp_path: Path) -> None:
    file = build(tmp_path / "db.sqlite", RANKED, operations=[one_op()])
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("INSERT INTO operations VALUES (2, 'b', 0.1, 0)")
        assert "db.sqlite-wal beside it holds changes" in refusal(file)
    # Closing moves the changes into the file, which keeps its mode.
    assert len(read_report_db(file).operations) == 2
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_expressions_in_a_schema_are_not_run(tmp_path: Path) -> None:
    file = build(tmp_path / "db.sqlite", {"operations": "operation_id int, name text CHECK (1)"})
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("INSERT INTO operations VALUES (1, 'a')")
        connection.execute("PRAGMA writable_schema=ON")
        bomb = "CHECK (length(zeroblob(999999999) || 1) < 0)"
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'CHECK (1)', ?)", (bomb,))
        connection.commit()
    assert read_report_db(file).operations[0].name == "a"
