"""Commands on many recorded runs: history, trends, report."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from contextlib import closing
from datetime import datetime, timedelta, timezone
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.agents.mcp import Server, Toolbox
from pytest_ttnn_perf.analysis.checklist.runner import select_rules
from pytest_ttnn_perf.analysis.ops.validity import why_invalid
from pytest_ttnn_perf.analysis.readers.detect import ArtifactKind, is_run_record, kind_of, read_run
from pytest_ttnn_perf.analysis.readers.device_csv import device_metrics, gated_ops
from pytest_ttnn_perf.cli.baseline_edits import edited_settings, matches, select_tests
from pytest_ttnn_perf.cli.captures import checked
from pytest_ttnn_perf.cli.common import (
    add_baselines,
    add_format,
    captures_of,
    complaining,
    from_here,
    look_at,
    newest_record,
    number_within,
)
from pytest_ttnn_perf.core.database_url import INSTALL, check_installed
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.files import check_writable, read_text, write_text
from pytest_ttnn_perf.core.finding import Input
from pytest_ttnn_perf.core.observation import JudgedTest, Observation, Run
from pytest_ttnn_perf.core.settings import (
    find_root,
    project_settings,
    read_database,
    with_environment,
)
from pytest_ttnn_perf.core.text import counted, inert, inert_lines
from pytest_ttnn_perf.experiments.journal import journals_of
from pytest_ttnn_perf.gate.health import health_of
from pytest_ttnn_perf.gate.judging import summary_options_of
from pytest_ttnn_perf.gate.record import ci_job, ci_report
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.history.page import (
    USUAL_RUNS,
    CaptureSearch,
    PageSource,
    is_of,
    is_report_folder,
    page_of,
    visualizer_command,
    with_captures,
    with_own_runs,
    write_page,
    write_traces,
)
from pytest_ttnn_perf.history.runs import (
    RecordFile,
    RunHistory,
    Wanted,
    follow,
    kept_of,
    read_history,
    record_files,
    renamed_tests,
    seconds_of,
)
from pytest_ttnn_perf.history.series import chosen, overview_listing, runs_listing, series_of
from pytest_ttnn_perf.history.trends import trends_listing
from pytest_ttnn_perf.report.sentences import Rerun
from pytest_ttnn_perf.report.tables import (
    Column,
    Columns,
    Listing,
    Result,
    printed,
    shown_path,
    stdout_style,
)
from pytest_ttnn_perf.report.terminal import Ticker

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Sequence

    from pytest_ttnn_perf.cli.common import Capture
    from pytest_ttnn_perf.core.database_url import DatabaseUrl
    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.history.database import Database
    from pytest_ttnn_perf.history.runs import Keep, Renamed
    from pytest_ttnn_perf.report.ci import CiReport
    from pytest_ttnn_perf.report.tables import Block


# ``ttnn-perf history`` and ``trends``: runs in files and databases; import, export, prune.

T = TypeVar("T")

#: In a log, progress is told at each of so many parts of the way.
_MILESTONES: Final = 10
#: So many files or runs are named.
_SHOWN: Final = 10
#: As much of a file as tells what it is.
_HEAD: Final = 1 << 12
#: A journal that was written to since then may be that of a run under way.
_LIVE_S: Final = 24 * 60 * 60.0


def run_history(options: argparse.Namespace) -> Result:
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


def run_trends(options: argparse.Namespace) -> Result:
    """Return the changes of all series.

    Raises:
        InputError: none of the records can be read.
        UsageError: there are no records, or no such branch.
    """
    history = wanted_history(options)
    return Result(trends_listing(history, metric=options.metric).text(options.format))


def records_folder() -> Path:
    """The project's folder of run records."""
    return from_here(project_settings().artifacts / "runs")


def asked_database(options: argparse.Namespace) -> DatabaseUrl | None:
    """The database by option, variable or file, if any.

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
    from pytest_ttnn_perf.history.database import Database, RunFilter, read_runs

    selector = getattr(options, "test", None) or ""

    def named(tests: Sequence[str]) -> list[str]:
        before = {
            name
            for (_, now), names in renamed.items()
            if matches(now, selector)
            for _, name in names
        }
        return [test for test in tests if test in before or matches(test, selector)]

    asked = RunFilter(options.last, named if selector else None, getattr(options, "metric", None))
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


def run_history_import(options: argparse.Namespace) -> Result:
    """Send run records; existing ones stay.

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
    """A count with the first items, or nothing."""
    if not items:
        return []
    lines = [f"{what}: {counted(len(items), noun)}", *(f"  {item}" for item in items[:_SHOWN])]
    more = len(items) - _SHOWN
    return [*lines, f"  and {more} more"] if more > 0 else lines


def _result(lines: Sequence[str]) -> Result:
    return Result("".join(f"{line}\n" for line in printed(lines, stdout_style())))


def run_history_export(options: argparse.Namespace) -> Result:
    """Write the records of a database; existing files stay.

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


def run_prune(options: argparse.Namespace) -> Result:
    """Remove old runs of a database or old record files.

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
    """Remove a file; return a message if that fails."""
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
    """A file among the records, its start time and its fate."""

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
    """Decide the fate of a file by its content."""
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
    """Lay out removed files; count kept ones."""
    old = [each for each in found if each.fate == _REMOVED]
    lines: list[Block] = [*_FATES.table(old)] if old else []
    size_mb = sum(each.size_bytes for each in old) / 1e6
    would = "would remove" if dry_run else "removing"
    lines.append(f"{would} {counted(len(old), 'record')}, {size_mb:.1f} MB")
    counts = Counter(each.fate for each in found)
    lines += [f"kept {counts[fate]}: {fate}" for fate in _KEPT if counts[fate]]
    document = {"dry_run": dry_run, "files": _FATES.objects(found)}
    return Listing(tuple(lines), document, _FATES.names, _FATES.rows(found))


# ``ttnn-perf report [FILE...]``: one page for a browser, of a run or of captures.

_RUNS: Final = frozenset({ArtifactKind.RUN_RECORD, ArtifactKind.BENCHMARK_JSON})


def run_report(options: argparse.Namespace) -> Result:
    """Write the page, and traces if asked for.

    Raises:
        InputError: a file is not what it should be, or cannot be read.
        UsageError: nothing to show, records of several runs, or no capture to trace.
        WriteError: the page or a trace cannot be written.
    """
    settings, page_file = project_settings(), options.output
    if options.baselines is not None:
        if not options.baselines.is_dir():
            raise InputError(options.baselines, "expected a folder of baselines, found none")
        settings = replace(settings, baselines=options.baselines)
    if page_file.is_dir():
        message = f"{page_file}: expected a file for the page, found a folder"
        raise UsageError(message)
    check_writable(page_file.parent)
    records, words = _split_files(options.files or [_last_run(settings)])
    captures: list[_CaptureTest] = []
    errors: list[InputError] = []
    if words:
        looked_at, errors = look_at(
            captures_of(options, words), lambda each: _capture_test(each, options, settings)
        )
        captures = [found for _, found in looked_at]
        if not captures and not records:
            return complaining(Result(""), errors)
    source = _source(_joined(records), captures, settings, options)
    lines = []
    if options.trace is not None:
        if not source.tables:
            message = "--trace: no capture of these tests is here; name one, such as an ops CSV"
            raise UsageError(message)
        files, links = write_traces(source.tables, options.trace, page_file)
        source = replace(source, traces=links)
        lines = [f"wrote {file}" for file in files]
        lines.append("traces open at https://ui.perfetto.dev")
    page = page_of(source)
    write_page(page, page_file)
    text = "".join(f"{line}\n" for line in (f"wrote {page_file}: {page.headline}", *lines))
    return complaining(Result(inert_lines(text)), errors)


def _last_run(settings: Settings) -> str:
    record = newest_record(settings)
    if record is None:
        message = (
            "nothing to show: no run is recorded here: make one with pytest --ttnn-perf, or name "
            "a capture or a run record"
        )
        raise UsageError(message)
    return str(record)


def _split_files(words: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Split files into run records and captures."""
    records: list[Path] = []
    captures: list[str] = []
    for word in words:
        if not Path(word).is_dir() and kind_of(Path(word)) in _RUNS:
            records.append(Path(word))
        else:
            captures.append(word)
    return records, captures


class _JoinedRun(Struct, frozen=True):
    """A run, and the files that it was read from."""

    run: Run
    files: tuple[Path, ...]


def _joined(files: Sequence[Path]) -> _JoinedRun:
    """Join the records of a run's shards.

    Raises:
        UsageError: two of them have the same test: they are of different runs.
    """
    if not files:
        return _JoinedRun(Run(None, {}), ())
    first, *others = (read_run(file) for file in files)
    tests = dict(_with_hardware(first))
    for file, other in zip(files[1:], others, strict=True):
        twice = next((name for name in other.tests if name in tests), None)
        if twice is not None:
            message = (
                f"{file} and a record before it both have {twice}: a page shows one run; name "
                "earlier ones with --runs"
            )
            raise UsageError(message)
        tests |= _with_hardware(other)
    if not others:
        return _JoinedRun(first, tuple(files))
    shifts = (each.shift for each in (first, *others) if each.shift is not None)
    complete = first.complete and all(other.complete for other in others)
    whole = replace(first, tests=tests, complete=complete, coverage=None)
    return _JoinedRun(replace(whole, shift=next(shifts, None)), tuple(files))


def _with_hardware(run: Run) -> Iterator[tuple[str, JudgedTest]]:
    """Yield tests with their run's hardware."""
    for name, judged in run.tests.items():
        observation = judged.observation
        own = observation.hardware or run.hardware
        yield name, replace(judged, observation=replace(observation, hardware=own))


class _CaptureTest(Struct, frozen=True):
    """A capture as a test, its op table and its problem."""

    judged: JudgedTest
    table: OpTable | None
    command: str
    problem: str | None


def _capture_test(
    capture: Capture, options: argparse.Namespace, settings: Settings
) -> _CaptureTest:
    """Read a capture and run the checklist on it."""
    subject = capture.read(options)
    groups = select_rules(settings.select, settings.ignore, settings.rules)
    rules = sorted((rule for group in groups for rule in group.rules), key=attrgetter("code"))
    found = checked(subject, rules, settings.rules, None)
    table, name = subject.ops, capture.name
    metrics = list(device_metrics(table, file=name)) if table else []
    devices = len(table.devices) if table else 0
    told = {"arch": table.arch if table else None, "devices": devices or None}
    observation = Observation(
        name,
        {observed.metric.name: replace(observed, gated=False) for observed in metrics},
        facts={fact: value for fact, value in told.items() if value is not None},
        ops=gated_ops(table) if table else None,
        findings=found.findings,
        bottleneck=found.bottleneck,
    )
    databases = [source.file for source in capture.sources if source.input is Input.REPORT]
    folders = (file if file.is_dir() else file.parent for file in databases)
    command = next((visualizer_command(str(f)) for f in folders if is_report_folder(f)), "")
    problem = why_invalid(table, name) if table else None
    return _CaptureTest(JudgedTest(observation), table, command, problem)


def _source(
    recorded: _JoinedRun,
    captures: Sequence[_CaptureTest],
    settings: Settings,
    options: argparse.Namespace,
) -> PageSource:
    """Assemble the page; a capture joins the test of its ops."""
    run, here = recorded.run, Path.cwd()
    known = [judged.observation.ops for judged in run.tests.values() if judged.observation.ops]
    alone = [
        each
        for each in captures
        if each.table is None or not any(is_of(ops, each.table) for ops in known)
    ]
    own = {each.judged.observation.test: each for each in alone}
    run = replace(run, tests={**run.tests, **{name: each.judged for name, each in own.items()}})
    journals, unread = journals_of(settings.artifacts, here)
    source = PageSource(
        _report(run, recorded.files, settings, options),
        BaselineStore(settings.baselines),
        _history(recorded.files, settings, options),
        tables={name: each.table for name, each in own.items() if each.table is not None},
        report_folders={name: each.command for name, each in own.items() if each.command},
        headline=None if recorded.files else _headline(alone),
        journals=journals,
        notes=(
            *(f"no times of ops: {each.problem}" for each in alone if each.problem),
            *unread,
        ),
    )
    given = tuple(each.table for each in captures if each.table is not None)
    return with_captures(source, CaptureSearch(here, settings.artifacts, given=given), here)


def _headline(captures: Sequence[_CaptureTest]) -> str:
    count = counted(len(captures), "capture")
    wrong = [each for each in captures if any(f.fails for f in each.judged.findings)]
    return f"{count}, errors of the checklist in {len(wrong)}" if wrong else f"{count}, no errors"


def _report(
    run: Run, records: Sequence[Path], settings: Settings, options: argparse.Namespace
) -> CiReport:
    """A recorded run as reports have it, with its verdicts."""
    store = BaselineStore(settings.baselines)
    words = () if options.baselines is None else ("--ttnn-perf-baselines", str(options.baselines))
    rerun = Rerun(options=words, records=tuple(map(str, records)))
    tests = list(run.tests.values())
    summary_options = summary_options_of(tests, settings, rerun=rerun, shift=run.shift)
    return ci_report(
        run,
        settings,
        store,
        summary_options=replace(summary_options, health=health_of(run, store, settings)),
        job=ci_job(os.environ, find_root(Path.cwd())),
        record=", ".join(map(str, records)) or None,
    )


def _history(
    records: Sequence[Path], settings: Settings, options: argparse.Namespace
) -> RunHistory:
    """Selected runs and those of the page."""
    folder = settings.artifacts / "runs"
    asked = options.runs is not None or getattr(options, "history", None) is not None
    if not records or not (asked or folder.is_dir()):
        return with_own_runs(RunHistory(()), records, Path.cwd())
    options.last = options.last or USUAL_RUNS
    return with_own_runs(wanted_history(options), records, Path.cwd())


# ``ttnn-perf mcp``: the commands as tools of coding agents.


def run_mcp(_: argparse.Namespace) -> Result:
    """Serve the client that started this process, until it is gone."""
    from pytest_ttnn_perf.cli.main import command_names

    if sys.stdin.isatty():
        sys.stderr.write(
            "ttnn-perf mcp waits for a client, with one line of JSON per message. Clients\n"
            "start it themselves: put it into their configuration. Ctrl-D ends it.\n"
        )
    # A shell starts what it runs in the background deaf to Ctrl-C, and commands would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tools = Toolbox(frozenset(command_names()))
    # Without a buffer: what a client that is gone has not read must not be written again at exit.
    with open(sys.stdout.fileno(), "wb", buffering=0, closefd=False) as stdout:
        Server(tools, sys.stdin.buffer, stdout).serve()
    return Result("")


# ``ttnn-perf skill``: how to optimize with these commands, as a text for coding agents.


def run_skill(_: argparse.Namespace) -> Result:
    """Return the text, in Markdown with front matter."""
    skill = files("pytest_ttnn_perf.agents") / "skill.md"
    return Result(skill.read_text(encoding="utf-8"))


#: More runs than anybody has.
_MOST_RUNS = 1_000_000


def declare_history(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf history``."""
    parser.description = (
        "Show what recorded runs measured, in the order of their commits. With a test, one row "
        "per run; without one, one row per test, metric and hardware key. A test that is called as "
        "a command is, such as prune, stands behind two dashes."
    )
    parser.add_argument(
        "test", metavar="TEST", nargs="?", help="a test id, file or folder, or a pattern"
    )
    _add_runs(parser)
    _add_listing(parser)
    parser.set_defaults(run="history:run_history")


def declare_history_import(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf history import``."""
    parser.description = (
        "Send run records to a database. What is there already is left as it is, so that a command "
        "that was interrupted can be given again."
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        type=Path,
        nargs="*",
        help="run records, or folders of them (default: .ttnn_perf/runs)",
    )
    _add_database(parser)
    parser.set_defaults(run="history:run_history_import")


def declare_history_export(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf history export``."""
    parser.description = "Write the run records of a database to files. Files stay as they are."
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        type=Path,
        help="where to write them (default: .ttnn_perf/runs)",
    )
    _add_database(parser)
    parser.set_defaults(run="history:run_history_export")


def declare_prune(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf history prune``."""
    parser.description = (
        "Remove old run records from .ttnn_perf/runs. Records that baselines cite are kept, and so "
        "are journals of runs that may be under way, and files that are no run records. With "
        "--history, remove old runs from a database instead, or their samples and op tables alone, "
        "which take most of its room."
    )
    parser.add_argument(
        "--keep",
        metavar="AGE|N",
        type=_kept,
        help="what to keep: an age in days such as 90d, or the number of newest runs",
    )
    parser.add_argument(
        "--keep-samples",
        metavar="AGE|N",
        type=_kept,
        help="of a database: the runs whose samples and op tables stay",
    )
    parser.add_argument(
        "--history",
        metavar="URL",
        nargs="?",
        const="",
        help="the database to prune; without a URL, that of TTNN_PERF_HISTORY or the setting",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be removed without removing it"
    )
    add_baselines(parser)
    add_format(parser)
    parser.set_defaults(run="history:run_prune")


def _kept(text: str) -> timedelta | int:
    """Parse what to keep."""
    number = text.removesuffix("d")
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= _MOST_RUNS):
        message = f"expected days such as 90d, or a number of runs such as 200, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return timedelta(days=int(number)) if text.endswith("d") else int(number)


def _add_database(parser: argparse._ActionsContainer) -> None:
    """Declare which database is meant."""
    parser.add_argument(
        "--history",
        metavar="URL",
        help="a database of runs: sqlite:///FILE or postgresql+psycopg://... "
        "(default: TTNN_PERF_HISTORY, or the setting history)",
    )


def declare_trends(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf trends``."""
    parser.description = (
        "Find when times and throughputs of recorded runs changed for good, for better or worse: "
        "between which commits, on which hosts, what else changed, and which ops. A host that is "
        "slow as a whole is named once. Nothing is judged: the exit code is 0."
    )
    _add_runs(parser)
    _add_listing(parser)
    parser.set_defaults(run="history:run_trends")


def declare_report(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf report``."""
    parser.description = (
        "Write one page for a browser, which needs nothing else to open: verdicts, findings, time "
        "by op, timelines, and the history of each metric in the last 50 runs or --last. Nothing "
        "is judged: the exit code is 0."
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="run records of one run, and captures (default: the newest run record)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        type=Path,
        default=Path("report.html"),
        help="where to write it (default: report.html)",
    )
    parser.add_argument(
        "--trace",
        metavar="FOLDER",
        type=Path,
        help="write a Chrome trace of each capture into FOLDER too, for Perfetto",
    )
    add_baselines(parser)
    _add_runs(parser)
    # What files are is found out; of a capture, all regions are shown.
    parser.set_defaults(csv=None, db=None, log=None, region=None, start=None, end=None)
    parser.set_defaults(run="history:run_report")


def add_source(parser: argparse.ArgumentParser) -> None:
    """Declare where runs are read from."""
    sources = parser.add_mutually_exclusive_group()
    sources.add_argument(
        "--runs",
        metavar="PATH",
        type=Path,
        nargs="+",
        help="run records, or folders of them (default: .ttnn_perf/runs)",
    )
    _add_database(sources)


def add_branch(parser: argparse._ActionsContainer) -> None:
    """Declare the branch that runs are of."""
    parser.add_argument(
        "--branch", metavar="NAME", help="only runs of this branch (default: main, or master)"
    )


def _add_runs(parser: argparse.ArgumentParser) -> None:
    """Declare which runs are read."""
    add_source(parser)
    branches = parser.add_mutually_exclusive_group()
    add_branch(branches)
    branches.add_argument(
        "--all-branches", action="store_true", help="also runs of other branches and pull requests"
    )
    parser.add_argument("--dirty", action="store_true", help="also runs with uncommitted changes")
    parser.add_argument(
        "--last", metavar="N", type=number_within(1, _MOST_RUNS), help="only the last N runs"
    )


def _add_listing(parser: argparse.ArgumentParser) -> None:
    """Declare the selection and the format of runs."""
    parser.add_argument("--metric", metavar="NAME", help="only this metric")
    add_format(parser)
