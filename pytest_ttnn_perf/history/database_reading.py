"""Runs read from a database: first which there are, then what is asked for of those that count."""

from __future__ import annotations

import gc
import json
import re
import zlib
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlalchemy import select

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError
from pytest_ttnn_perf._base.files import LARGEST_RECORD_BYTES, parse_json
from pytest_ttnn_perf.history.database import HistoryError
from pytest_ttnn_perf.history.database_schema import (
    KEY,
    METRIC,
    OBSERVATION,
    RECORD,
    RUN,
    SERIES,
    SETTING,
    SOFTWARE,
    TEST,
)
from pytest_ttnn_perf.history.database_writing import chunks, digest_of
from pytest_ttnn_perf.history.runs import Reading, RecordedRun, arranged
from pytest_ttnn_perf.records.hardware import Environment
from pytest_ttnn_perf.records.json import decode, decode_known
from pytest_ttnn_perf.records.json_value import Value
from pytest_ttnn_perf.records.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.records.observation import decode_run
from pytest_ttnn_perf.records.verdict import Outcome, Reason, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Select, Table

    from pytest_ttnn_perf.history.database import Database
    from pytest_ttnn_perf.history.runs import RunHistory, Wanted
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.observation import Run


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """The record of a run in a database; ``number`` is that of its row."""

    database: Database
    number: int
    name: str
    is_stored: ClassVar[bool] = True

    @property
    def file(self) -> str:
        """The name of the file that it is exported to, whatever the run is called."""
        if re.fullmatch(r"\w[\w.+-]*", self.name, re.ASCII) and len(self.name) <= 200:
            return f"{self.name}.json"
        return f"run-{digest_of(self.name)}.json"

    def read(self) -> Run:
        """Read the whole record.

        Raises:
            HistoryError: it was pruned, or is damaged.
        """
        text = self.text()
        if text is None:
            raise HistoryError(self.database.url, f"the samples of {self.name} were pruned")
        return parse_json(text, decode_run, file=Path(self.name))

    def text(self) -> str | None:
        """Return the record as it was written; None where it was pruned."""
        query = select(RECORD.c.content).where(RECORD.c.run_id == self.number)
        packed = self.database.read(lambda connection: connection.execute(query).scalar())
        if packed is None:
            return None
        unpacking = zlib.decompressobj()
        try:
            content = unpacking.decompress(packed, LARGEST_RECORD_BYTES)
            if not unpacking.eof:
                raise HistoryError(self.database.url, f"the record of {self.name} is cut off")
            return content.decode()
        except (zlib.error, UnicodeDecodeError) as cause:
            problem = f"the record of {self.name} is damaged: {cause}"
            raise HistoryError(self.database.url, problem) from cause


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for of runs: the ``last`` so many, some tests, one metric; None for all.

    ``tests`` chooses among the names of all tests.
    """

    last: int | None = None
    tests: Callable[[Sequence[str]], Collection[str]] | None = None
    metric: str | None = None


def read_runs(database: Database, folder: Path, wanted: Wanted, asked: Asked) -> RunHistory:
    """Read runs and what is asked for of them; ``folder`` is in the repository of their commits.

    Raises:
        HistoryError: the database cannot be read, or has no history.
        UsageError: a branch that was named does not exist.
    """
    headings = database.read(partial(_headings, database))
    history = arranged(headings, folder, wanted)
    runs = history.runs if asked.last is None else history.runs[-asked.last :]
    numbers = [run.source.number for run in runs if isinstance(run.source, StoredRecord)]
    with _nothing_collected():
        readings = database.read(partial(_readings, numbers, asked))
    filled = (
        replace(run, readings=tuple(readings.get(number, ())))
        for run, number in zip(runs, numbers, strict=True)
    )
    note = f"read from {database.url}"
    return replace(history, runs=tuple(filled), notes=(*history.notes, note))


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Keep the garbage collector from looking through ever more readings: that takes half the time.

    None of them is part of a cycle.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _headings(database: Database, connection: Connection) -> list[RecordedRun]:
    """Return all runs, without what they measured."""
    query = select(
        RUN.c.id,
        RUN.c.run,
        RUN.c.shard,
        RUN.c.attempt,
        RUN.c.label,
        RUN.c.complete,
        RUN.c.environment,
        SOFTWARE.c.content,
    ).join_from(RUN, SOFTWARE)
    return [
        RecordedRun(
            StoredRecord(database, row.id, stored_name(row)),
            row.run,
            _environment(row.environment),
            row.label,
            row.complete,
            json.loads(row.content),
            (),
        )
        for row in connection.execute(query)
    ]


def stored_name(row: Any) -> str:
    """Return what a run is called: its id, and what tells it from others of that id."""
    shard = f"-shard-{row.shard}" if row.shard else ""
    attempt = f"-attempt-{row.attempt}" if row.attempt else ""
    return f"{row.run}{shard}{attempt}"


def _environment(text: str) -> Environment:
    members = json.loads(text)
    try:
        return decode(Environment, members)
    except DecodeError:  # of a newer version, or of another producer
        return decode_known(Environment, Value(members))


def _readings(
    numbers: Sequence[int], asked: Asked, connection: Connection
) -> dict[int, list[Reading]]:
    """Return what runs measured, by their numbers."""
    series = _series(connection, asked)
    found: dict[int, list[Reading]] = defaultdict(list)
    few = len(series) <= _FEW and (asked.tests or asked.metric)
    seen = OBSERVATION.c
    query: Select[Any] = select(OBSERVATION)
    for chunk in chunks(numbers):
        chosen = query.where(seen.run_id.in_(chunk)).order_by(seen.run_id, seen.series_id)
        if few:
            chosen = chosen.where(seen.series_id.in_(list(series)))
        for rows in connection.execute(chosen).partitions(_AT_ONCE):
            for run, number, *measured in rows:
                known = series.get(number)
                if known is not None:
                    found[run].append(_reading(known, measured))
    return found


#: More series than these are read with all others, and left out here.
_FEW: Final = 400
#: Rows that are held at a time.
_AT_ONCE: Final = 10_000
#: To look them up is quicker than to ask the class, and there are hundreds of thousands.
_OUTCOMES: Final = {outcome.value: outcome for outcome in Outcome}
_REASONS: Final = {reason.value: reason for reason in Reason}


class _Series:
    """One metric of a test, in one setting on one key."""

    __slots__ = ("key", "metric", "setting", "test")

    def __init__(
        self, test: str, metric: Metric, key: str, setting: tuple[tuple[str, Scalar], ...]
    ) -> None:
        self.test, self.metric, self.key, self.setting = test, metric, key, setting


def _series(connection: Connection, asked: Asked) -> Mapping[int, _Series]:
    """Return the series that are asked for; a name that nothing has asks for all.

    Then whoever asked can say which names there are.
    """
    metrics = {row.id: row for row in connection.execute(select(METRIC))}
    if any(row.name == asked.metric for row in metrics.values()):
        metrics = {number: row for number, row in metrics.items() if row.name == asked.metric}
    definitions = {number: _metric(row) for number, row in metrics.items()}
    tests = _names(connection, TEST)
    if asked.tests is not None:
        chosen = frozenset(asked.tests(list(tests.values())))
        tests = {n: name for n, name in tests.items() if name in chosen} if chosen else tests
    keys = _names(connection, KEY)
    settings = {
        number: tuple(json.loads(content).items())
        for number, content in connection.execute(select(SETTING.c.id, SETTING.c.content))
    }
    columns = (SERIES.c.id, SERIES.c.test_id, SERIES.c.metric_id, SERIES.c.key_id)
    return {
        number: _Series(tests[test], definitions[metric], keys[key], settings[setting])
        for number, test, metric, key, setting in connection.execute(
            select(*columns, SERIES.c.setting_id)
        )
        if test in tests and metric in definitions
    }


def _names(connection: Connection, table: Table) -> dict[int, str]:
    rows = connection.execute(select(table.c.id, table.c.name))
    return {row.id: row.name for row in rows}


def _metric(row: Any) -> Metric:
    return Metric(row.name, row.unit, Better(row.better), Kind(row.kind), Source(row.source))


def _reading(series: _Series, measured: Sequence[Any]) -> Reading:
    value, outcome, reason, baseline, change, limit, gated, explains, written = measured
    verdict = None
    if outcome is not None:
        verdict = Verdict(
            series.metric,
            _OUTCOMES[outcome],
            _REASONS[reason] if reason else None,
            None,
            value,
            baseline,
            change,
            limit,
        )
    return Reading(
        series.test,
        series.metric,
        series.key,
        series.setting,
        value,
        verdict,
        gated=gated,
        explains=explains,
        written=written,
    )


def stored_records(database: Database) -> Iterator[StoredRecord]:
    """Yield the records of all runs, in the order in which they started.

    Raises:
        HistoryError: the database cannot be read, or has no history.
    """
    query = select(RUN.c.id, RUN.c.run, RUN.c.shard, RUN.c.attempt)
    ordered = query.order_by(RUN.c.started_s, RUN.c.id)
    for row in database.read(lambda connection: connection.execute(ordered).all()):
        yield StoredRecord(database, row.id, stored_name(row))
