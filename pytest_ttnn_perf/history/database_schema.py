"""The tables of a history database, its views for others, and how it gets from version to version.

Tables are ours, and change with versions; the views ``perf_runs`` and ``perf_values`` keep their
columns.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    func,
    insert,
    inspect,
    select,
    text,
)

from pytest_ttnn_perf import __version__
from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf.records.database_url import INSTALL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection

#: The version that this code reads and writes.
VERSION: Final = 1
#: What brings a database from the version before to one; a new database starts with the last.
STEPS: Final[Mapping[int, Callable[[Connection], None]]] = {}

TABLES: Final = MetaData()
#: In SQLite, only this type counts up by itself.
_Number = BigInteger().with_variant(Integer, "sqlite")


def _table(name: str, *columns: Column[Any] | UniqueConstraint | Index, **more: Any) -> Table:
    return Table(f"ttnn_perf_{name}", TABLES, *columns, **more)


def _number(name: str) -> Column[int]:
    return Column(name, _Number, primary_key=True)


def _dimension(name: str, *columns: Column[Any]) -> Table:
    """Return a table of what is said once; its rows are found by the digest of all they say.

    Texts of any length are no index: PostgreSQL takes some 2,700 bytes.
    """
    digest = Column("digest", Text, nullable=False, unique=True)
    return _table(name, _number("id"), digest, *columns)


def _of(table: str, *, optional: bool = False) -> Column[int]:
    """Return a column that refers to the row of a table."""
    return Column(f"{table}_id", _Number, ForeignKey(f"ttnn_perf_{table}.id"), nullable=optional)


def _part_of(table: str) -> Column[int]:
    """Return such a column that is also what rows are found by."""
    row = ForeignKey(f"ttnn_perf_{table}.id")
    return Column(f"{table}_id", _Number, row, primary_key=True, autoincrement=False)


SCHEMA: Final = _table(
    "schema",
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("written_by", Text, nullable=False),
    Column("written_s", Double, nullable=False),
)
TEST: Final = _dimension("test", Column("name", Text, nullable=False))
KEY: Final = _dimension("key", Column("name", Text, nullable=False))
HOST: Final = _dimension("host", Column("name", Text, nullable=False))
#: A configuration, as JSON.
SETTING: Final = _dimension("setting", Column("content", Text, nullable=False))
#: What changes without a commit; ``content`` is all of it, the others are what is often asked for.
SOFTWARE: Final = _dimension(
    "software",
    Column("content", Text, nullable=False),
    *(Column(name, Text) for name in ("ttnn", "firmware", "driver", "kernel")),
)
METRIC: Final = _dimension(
    "metric",
    *(Column(name, Text, nullable=False) for name in ("name", "unit", "better", "kind", "source")),
)
COMMIT: Final = _dimension(
    "commit", Column("name", Text, nullable=False), Column("committed_at", Text)
)
#: Parents need not be commits that a run was made of.
PARENT: Final = _table(
    "parent",
    _part_of("commit"),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("parent", Text, nullable=False),
)
SERIES: Final = _dimension("series", *map(_of, ("test", "metric", "key", "setting")))
#: ``digest`` is of what was measured: one name with two of them is two runs. ``environment`` is all
#: of the record's, as JSON. ``started_s`` is None for a time that cannot be read.
RUN: Final = _table(
    "run",
    _number("id"),
    Column("run", Text, nullable=False),
    Column("shard", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("started_s", Double),
    Column("sent_s", Double, nullable=False),
    _of("host"),
    _of("commit", optional=True),
    Column("branch", Text),
    Column("pull_request", Text),
    Column("dirty", Boolean),
    Column("label", Text),
    Column("complete", Boolean, nullable=False),
    _of("software"),
    Column("environment", Text, nullable=False),
    UniqueConstraint("run", "shard", "attempt"),
    Index("ttnn_perf_run_by_time", "started_s"),
)
#: ``baseline``, ``change`` and ``change_limit`` are those of the verdict.
OBSERVATION: Final = _table(
    "observation",
    _part_of("run"),
    _part_of("series"),
    Column("value", Double, nullable=False),
    Column("outcome", Text),
    Column("reason", Text),
    Column("baseline", Double),
    Column("change", Double),
    Column("change_limit", Double),
    *(Column(name, Boolean, nullable=False) for name in ("gated", "explains", "written")),
    Index("ttnn_perf_observation_by_series", "series_id", "run_id"),
    sqlite_with_rowid=False,
)
#: The whole records, compressed. They may be gone before their runs are.
RECORD: Final = _table(
    "record",
    _part_of("run"),
    Column("content", LargeBinary, nullable=False),
)

_RUN_COLUMNS: Final = """
    $time AS time, run.run, run.shard, run.attempt, host.name AS host, run.branch,
    run.pull_request, commit_.name AS commit_sha, run.dirty, run.complete, run.label,
    software.ttnn, software.firmware, software.driver, software.kernel"""
_RUN_TABLES: Final = """
    JOIN ttnn_perf_host AS host ON host.id = run.host_id
    JOIN ttnn_perf_software AS software ON software.id = run.software_id
    LEFT JOIN ttnn_perf_commit AS commit_ ON commit_.id = run.commit_id"""
_VIEWS: Final = {
    "perf_runs": f"SELECT {_RUN_COLUMNS} FROM ttnn_perf_run AS run {_RUN_TABLES}",
    "perf_values": f"""SELECT {_RUN_COLUMNS},
    test.name AS test, metric.name AS metric, metric.unit, metric.better, metric.kind,
    metric.source, key_.name AS key, setting.content AS setting, seen.value,
    seen.outcome AS verdict, seen.reason, seen.baseline, seen.change, seen.change_limit,
    seen.gated, seen.explains, seen.written
    FROM ttnn_perf_observation AS seen
    JOIN ttnn_perf_run AS run ON run.id = seen.run_id {_RUN_TABLES}
    JOIN ttnn_perf_series AS series ON series.id = seen.series_id
    JOIN ttnn_perf_test AS test ON test.id = series.test_id
    JOIN ttnn_perf_metric AS metric ON metric.id = series.metric_id
    JOIN ttnn_perf_key AS key_ ON key_.id = series.key_id
    JOIN ttnn_perf_setting AS setting ON setting.id = series.setting_id""",
}
#: Grafana takes times of PostgreSQL as such, and seconds from SQLite.
_TIME: Final = {"postgresql": "to_timestamp(run.started_s)", "sqlite": "run.started_s"}
#: Keeps others from changing the tables meanwhile; any number that nobody else uses.
_LOCK: Final = 7_866_376


class SchemaError(TtnnPerfError):
    """The tables are not those that this version knows; says what to do."""


def check_schema(connection: Connection) -> None:
    """Look whether the tables are those that this version reads.

    Raises:
        SchemaError: there are none, or older or newer ones.
    """
    found = _version(connection)
    if found is None:
        raise SchemaError("it has no history yet: send runs with ttnn-perf history import")
    if found < VERSION:
        problem = f"it has version {found} of the tables, and this reads version {VERSION}: "
        raise SchemaError(f"{problem}sending a run, or ttnn-perf history import, brings it there")


def upgrade(connection: Connection) -> None:
    """Make the tables, or bring those of an older version to this one.

    Raises:
        SchemaError: they are of a newer version.
    """
    if _version(connection) == VERSION:
        return
    if connection.dialect.name == "postgresql":  # SQLite lets one write at a time anyway
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
    found = _version(connection)
    if found == VERSION:  # somebody else was quicker
        return
    for view in reversed(_VIEWS):
        connection.execute(text(f"DROP VIEW IF EXISTS {view}"))
    if found is None:
        TABLES.create_all(connection)
    else:
        for version in range(found + 1, VERSION + 1):
            STEPS[version](connection)
    for name, query in _VIEWS.items():
        time_of = _TIME[connection.dialect.name]
        connection.execute(text(f"CREATE VIEW {name} AS {query.replace('$time', time_of)}"))
    row = {"version": VERSION, "written_by": __version__, "written_s": time.time()}
    connection.execute(insert(SCHEMA).values(row))


def _version(connection: Connection) -> int | None:
    """Return the version of the tables; None where there are none.

    Raises:
        SchemaError: it is newer than this code.
    """
    if not inspect(connection).has_table(SCHEMA.name):
        return None
    newest = select(SCHEMA.c.version, SCHEMA.c.written_by).order_by(SCHEMA.c.version.desc())
    row = connection.execute(newest.limit(1)).one_or_none()
    if row is None:
        return None
    if row.version > VERSION:
        problem = (
            f"it has version {row.version} of the tables, of pytest-ttnn-perf {row.written_by}; "
            f"this is {__version__}, which knows version {VERSION}"
        )
        raise SchemaError(f"{problem}: {INSTALL} --upgrade")
    return int(row.version)
