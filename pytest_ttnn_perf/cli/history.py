"""``ttnn-perf history`` and ``trends``: runs in files and databases; import, export, prune."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.files import read_text, write_text
from pytest_ttnn_perf._base.text import counted, inert
from pytest_ttnn_perf.analysis.captures.detect import is_run_record, read_run
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.cli.artifacts import from_here
from pytest_ttnn_perf.cli.baseline_edits import edited_settings, matches, select_tests
from pytest_ttnn_perf.history.history_report import overview_listing, runs_listing
from pytest_ttnn_perf.history.order import seconds_of
from pytest_ttnn_perf.history.renames import follow, renamed_tests
from pytest_ttnn_perf.history.runs import RecordFile, Wanted, kept_of, read_history, record_files
from pytest_ttnn_perf.history.series import chosen, series_of
from pytest_ttnn_perf.history.trends_report import trends_listing
from pytest_ttnn_perf.records.database_url import INSTALL, check_installed
from pytest_ttnn_perf.report.layout import printed, shown_path, stdout_style
from pytest_ttnn_perf.report.live import Ticker
from pytest_ttnn_perf.report.numbers import Column, Columns, Listing, Result
from pytest_ttnn_perf.run.settings import project_settings, read_database, with_environment

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Generator, Iterator, Sequence

    from pytest_ttnn_perf.history.database import Database
    from pytest_ttnn_perf.history.renames import Renamed
    from pytest_ttnn_perf.history.runs import Keep, RunHistory
    from pytest_ttnn_perf.records.database_url import DatabaseUrl
    from pytest_ttnn_perf.report.layout import Block

T = TypeVar("T")

#: In a log, progress is told at each of so many parts of the way.
_MILESTONES: Final = 10
#: So many files or runs are named.
_SHOWN: Final = 10
#: As much of a file as tells what it is.
_HEAD: Final = 1 << 12
#: A journal that was written to since then may be that of a run under way.
_LIVE_S: Final = 24 * 60 * 60.0


def run(options: argparse.Namespace) -> Result:
    """Return one row per run of a test, or one per series.

    Raises:
        InputError: none of the records can be read.
        UsageError: there are no records, or no such test, metric or branch among them.
    """
    history = wanted_history(options)
    series = series_of(history.runs, metric=options.metric)
    if options.metric is not None and history.runs and not series:
        names = {reading.metric.name for run in history.runs for reading in run.readings}
        found = ", ".join(sorted(names)) or "none"
        message = f"no run has a metric {options.metric!r}; found: {found}"
        raise UsageError(message)
    tests = sorted({each.test for each in series})
    if options.test is None:
        listing = overview_listing(chosen(series, tests), history)
    else:
        where = f"the {len(history.runs)} runs that are looked at"
        named = select_tests(tests, [options.test], where=where)
        listing = runs_listing(chosen(series, named), history, all_metrics=bool(options.metric))
    return Result(listing.text(options.format))


def trends(options: argparse.Namespace) -> Result:
    """Return the changes of all series.

    Raises:
        InputError: none of the records can be read.
        UsageError: there are no records, or no such branch.
    """
    history = wanted_history(options)
    return Result(trends_listing(history, metric=options.metric).text(options.format))


def records_folder() -> Path:
    """Return where the project keeps its run records, as seen from here if it is below."""
    return from_here(project_settings().artifacts / "runs")


def asked_database(options: argparse.Namespace) -> DatabaseUrl | None:
    """Return the database that is meant: by the option, a variable or the file; None for none.

    Raises:
        UsageError: its URL cannot be read, or what it needs is not installed.
    """
    cwd = Path.cwd()
    if options.history:
        url = read_database(options.history, cwd, "--history: ")
    else:
        url = with_environment(project_settings(), os.environ, cwd).history
    if url is not None:
        check_installed(url)
    return url


def _read_database(
    url: DatabaseUrl, options: argparse.Namespace, wanted: Wanted, renamed: Renamed
) -> RunHistory:
    from pytest_ttnn_perf.history.database import Asked, Database, read_runs

    selector = getattr(options, "test", None) or ""

    def named(tests: Sequence[str]) -> list[str]:
        before = {
            name
            for (_, now), names in renamed.items()
            if matches(now, selector)
            for _, name in names
        }
        return [test for test in tests if test in before or matches(test, selector)]

    asked = Asked(options.last, named if selector else None, getattr(options, "metric", None))
    return read_runs(Database(url), Path.cwd(), wanted, asked)


def wanted_history(options: argparse.Namespace) -> RunHistory:
    """Read the runs that options name.

    Raises:
        HistoryError: the database cannot be read.
        InputError: none of the records can be read.
        UsageError: there are no records, or no such branch.
    """
    wanted = Wanted(options.branch, all_branches=options.all_branches, dirty=options.dirty)
    baselines, notes = project_settings().baselines, list[str]()
    renamed: Renamed = {}
    try:
        renamed = renamed_tests(BaselineStore(baselines).all_files() if baselines.is_dir() else ())
    except InputError as error:
        notes = [f"tests that were renamed are not followed: {error}"]
    history = _read(options, wanted, renamed)
    runs = follow(history.runs, renamed)
    return replace(history, runs=runs, notes=(*history.notes, *notes))


def _read(options: argparse.Namespace, wanted: Wanted, renamed: Renamed) -> RunHistory:
    url = None if options.runs else asked_database(options)
    if url is not None:
        return _read_database(url, options, wanted, renamed)
    folder = records_folder()
    if options.runs is None and not folder.is_dir():
        message = (
            f"{folder}: expected run records, found no folder: make some with pytest --ttnn-perf, "
            "or name others with --runs"
        )
        raise UsageError(message)
    paths = options.runs or [folder]
    history = read_history(paths, Path.cwd(), wanted)
    if history.unreadable and not history.runs and not history.left_out:
        problem = f"none of the {len(history.unreadable)} files is a run record that can be read"
        raise InputError(paths[0], f"{problem}; the first: {history.unreadable[0]}")
    return history if options.last is None else replace(history, runs=history.runs[-options.last :])


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
    from pytest_ttnn_perf.history.database import Sent, send

    files = list(record_files(options.paths or [records_folder()]))
    if not files:
        message = "expected run records, found none: make some with pytest --ttnn-perf"
        raise UsageError(message)
    done: Counter[Sent] = Counter()
    others: list[str] = []
    unreadable: list[str] = []
    with closing(_shown("sending run records", files)) as every:
        for file in every:
            try:
                run = read_run(file)
            except InputError as error:
                unreadable.append(str(error))
                continue
            outcome = send(database, run, RecordFile(file))
            done[outcome] += 1
            if outcome is Sent.OTHER:
                others.append(str(file))
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


def _shown(what: str, items: Sequence[T]) -> Generator[T, None, None]:
    """Yield items, and show how far they have come."""
    count, ticker = len(items), Ticker()
    part = max(1, count // _MILESTONES)
    try:
        for number, item in enumerate(items, start=1):
            line = f"{what}: {number} of {count}"
            ticker.show(line, number % part == 0 and count > _MILESTONES)
            yield item
    finally:
        ticker.close()


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
    from pytest_ttnn_perf.history.database import stored_records

    folder: Path = options.output or records_folder()
    written = existing = 0
    pruned: list[str] = []
    with closing(_shown("writing run records", stored_records(database))) as records:
        for record in records:
            file = folder / record.file
            if file.exists():
                existing += 1
            elif (text := record.text()) is None:
                pruned.append(record.name)
            else:
                write_text(file, text + "\n")
                written += 1
    lines = [f"wrote {counted(written, 'run record')} to {shown_path(folder, folder.cwd())}"]
    if existing:
        lines[0] += f"; {existing} already there"
    lines += _listed("not written, as samples and op tables were pruned", "run", pruned)
    return _result(lines)


def prune(options: argparse.Namespace) -> Result:
    """Remove old runs: of a database only if one is asked for, else the records that are here.

    Raises:
        HistoryError: the database cannot be changed.
        UsageError: there is no folder of records, no database, or it is not said what stays.
        InputError: a baseline is unreadable, so that nobody knows what it cites.
    """
    if options.keep is None and (options.keep_samples is None or options.history is None):
        message = "expected what stays, found nothing: --keep 90d, or --keep 200"
        raise UsageError(message)
    if options.history is not None:
        return _prune_database(options)
    if options.keep_samples is not None:
        message = "--keep-samples is for a database: run records are kept, or removed, as a whole"
        raise UsageError(message)
    baselines, folder = edited_settings(options).baselines, records_folder()
    if not folder.is_dir():
        message = f"{folder}: expected run records, found no folder: there is nothing to remove"
        raise UsageError(message)
    cited = {
        session.run
        for file in (BaselineStore(baselines).all_files() if baselines.is_dir() else ())
        for test in file.content.tests.values()
        for metric in test.metrics.values()
        for session in metric.sessions
    }
    found = _sorted_out(record_files([folder]), cited, options.keep)
    text = _fates(found, dry_run=options.dry_run).text(options.format)

    old = [each.file for each in found if each.fate == _REMOVED]

    def remove() -> Result:
        errors = "".join(map(_not_removed, old))
        return Result("", failed=bool(errors), errors=errors)

    return Result(text, then=None if options.dry_run else remove)


def _not_removed(file: Path) -> str:
    """Remove a file; return what is to be said if it stays."""
    try:
        file.unlink(missing_ok=True)  # another command may have been quicker
    except OSError as cause:
        return f"ttnn-perf: not removed: {inert(str(file))}: {cause.strerror}\n"
    return ""


def _prune_database(options: argparse.Namespace) -> Result:
    database = _database(options)
    from pytest_ttnn_perf.history.database import prune

    samples = options.keep_samples
    done = prune(database, options.keep, samples, dry_run=options.dry_run)
    what = "would remove" if options.dry_run else "removed"
    span = f" of {done.first_day} to {done.last_day}" if done.runs else ""
    more = f" and the samples of {counted(done.samples, 'other run')}" if samples else ""
    line = f"{what} {counted(done.runs, 'run')}{span}{more}; kept {counted(done.kept, 'run')}"
    return _result([line])


#: What becomes of a file among the records, and why.
_REMOVED: Final = "removed"
_KEPT: Final = ("new enough", "cited by a baseline", "a run that may be under way", "no run record")
_NEW, _CITED, _UNDER_WAY, _NO_RECORD = _KEPT


class _Record(NamedTuple):
    """A file among the records, when its run started, and what becomes of it."""

    file: Path
    fate: str
    started_s: float = 0.0
    size_bytes: int = 0


def _sorted_out(files: Iterator[Path], cited: Collection[str], keep: Keep) -> list[_Record]:
    """Decide which files to remove, the oldest first."""
    found = sorted(
        (_record(file, cited) for file in files), key=lambda each: (each.started_s, each.file)
    )
    newest = [each for each in reversed(found) if each.fate != _NO_RECORD]
    new = {each.file for each in newest[: kept_of([each.started_s for each in newest], keep)]}
    return [
        each._replace(fate=_NEW) if each.fate == _REMOVED and each.file in new else each
        for each in found
    ]


def _record(file: Path, cited: Collection[str]) -> _Record:
    """Return what becomes of a file, however new its run is."""
    try:
        state = file.lstat()
        # Results of benchmarks, too, can be read as a run, and are no records of ours.
        is_ours = not file.is_symlink() and is_run_record(read_text(file)[:_HEAD])
        run = read_run(file) if is_ours else None
    except (InputError, OSError):
        run = None
    if run is None or run.id is None:
        return _Record(file, _NO_RECORD)
    started_s = seconds_of(run.environment.started_at)
    fate = _CITED if run.id in cited else _REMOVED
    if file.suffix == ".jsonl" and state.st_mtime > time.time() - _LIVE_S:
        fate = _UNDER_WAY
    return _Record(file, fate, state.st_mtime if started_s is None else started_s, state.st_size)


def _day(record: _Record) -> str | None:
    if record.fate == _NO_RECORD:
        return None
    return f"{datetime.fromtimestamp(record.started_s, timezone.utc):%Y-%m-%d}"


_FATES: Final[Columns[_Record]] = Columns(
    Column("record", lambda each: str(each.file), "record"),
    Column("fate", lambda each: each.fate),
    Column("started", _day, "started"),
    Column("size_bytes", lambda each: each.size_bytes, "size",
           lambda each: f"{each.size_bytes / 1000:.1f} kB", right=True),
)  # fmt: skip


def _fates(found: Sequence[_Record], *, dry_run: bool) -> Listing:
    """Lay out what goes, and count what stays."""
    old = [each for each in found if each.fate == _REMOVED]
    lines: list[Block] = [*_FATES.table(old)] if old else []
    size_mb = sum(each.size_bytes for each in old) / 1e6
    would = "would remove" if dry_run else "removing"
    lines.append(f"{would} {counted(len(old), 'record')}, {size_mb:.1f} MB")
    counts = Counter(each.fate for each in found)
    lines += [f"kept {counts[fate]}: {fate}" for fate in _KEPT if counts[fate]]
    document = {"dry_run": dry_run, "files": _FATES.objects(found)}
    return Listing(tuple(lines), document, _FATES.names, _FATES.rows(found))
