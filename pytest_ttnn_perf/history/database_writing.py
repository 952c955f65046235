"""Runs sent to a database: each as a whole, and once, however often it is sent."""

from __future__ import annotations

import json
import time
import zlib
from datetime import datetime, timezone
from enum import Enum
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.history.database_schema import (
    COMMIT,
    HOST,
    KEY,
    METRIC,
    OBSERVATION,
    PARENT,
    RECORD,
    RUN,
    SERIES,
    SETTING,
    SOFTWARE,
    TEST,
)
from pytest_ttnn_perf.history.runs import recorded_run
from pytest_ttnn_perf.records.json import encode
from pytest_ttnn_perf.run.record import run_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Table

    from pytest_ttnn_perf.history.database import Database
    from pytest_ttnn_perf.history.runs import Reading, RecordedRun, Source
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.observation import Run

    Row = dict[str, Any]

#: So many values are asked for at once; older SQLites take 999.
CHUNK: Final = 500
#: A longer name of a run is cut: an index takes some 2,700 bytes.
_LONGEST_NAME: Final = 200
#: Digits of samples are not worth a longer search.
_QUICKLY: Final = 3
#: What a column of whole numbers holds.
_LARGEST: Final = 2**31 - 1


class Sent(Enum):
    """What came of sending a run."""

    NEW = "sent"
    THERE = "there already"
    #: It had been sent before it was over.
    COMPLETED = "completed"
    #: Another run has its name, shard and attempt; that one stays.
    OTHER = "another run of that name is there"


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A run as rows, whose numbers in the database are not known yet.

    ``readings`` are by the digest of their series.
    """

    run: Row
    host: str
    commit: Row | None
    parents: tuple[str, ...]
    software: Row
    readings: Mapping[str, Reading]
    record: bytes


def send(database: Database, run: Run, source: Source, *, text: str | None = None) -> Sent:
    """Send a run; a run that is there already changes nothing.

    ``text`` is its record, if somebody has written it.

    Raises:
        HistoryError: it could not be sent, and nothing of it is there.
    """
    record = (run_text(run) if text is None else text).encode("utf-8", "backslashreplace")
    prepared = _prepared(recorded_run(source, run), zlib.compress(record, _QUICKLY))
    return database.write(partial(_write, prepared))


def _prepared(run: RecordedRun, record: bytes) -> _Prepared:
    environment = run.environment
    readings = {digest_of(*_identity(reading)): reading for reading in run.readings}
    digest = _content(run)
    heading = {
        "run": _name(run.id or f"unnamed-{digest}"),
        "shard": _name(environment.shard or ""),
        "attempt": max(-_LARGEST, min(environment.attempt or 0, _LARGEST)),
        "digest": digest,
        "started_at": clean(run.at),
        "started_s": _seconds(run.at),
        "branch": _optional(environment.branch),
        "pull_request": _optional(environment.pull_request),
        "dirty": environment.dirty,
        "label": _optional(run.label),
        "complete": run.complete,
        "environment": json.dumps(encode(environment)),
    }
    software = run.software
    told = {name: _scalar_text(software.get(name)) for name in ("ttnn", "firmware", "driver")}
    commit = run.commit and {
        "name": clean(run.commit),
        "committed_at": _optional(environment.committed_at),
    }
    return _Prepared(
        heading,
        clean(run.host),
        commit or None,
        tuple(map(clean, environment.parents)),
        {
            "content": json.dumps(dict(sorted(software.items()))),
            **told,
            "kernel": _scalar_text(software.get("kernel")),
        },
        readings,
        record,
    )


def _identity(reading: Reading) -> tuple[object, ...]:
    """Return what tells one series from another."""
    metric = reading.metric
    definition = (metric.name, metric.unit, metric.better.value, metric.kind.value)
    return (reading.test, *definition, metric.source.value, reading.key, reading.setting)


def digest_of(*parts: object) -> str:
    """Return what stands for some texts, numbers and lists of these."""
    return sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _content(run: RecordedRun) -> str:
    """Return what stands for all that a run measured, whichever version of ours wrote it."""
    measured = sorted(
        (*map(str, _identity(r)), r.value, r.verdict.outcome.value if r.verdict else "")
        for r in run.readings
    )
    return digest_of(run.at, run.commit, run.host, run.complete, measured)


def clean(text: str) -> str:
    """Return a text that databases take: no null, no half of a surrogate pair."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", r"\x00")


def _optional(text: str | None) -> str | None:
    return None if text is None else clean(text)


def _name(text: str) -> str:
    name = clean(text)
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}-{digest_of(text)}"


def _scalar_text(value: Scalar) -> str | None:
    return None if value is None else clean(str(value))


def _seconds(at: str) -> float | None:
    """Return a time as seconds since 1970; without a zone it is that of Greenwich."""
    try:
        moment = datetime.fromisoformat(at.replace("Z", "+00:00"))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return None


def _write(prepared: _Prepared, connection: Connection) -> Sent:
    """Write a run, unless it is there."""
    heading = prepared.run
    names = (RUN.c[name] == heading[name] for name in ("run", "shard", "attempt"))
    found = connection.execute(select(RUN.c.id, RUN.c.digest, RUN.c.complete).where(*names)).first()
    if found is not None:
        if found.digest == heading["digest"]:
            return Sent.THERE
        if found.complete:
            return Sent.OTHER
        delete_runs(connection, [found.id])
    series = _series(connection, prepared.readings)
    run = {
        **heading,
        "sent_s": time.time(),
        "host_id": _row(connection, HOST, {"name": prepared.host}),
        "software_id": _row(connection, SOFTWARE, prepared.software),
        "commit_id": _commit(connection, prepared),
    }
    number = connection.execute(insert(RUN).returning(RUN.c.id), run).scalar_one()
    if series:
        rows = [_observation(number, series[d], r) for d, r in prepared.readings.items()]
        connection.execute(insert(OBSERVATION), rows)
    connection.execute(insert(RECORD), {"run_id": number, "content": prepared.record})
    return Sent.NEW if found is None else Sent.COMPLETED


def _observation(run: int, series: int, reading: Reading) -> Row:
    verdict = reading.verdict
    return {
        "run_id": run,
        "series_id": series,
        "value": reading.value,
        "outcome": verdict.outcome.value if verdict else None,
        "reason": verdict.reason.value if verdict and verdict.reason else None,
        "baseline": verdict.centre if verdict else None,
        "change": verdict.change if verdict else None,
        "change_limit": verdict.limit if verdict else None,
        "gated": reading.gated,
        "explains": reading.explains,
        "written": reading.written,
    }


def _series(connection: Connection, readings: Mapping[str, Reading]) -> dict[str, int]:
    """Return the numbers of series by their digests; those that are new are made."""
    found = _numbers(connection, SERIES, readings)
    new = {digest: reading for digest, reading in readings.items() if digest not in found}
    if not new:
        return found
    parts = {digest: _parts(reading) for digest, reading in new.items()}
    numbers = [
        _rows(connection, table, [row[place] for row in parts.values()])
        for place, table in enumerate((TEST, METRIC, KEY, SETTING))
    ]
    names = ("test_id", "metric_id", "key_id", "setting_id")
    rows = {
        digest: {
            name: known[_digest(part)]
            for name, known, part in zip(names, numbers, row, strict=True)
        }
        for digest, row in parts.items()
    }
    return found | _made(connection, SERIES, rows)


def _parts(reading: Reading) -> tuple[Row, Row, Row, Row]:
    metric = reading.metric
    return (
        {"name": clean(reading.test)},
        {
            "name": clean(metric.name),
            "unit": clean(metric.unit),
            "better": metric.better.value,
            "kind": metric.kind.value,
            "source": metric.source.value,
        },
        {"name": clean(reading.key)},
        {"content": json.dumps(dict(reading.setting))},
    )


def _commit(connection: Connection, prepared: _Prepared) -> int | None:
    if prepared.commit is None:
        return None
    digest = digest_of(prepared.commit["name"])
    number = _made(connection, COMMIT, {digest: prepared.commit})[digest]
    parents = [
        {"commit_id": number, "position": place, "parent": parent}
        for place, parent in enumerate(prepared.parents)
    ]
    if parents:
        _insert_new(connection, PARENT, parents)
    return number


def _row(connection: Connection, table: Table, row: Row) -> int:
    return _rows(connection, table, [row])[_digest(row)]


def _rows(connection: Connection, table: Table, rows: Iterable[Row]) -> dict[str, int]:
    """Return the numbers of rows by the digests of what they say; those that are new are made."""
    return _made(connection, table, {_digest(row): row for row in rows})


def _digest(row: Row) -> str:
    return digest_of(*row.values())


def _made(connection: Connection, table: Table, rows: Mapping[str, Row]) -> dict[str, int]:
    found = _numbers(connection, table, rows)
    # In one order, so that two that write the same rows do not wait for each other.
    new = [{"digest": digest, **rows[digest]} for digest in sorted(rows) if digest not in found]
    if not new:
        return found
    _insert_new(connection, table, new)
    return found | _numbers(connection, table, [row["digest"] for row in new])


def _numbers(connection: Connection, table: Table, digests: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for chunk in chunks(digests):
        query = select(table.c.digest, table.c.id).where(table.c.digest.in_(chunk))
        found |= {row.digest: row.id for row in connection.execute(query)}
    return found


def _insert_new(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows, but for those that somebody else has inserted meanwhile."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    connection.execute(dialect.insert(table).on_conflict_do_nothing(), rows)


def chunks(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield items, so many at a time as can be asked for at once."""
    every = iter(items)
    while chunk := list(islice(every, CHUNK)):
        yield chunk


def delete_runs(connection: Connection, numbers: Sequence[int]) -> None:
    """Delete runs with all that was observed in them."""
    for chunk in chunks(numbers):
        for table in (OBSERVATION, RECORD):
            connection.execute(delete(table).where(table.c.run_id.in_(chunk)))
        connection.execute(delete(RUN).where(RUN.c.id.in_(chunk)))
