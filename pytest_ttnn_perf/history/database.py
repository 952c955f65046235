"""History database: send, read, export and prune runs.

Errors are told in words without secrets. The only place that imports SQLAlchemy.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
import zlib
from collections import defaultdict
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    delete,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from pytest_ttnn_perf import __version__
from pytest_ttnn_perf.core.codec import Value, decode, decode_known, encode
from pytest_ttnn_perf.core.errors import DecodeError, TtnnPerfError
from pytest_ttnn_perf.core.files import LARGEST_RECORD_BYTES, parse_json
from pytest_ttnn_perf.core.hardware import Environment
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import Outcome, Reason, Verdict, decode_run
from pytest_ttnn_perf.core.settings import INSTALL, POSTGRESQL
from pytest_ttnn_perf.core.text import visible
from pytest_ttnn_perf.history.runs import (
    Reading,
    RecordedRun,
    RecordFile,
    arranged,
    recorded_run,
    seconds_of,
)
from pytest_ttnn_perf.report.run import run_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import Connection, Engine

    from pytest_ttnn_perf.core.observation import Run
    from pytest_ttnn_perf.core.settings import DatabaseUrl
    from pytest_ttnn_perf.history.runs import RunHistory, RunSelection

    Row = dict[str, Any]

T = TypeVar("T")

#: The version of the tables below. A database of another one is refused.
VERSION: Final = 4
#: Keeps others from making the tables meanwhile; any number that nobody else uses.
_LOCK: Final = 7_866_376
#: How long a lock of SQLite is waited for, or a server that takes no connection.
_WAIT_S: Final = 30
#: How long a server may take for one statement; inserting a run takes a fraction of a second.
_STATEMENT_MS: Final = 60_000
#: So many values are asked for at once; older SQLites take 999.
_CHUNK: Final = 500
#: A longer name of a run is cut: an index takes some 2,700 bytes.
_LONGEST_NAME: Final = 200
#: What a column of whole numbers holds.
_LARGEST: Final = 2**31 - 1

_TABLES: Final = MetaData()
#: In SQLite, only this type counts up by itself.
_Number = BigInteger().with_variant(Integer, "sqlite")


def _columns(kind: Any, *names: str, optional: bool = False) -> Iterator[Column[Any]]:
    return (Column(name, kind, nullable=optional) for name in names)


def _run_id() -> Column[int]:
    row = ForeignKey("ttnn_perf_run.id")
    return Column("run_id", _Number, row, primary_key=True, autoincrement=False)


_SCHEMA: Final = Table(
    "ttnn_perf_schema",
    _TABLES,
    Column("version", Integer, primary_key=True, autoincrement=False),
    *_columns(Text, "written_by"),
)
#: ``environment`` and ``software`` are JSON. ``started_s`` is None for a time that cannot be read.
RUN: Final = Table(
    "ttnn_perf_run",
    _TABLES,
    Column("id", _Number, primary_key=True),
    *_columns(Text, "run", "shard"),
    *_columns(Integer, "attempt"),
    *_columns(Text, "started_at", "environment", "software"),
    *_columns(Text, "label", optional=True),
    *_columns(Boolean, "complete"),
    *_columns(Double, "started_s", optional=True),
    *_columns(Double, "sent_s"),
    UniqueConstraint("run", "shard", "attempt"),
)
#: Texts as far as ``setting``, which is JSON, say of what a number is. ``baseline``, ``change`` and
#: ``change_limit`` are those of the verdict.
_OBSERVATION: Final = Table(
    "ttnn_perf_observation",
    _TABLES,
    _run_id(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    *_columns(Text, "test", "metric", "unit", "better", "kind", "source", "key", "setting"),
    *_columns(Double, "value"),
    *_columns(Text, "outcome", "reason", optional=True),
    *_columns(Double, "baseline", "change", "change_limit", optional=True),
    *_columns(Boolean, "gated", "explains", "written"),
)
#: The whole records, compressed.
_RECORD: Final = Table("ttnn_perf_record", _TABLES, _run_id(), *_columns(LargeBinary, "content"))


class HistoryError(TtnnPerfError):
    """A database that cannot be used; without the password of its URL."""

    def __init__(self, url: DatabaseUrl, problem: str) -> None:
        super().__init__(visible(f"{url}: {problem}"))


class Database:
    """A database, in which work is done in transactions of its own."""

    def __init__(self, url: DatabaseUrl) -> None:
        self.url = url
        #: By whether they write; statements are compiled once for each.
        self._engines: dict[bool, Engine] = {}
        self._is_current = False

    def read(self, work: Callable[[Connection], T]) -> T:
        if self.url.file is not None and not self.url.file.exists():
            raise HistoryError(self.url, "expected a database, found nothing")
        return self._work(work, writes=False)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in one transaction; create the tables first."""
        return self._work(work, writes=True)

    def _work(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        if writes not in self._engines:
            self._engines[writes] = self._new_engine(writes=writes)
        for is_last in (False, True):
            try:
                with self._engines[writes].begin() as connection:
                    if connection.dialect.name == "postgresql":
                        limit = f"SET LOCAL statement_timeout = {_STATEMENT_MS}"
                        connection.execute(text(limit))
                    if not self._is_current:
                        self._check_version(connection, writes=writes)
                    done = work(connection)
            except SQLAlchemyError as error:
                # Somebody else wrote the same row meanwhile: now it can be seen.
                if isinstance(error, IntegrityError) and not is_last:
                    continue
                # The chain of causes may have secrets in it.
                raise HistoryError(self.url, _problem(error, self.url)) from None
            self._is_current = True
            return done
        raise AssertionError

    def _check_version(self, connection: Connection, *, writes: bool) -> None:
        """Check the version of the tables, or create them."""
        found = _version(connection)
        if found is None and writes:
            if connection.dialect.name == "postgresql":  # SQLite lets one write at a time anyway
                connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
                found = _version(connection)
            if found is None:
                _TABLES.create_all(connection)
                row = {"version": VERSION, "written_by": __version__}
                connection.execute(insert(_SCHEMA), row)
                return
        if found is None:
            problem = "it has no history yet: send runs with ttnn-perf history import"
            raise HistoryError(self.url, problem)
        if found.version != VERSION:
            remedy = "take a new database, and send the records with ttnn-perf history import"
            problem = (
                f"it has version {found.version} of the tables, of pytest-ttnn-perf "
                f"{found.written_by}; this is {__version__}, which knows version {VERSION}: "
                f"{INSTALL + ' --upgrade' if found.version > VERSION else remedy}"
            )
            raise HistoryError(self.url, problem)

    def _new_engine(self, *, writes: bool) -> Engine:
        url, new_engine = self.url, partial(create_engine, poolclass=NullPool, hide_parameters=True)
        if url.file is None:
            usual = {
                "connect_timeout": str(_WAIT_S),
                "tcp_user_timeout": str(_STATEMENT_MS // 2),
                "application_name": "ttnn-perf",
            }
            server = make_url(url.server)
            return new_engine(server.set(drivername=POSTGRESQL, query={**usual, **server.query}))
        engine = new_engine("sqlite://", creator=lambda: self._open_file(writes=writes))
        # A transaction that reads first and then writes cannot wait for another one.
        begin = "BEGIN IMMEDIATE" if writes else "BEGIN"
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return engine

    def _open_file(self, *, writes: bool) -> sqlite3.Connection:
        mode = "rwc" if writes else "rw"
        place = f"file:{quote(str(self.url.file))}?mode={mode}"
        return sqlite3.connect(place, uri=True, timeout=_WAIT_S, isolation_level=None)


def _problem(error: SQLAlchemyError, url: DatabaseUrl) -> str:
    told = str(error.orig if isinstance(error, DBAPIError) else error)
    if "file is not a database" in told:
        return "expected a database of SQLite, found another file"
    lines = told.strip().splitlines()
    return url.without_secrets(lines[0].strip() if lines else type(error).__name__)


def _version(connection: Connection) -> Any:
    if not inspect(connection).has_table(_SCHEMA.name):
        return None
    newest = select(_SCHEMA.c.version, _SCHEMA.c.written_by).order_by(_SCHEMA.c.version.desc())
    return connection.execute(newest).first()


def _chunks(items: Iterable[Any]) -> Iterator[list[Any]]:
    every = iter(items)
    while chunk := list(islice(every, _CHUNK)):
        yield chunk


def send(
    database: Database, run: Run, source: RecordFile | StoredRecord, *, text: str | None = None
) -> bool:
    """Send a run; return False if it is there already.

    A run that was sent before it was over is replaced by the whole one. ``text`` is its record, if
    it was written before.
    """
    record = run_text(run) if text is None else text
    # Digits of samples are not worth a longer search.
    packed = zlib.compress(record.encode("utf-8", "backslashreplace"), 3)
    recorded = recorded_run(source, run)
    row = _run_row(recorded, run.id or f"unnamed-{_digest(record)}")
    return database.write(partial(_write, recorded, row, packed))


def send_run(url: DatabaseUrl, run: Run, record: Path, text: str | None) -> None:
    send(Database(url), run, RecordFile(record), text=text)


def _run_row(run: RecordedRun, name: str) -> Row:
    environment = run.environment
    return {
        "run": _name(name),
        "shard": _name(environment.shard or ""),
        "attempt": max(-_LARGEST, min(environment.attempt or 0, _LARGEST)),
        "started_at": _clean(run.at),
        "started_s": seconds_of(run.at),
        "label": None if run.label is None else _clean(run.label),
        "complete": run.complete,
        "environment": json.dumps(encode(environment)),
        "software": json.dumps(dict(run.software)),
    }


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _clean(text: str) -> str:
    """Escape NUL and lone surrogates, which databases refuse."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", r"\x00")


def _name(text: str) -> str:
    name = _clean(text)
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}-{_digest(text)}"


def _write(run: RecordedRun, row: Row, record: bytes, connection: Connection) -> bool:
    """Insert a run unless it exists."""
    names = (RUN.c[name] == row[name] for name in ("run", "shard", "attempt"))
    found = connection.execute(select(RUN.c.id, RUN.c.complete).where(*names)).first()
    if found is not None:
        if found.complete or not run.complete:
            return False
        _delete_runs(connection, [found.id])
    new = insert(RUN).returning(RUN.c.id)
    number = connection.execute(new, {**row, "sent_s": time.time()}).scalar_one()
    rows = [_observation(number, place, reading) for place, reading in enumerate(run.readings)]
    if rows:
        connection.execute(insert(_OBSERVATION), rows)
    connection.execute(insert(_RECORD), {"run_id": number, "content": record})
    return True


def _observation(run: int, place: int, reading: Reading) -> Row:
    metric, verdict = reading.metric, reading.verdict
    definition = (metric.name, metric.unit, metric.better.value, metric.kind.value)
    texts = (reading.test, *definition, metric.source.value, reading.key)
    setting = dict(reading.setting)
    judged: tuple[Any, ...] = (None,) * 5
    if verdict is not None:
        reason = verdict.reason.value if verdict.reason else None
        judged = (verdict.outcome.value, reason, verdict.centre, verdict.change, verdict.limit)
    values = (
        *(run, place, *map(_clean, texts), json.dumps(setting), reading.value),
        *(*judged, reading.gated, reading.explains, reading.written),
    )
    return dict(zip(_OBSERVATION.c.keys(), values, strict=True))


def _delete_runs(connection: Connection, numbers: Iterable[int]) -> None:
    for chunk in _chunks(numbers):
        for table in (_OBSERVATION, _RECORD):
            connection.execute(delete(table).where(table.c.run_id.in_(chunk)))
        connection.execute(delete(RUN).where(RUN.c.id.in_(chunk)))


class StoredRecord(Struct, frozen=True):
    """The record of a run in a database, named as its file."""

    database: Database
    number: int
    name: str
    is_stored: ClassVar[bool] = True

    def read(self) -> Run:
        return parse_json(self.text(), decode_run, file=Path(self.name))

    def text(self) -> str:
        query = select(_RECORD.c.content).where(_RECORD.c.run_id == self.number)
        packed = self.database.read(lambda connection: connection.execute(query).scalar())
        if packed is None:  # pruned meanwhile
            raise HistoryError(self.database.url, f"the record of {self.name} is gone")
        unpacking = zlib.decompressobj()
        try:
            content = unpacking.decompress(packed, LARGEST_RECORD_BYTES)
            if not unpacking.eof:
                raise HistoryError(self.database.url, f"the record of {self.name} is cut off")
            return content.decode()
        except (zlib.error, UnicodeDecodeError) as cause:
            problem = f"the record of {self.name} is damaged: {cause}"
            raise HistoryError(self.database.url, problem) from cause


def read_runs(
    database: Database, folder: Path, wanted: RunSelection, *, last: int | None = None
) -> RunHistory:
    """Read the selected runs; ``folder`` is in the repository of their commits."""
    history = arranged(_headings(database), folder, wanted)
    runs = history.runs if last is None else history.runs[-last:]
    numbers = [run.source.number for run in runs if isinstance(run.source, StoredRecord)]
    readings = database.read(partial(_readings, numbers))
    filled = (
        replace(run, readings=tuple(readings.get(number, ())))
        for run, number in zip(runs, numbers, strict=True)
    )
    note = f"read from {database.url}"
    return replace(history, runs=tuple(filled), notes=(*history.notes, note))


def stored_records(database: Database) -> list[StoredRecord]:
    return [run.source for run in _headings(database) if isinstance(run.source, StoredRecord)]


def _headings(database: Database) -> list[RecordedRun]:
    query = select(RUN).order_by(RUN.c.started_s, RUN.c.id)
    found = []
    for row in database.read(lambda connection: connection.execute(query).all()):
        shard = f"-shard-{row.shard}" if row.shard else ""
        attempt = f"-attempt-{row.attempt}" if row.attempt else ""
        name = f"{row.run}{shard}{attempt}"
        if not re.fullmatch(r"\w[\w.+-]*", name, re.ASCII) or len(name) > _LONGEST_NAME:
            name = f"run-{_digest(name)}"
        source = StoredRecord(database, row.id, f"{name}.json")
        members = json.loads(row.environment)
        try:
            environment = decode(Environment, members)
        except DecodeError:  # of a newer version, or of another producer
            environment = decode_known(Environment, Value(members))
        software = json.loads(row.software)
        about = (environment, row.label, row.complete, software)
        found.append(RecordedRun(source, row.run, *about, readings=()))
    return found


def _readings(numbers: Sequence[int], connection: Connection) -> dict[int, list[Reading]]:
    """Read the readings of runs, by row id."""
    seen = _OBSERVATION.c
    found: dict[int, list[Reading]] = defaultdict(list)
    # Metrics of one definition are one object: they are compared a hundred thousand times.
    metrics: dict[tuple[str, ...], Metric] = {}
    for chunk in _chunks(numbers):
        query = select(_OBSERVATION).where(seen.run_id.in_(chunk))
        for row in connection.execute(query.order_by(seen.run_id, seen.number)):
            name, unit, better, kind, source = definition = tuple(row[3:8])
            if definition not in metrics:
                kinds = Better(better), Kind(kind), Source(source)
                metrics[definition] = Metric(name, unit, *kinds)
            found[row.run_id].append(_reading(metrics[definition], row))
    return found


def _reading(metric: Metric, row: Any) -> Reading:
    verdict = None
    if row.outcome is not None:
        numbers = (row.value, row.baseline, row.change, row.change_limit)
        because = Reason(row.reason) if row.reason else None
        verdict = Verdict(metric, Outcome(row.outcome), because, None, *numbers)
    setting = tuple(json.loads(row.setting).items())
    flags = {"gated": row.gated, "explains": row.explains, "written": row.written}
    return Reading(row.test, metric, row.key, setting, row.value, verdict, **flags)


def prune(database: Database, oldest_s: float, *, dry_run: bool = False) -> tuple[int, int]:
    """Delete older runs; count the deleted and the kept ones."""
    done = database.read(partial(_prune, oldest_s, dry_run=True))
    if done[0] and not dry_run:
        done = database.write(partial(_prune, oldest_s, dry_run=False))
    return done


def _prune(oldest_s: float, connection: Connection, *, dry_run: bool) -> tuple[int, int]:
    # A run whose clock cannot be read is as old as its arrival.
    began = func.coalesce(RUN.c.started_s, RUN.c.sent_s)
    rows = connection.execute(select(RUN.c.id, began.label("began"))).all()
    old = [row.id for row in rows if row.began < oldest_s]
    if not dry_run:
        _delete_runs(connection, old)
    return len(old), len(rows) - len(old)
