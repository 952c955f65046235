"""``ttnn-perf history import``, ``export`` and ``prune``: a database of runs, and their records."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.files import write_text
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.detect import read_run
from pytest_ttnn_perf.cli.history import asked_database, records_folder
from pytest_ttnn_perf.history.runs import RecordFile, record_files
from pytest_ttnn_perf.records.database_url import INSTALL
from pytest_ttnn_perf.report.layout import printed, shown_path, stdout_style
from pytest_ttnn_perf.report.live import Ticker
from pytest_ttnn_perf.report.numbers import Result

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.history.database import Database

#: In a log, progress is told at each of so many parts of the way.
_MILESTONES: Final = 10
#: So many files or runs are named.
_SHOWN: Final = 10


def _database(options: argparse.Namespace) -> Database:
    url = asked_database(options)
    if url is None:
        message = (
            "expected a database, found none: give --history URL, or set TTNN_PERF_HISTORY, as in "
            f"--history sqlite:///perf.db; {INSTALL}"
        )
        raise UsageError(message)
    from pytest_ttnn_perf.history.database import Database

    return Database(url)


def send_records(options: argparse.Namespace) -> Result:
    """Send run records; what is there already stays as it is.

    Raises:
        HistoryError: the database cannot be written; what was sent before is there.
        InputError: none of the records can be read.
        UsageError: there is no database, or no record.
    """
    database = _database(options)
    from pytest_ttnn_perf.history.database_writing import Sent, send

    files = list(record_files(options.paths or [records_folder()]))
    if not files:
        message = "expected run records, found none: make some with pytest --ttnn-perf"
        raise UsageError(message)
    done: Counter[Sent] = Counter()
    others: list[str] = []
    unreadable: list[str] = []
    ticker = Ticker()
    try:
        for number, file in enumerate(files, start=1):
            _show(ticker, f"sending run records: {number} of {len(files)}", number, len(files))
            try:
                run = read_run(file)
            except InputError as error:
                unreadable.append(str(error))
                continue
            outcome = send(database, run, RecordFile(file))
            done[outcome] += 1
            if outcome is Sent.OTHER:
                others.append(str(file))
    finally:
        ticker.close()
    if not done:
        problem = f"none of the {len(files)} files is a run record that can be read"
        raise InputError(files[0].parent, f"{problem}; the first: {unreadable[0]}")
    sent = done[Sent.NEW] + done[Sent.COMPLETED]
    there = f"; {done[Sent.THERE]} already there" if done[Sent.THERE] else ""
    lines = [f"sent {counted(sent, 'run')} to {database.url}{there}"]
    if done[Sent.COMPLETED]:
        lines.append(f"{done[Sent.COMPLETED]} of them had been sent before they were over")
    lines += _listed(
        "not sent, as another run of the same id, shard and attempt is there", "file", others
    )
    lines += _listed("not sent, as they cannot be read", "file", unreadable)
    return _result(lines)


def _show(ticker: Ticker, line: str, number: int, count: int) -> None:
    part = max(1, count // _MILESTONES)
    ticker.show(line, number % part == 0 and count > _MILESTONES)


def _listed(what: str, noun: str, items: Sequence[str]) -> list[str]:
    """Say what there are some of, with the first of them; nothing where there is none."""
    if not items:
        return []
    lines = [f"{what}: {counted(len(items), noun)}", *(f"  {item}" for item in items[:_SHOWN])]
    more = len(items) - _SHOWN
    return [*lines, f"  and {more} more"] if more > 0 else lines


def _result(lines: Sequence[str]) -> Result:
    return Result("".join(f"{line}\n" for line in printed(lines, stdout_style())))


def export_records(options: argparse.Namespace) -> Result:
    """Write the records of all runs of a database; files that exist stay as they are.

    Raises:
        HistoryError: the database cannot be read.
        UsageError: there is no database.
        WriteError: a record cannot be written.
    """
    database = _database(options)
    from pytest_ttnn_perf.history.database_reading import stored_records

    folder: Path = options.output or records_folder()
    written = existing = 0
    pruned: list[str] = []
    ticker = Ticker()
    try:
        records = list(stored_records(database))
        for number, record in enumerate(records, start=1):
            _show(ticker, f"writing run records: {number} of {len(records)}", number, len(records))
            file = folder / record.file
            if file.exists():
                existing += 1
            elif (text := record.text()) is None:
                pruned.append(record.name)
            else:
                write_text(file, text + "\n")
                written += 1
    finally:
        ticker.close()
    lines = [f"wrote {counted(written, 'run record')} to {shown_path(folder, folder.cwd())}"]
    if existing:
        lines[0] += f"; {existing} already there"
    lines += _listed("not written, as samples and op tables were pruned", "run", pruned)
    return _result(lines)


def prune_runs(options: argparse.Namespace) -> Result:
    """Remove old runs, or their samples alone.

    Raises:
        HistoryError: the database cannot be changed.
        UsageError: there is no database.
    """
    database = _database(options)
    from pytest_ttnn_perf.history.database_retention import prune

    samples = options.keep_samples
    done = prune(database, options.keep, samples, dry_run=options.dry_run)
    what = "would remove" if options.dry_run else "removed"
    span = f" of {done.first_day} to {done.last_day}" if done.runs else ""
    more = f" and the samples of {counted(done.samples, 'other run')}" if samples else ""
    lines = [f"{what} {counted(done.runs, 'run')}{span}{more}; kept {counted(done.kept, 'run')}"]
    return _result(lines)
