"""Commands on many recorded runs: history, trends, report."""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.regions import why_invalid
from pytest_ttnn_perf.analysis.readers.detect import ArtifactKind, is_run_record, kind_of, read_run
from pytest_ttnn_perf.analysis.readers.device_csv import device_metrics, gated_ops
from pytest_ttnn_perf.cli.captures import checked
from pytest_ttnn_perf.cli.common import (
    add_argument,
    add_baselines,
    add_captures,
    add_format,
    capture_of,
    from_here,
    newest_record,
    number_within,
    plain,
    select_tests,
)
from pytest_ttnn_perf.cli.records import Gate
from pytest_ttnn_perf.core.errors import InputError, UsageError, WriteError
from pytest_ttnn_perf.core.files import check_writable, read_text, write_text
from pytest_ttnn_perf.core.observation import JudgedTest, Observation, Run
from pytest_ttnn_perf.core.settings import (
    INSTALL,
    check_installed,
    find_root,
    project_settings,
    read_database,
    with_environment,
)
from pytest_ttnn_perf.core.text import counted, inert_lines
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.history.page import (
    USUAL_RUNS,
    PageSource,
    page_of,
    with_own_runs,
)
from pytest_ttnn_perf.history.page_html import page_html
from pytest_ttnn_perf.history.runs import (
    RecordFile,
    RunHistory,
    RunSelection,
    chosen,
    overview_listing,
    read_history,
    record_files,
    runs_listing,
    seconds_of,
    series_of,
)
from pytest_ttnn_perf.history.trends import issue_text, trends_listing
from pytest_ttnn_perf.report.sentences import Rerun
from pytest_ttnn_perf.report.tables import (
    Result,
    shown_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.cli.common import Capture
    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.core.settings import DatabaseUrl, Settings
    from pytest_ttnn_perf.gate.store import StoredFile
    from pytest_ttnn_perf.history.database import Database

#: More runs than anybody has.
_MOST_RUNS = 1_000_000


def add_history(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    parser.usage = "ttnn-perf history [TEST] [options]"
    add("test TEST", "a test id, file or folder, or a pattern", nargs="?")
    _add_runs(parser)
    add("--metric NAME", "only this metric")
    add_format(parser)


def add_trends(parser: argparse.ArgumentParser) -> None:
    _add_runs(parser)
    add_argument(parser, "--metric NAME", "only this metric")
    add_format(parser, "issue")


def add_source(parser: argparse.ArgumentParser) -> None:
    sources = parser.add_mutually_exclusive_group()
    add_argument(sources, "--runs PATH", "run records, or folders of them (default: "
        ".ttnn_perf/runs)", type=Path, nargs="+")  # fmt: skip
    _add_database(sources)


def add_branch(parser: argparse._ActionsContainer) -> None:
    add_argument(parser, "--branch NAME", "only runs of this branch (default: main, or master)")


def _add_database(parser: argparse._ActionsContainer) -> None:
    add_argument(parser, "--history URL", "a database of runs: sqlite:///FILE or "
        "postgresql+psycopg://... (default: TTNN_PERF_HISTORY, or the setting history)"
    )  # fmt: skip


def _add_runs(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    branches = parser.add_mutually_exclusive_group()
    add_branch(branches)
    branches.add_argument(
        "--all-branches", action="store_true", help="also runs of other branches and pull requests"
    )
    add = partial(add_argument, parser)
    add("--dirty", "also runs with uncommitted changes")
    add("--last N", "only the last N runs", type=number_within(1, _MOST_RUNS))


def run_history(options: argparse.Namespace) -> Result:
    """Show what recorded runs measured, in the order of their commits.

    With a test, one row per run; without one, one row per test, metric and hardware key. A test
    that is called as a command is, such as prune, stands behind two dashes.
    """
    history = wanted_history(options)
    series = series_of(history.runs, metric=options.metric)
    if options.metric is not None and history.runs and not series:
        names = {reading.metric.name for run in history.runs for reading in run.readings}
        found = ", ".join(sorted(names)) or "none"
        raise UsageError(f"no run has a metric {options.metric!r}; found: {found}")
    tests = sorted({each.test for each in series})
    if options.test is None:
        listing = overview_listing(chosen(series, tests), history)
    else:
        where = f"the {len(history.runs)} runs that are looked at"
        named = select_tests(tests, [options.test], where=where)
        listing = runs_listing(chosen(series, named), history, all_metrics=bool(options.metric))
    return Result(listing.text(options.format))


def run_trends(options: argparse.Namespace) -> Result:
    """Find when times and throughputs of recorded runs changed for good.

    It says between which commits, on which hosts, what else changed, and which ops. Nothing is
    judged: the exit code is 0.
    """
    history = wanted_history(options)
    if options.format == "issue":
        return Result(issue_text(history, metric=options.metric))
    return Result(trends_listing(history, metric=options.metric).text(options.format))


def wanted_history(options: argparse.Namespace) -> RunHistory:
    """Read the runs that options name."""
    wanted = RunSelection(options.branch, all_branches=options.all_branches, dirty=options.dirty)
    url = None if options.runs else _database_url(options)
    if url is not None:
        from pytest_ttnn_perf.history.database import Database, read_runs

        return read_runs(Database(url), Path.cwd(), wanted, last=options.last)
    return _read_files(options, wanted)


def _stored(baselines: Path) -> Sequence[StoredFile]:
    return list(BaselineStore(baselines).all_files()) if baselines.is_dir() else []


def _records_folder() -> Path:
    return from_here(project_settings().artifacts / "runs")


def _read_files(options: argparse.Namespace, wanted: RunSelection) -> RunHistory:
    folder = _records_folder()
    if options.runs is None and not folder.is_dir():
        raise UsageError(
            f"{folder}: expected run records, found no folder: make some with pytest --ttnn-perf, "
            "or name others with --runs"
        )
    paths = options.runs or [folder]
    history = read_history(paths, Path.cwd(), wanted)
    if history.unreadable and not history.runs and not history.left_out:
        problem = f"none of the {len(history.unreadable)} files is a run record that can be read"
        raise InputError(paths[0], f"{problem}; the first: {history.unreadable[0]}")
    return history if options.last is None else replace(history, runs=history.runs[-options.last :])


def _database_url(options: argparse.Namespace) -> DatabaseUrl | None:
    cwd = Path.cwd()
    if options.history:
        url = read_database(options.history, cwd, "--history: ")
    else:
        url = with_environment(project_settings(), os.environ, cwd).history
    if url is not None:
        check_installed(url)
    return url


def _database(options: argparse.Namespace) -> Database:
    url = _database_url(options)
    if url is None:
        raise UsageError(
            "expected a database, found none: give --history URL, or set TTNN_PERF_HISTORY, as in "
            f"--history sqlite:///perf.db; {INSTALL}"
        )
    from pytest_ttnn_perf.history.database import Database

    return Database(url)


# ``ttnn-perf history import``, ``export`` and ``prune``.

#: As much of a file as identifies it.
_HEAD: Final = 1 << 12


def add_import(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "paths PATH", "run records, or folders of them (default: .ttnn_perf/runs)",
        type=Path, nargs="*")  # fmt: skip
    _add_database(parser)


def run_import(options: argparse.Namespace) -> Result:
    """Send run records to a database.

    What is there already is left as it is, so that a command that was interrupted can be given
    again.
    """
    database = _database(options)
    from pytest_ttnn_perf.history.database import send

    files = list(record_files(options.paths or [_records_folder()]))
    if not files:
        raise UsageError("expected run records, found none: make some with pytest --ttnn-perf")
    done: Counter[bool] = Counter()
    unreadable: list[str] = []
    for file in files:
        try:
            run = read_run(file)
        except InputError as error:
            unreadable.append(str(error))
            continue
        done[send(database, run, RecordFile(file))] += 1
    if not done:
        problem = f"none of the {len(files)} files is a run record that can be read"
        raise InputError(files[0].parent, f"{problem}; the first: {unreadable[0]}")
    there = f"; {done[False]} already there" if done[False] else ""
    lines = [f"sent {counted(done[True], 'run')} to {database.url}{there}"]
    if unreadable:
        lines.append(f"not sent, as they cannot be read: {counted(len(unreadable), 'file')}")
        lines += [f"  {problem}" for problem in unreadable]
    return plain(lines)


def add_export(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "-o --output FOLDER", "where to write them (default: .ttnn_perf/runs)",
        type=Path)  # fmt: skip
    _add_database(parser)


def run_export(options: argparse.Namespace) -> Result:
    """Write the run records of a database to files.

    Files stay as they are.
    """
    database = _database(options)
    from pytest_ttnn_perf.history.database import stored_records

    folder: Path = options.output or _records_folder()
    written = existing = 0
    for record in stored_records(database):
        file = folder / record.name
        if file.exists():
            existing += 1
        else:
            write_text(file, record.text() + "\n")
            written += 1
    there = f"; {existing} already there" if existing else ""
    return plain(
        [f"wrote {counted(written, 'run record')} to {shown_path(folder, folder.cwd())}{there}"]
    )


def add_prune(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    add("--keep AGE", "how old runs may be, in days such as 90d", type=_age, required=True)
    add("--history URL", "the database to prune; without a URL, TTNN_PERF_HISTORY or the "
        "setting", nargs="?", const="")  # fmt: skip
    add("--dry-run", "show what would be removed without removing it")


def _age(text: str) -> timedelta:
    number = text.removesuffix("d")
    if number == text or not (number.isascii() and number.isdecimal() and 1 <= int(number) < 10**6):
        message = f"expected days such as 90d, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return timedelta(days=int(number))


def run_prune(options: argparse.Namespace) -> Result:
    """Remove old run records from .ttnn_perf/runs.

    Records that baselines cite are kept, and so are files that are no run records. A journal is as
    old as its last line. With --history, remove old runs from a database instead.
    """
    oldest_s = time.time() - options.keep.total_seconds()
    what = "would remove" if options.dry_run else "removed"
    if options.history is not None:
        database = _database(options)
        from pytest_ttnn_perf.history.database import prune

        removed, kept = prune(database, oldest_s, dry_run=options.dry_run)
        return plain([f"{what} {counted(removed, 'run')}; kept {counted(kept, 'run')}"])
    records = list(_own_records(_records_folder()))
    cited = {
        session.run
        for file in _stored(project_settings().baselines)
        for test in file.content.tests.values()
        for metric in test.metrics.values()
        for session in metric.sessions
    }
    old = [file for file, run, since_s in records if run not in cited and since_s < oldest_s]
    if not options.dry_run:
        for file in old:
            try:
                file.unlink(missing_ok=True)  # another command may have been quicker
            except OSError as cause:
                raise WriteError(file, cause, doing="remove") from cause
    kept = len(records) - len(old)
    return plain([f"{what} {counted(len(old), 'record')}; kept {counted(kept, 'record')}"])


def _own_records(folder: Path) -> Iterator[tuple[Path, str, float]]:
    """Yield our records with their runs and the times they are of."""
    if not folder.is_dir():
        message = f"{folder}: expected run records, found no folder: there is nothing to remove"
        raise UsageError(message)
    for file in record_files([folder]):
        with suppress(InputError, OSError):
            # Results of benchmarks, too, can be read as a run, and are no records of ours.
            if file.is_symlink() or not is_run_record(read_text(file)[:_HEAD]):
                continue
            run, since_s = read_run(file), None
            if file.suffix != ".jsonl":  # the run of a journal may be under way
                since_s = seconds_of(run.environment.started_at)
            if run.id is not None:
                yield file, run.id, file.stat().st_mtime if since_s is None else since_s


def add_report(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    parser.usage = "ttnn-perf report [FILE ...] [options]"
    add("files FILE", "a run record, or the captures of one program (default: the newest record)",
        nargs="*")  # fmt: skip
    add("-o --output PATH", "where to write it (default: report.html)",
        type=Path, default=Path("report.html"))  # fmt: skip
    add_baselines(parser)
    _add_runs(parser)
    # What files are is found out; of a capture, all regions are shown.
    captures = argparse.ArgumentParser(add_help=False)
    add_captures(captures)
    parser.set_defaults(**vars(captures.parse_args([])))


def run_report(options: argparse.Namespace) -> Result:
    """Write one page for a browser, which needs nothing else to open.

    It has verdicts, findings, time by op, and the history of each metric in the last
    50 runs or --last. Nothing is judged: the exit code is 0.
    """
    settings, page_file = project_settings(), options.output
    if options.baselines is not None:
        if not options.baselines.is_dir():
            raise InputError(options.baselines, "expected a folder of baselines, found none")
        settings = replace(settings, baselines=options.baselines)
    if page_file.is_dir():
        raise UsageError(f"{page_file}: expected a file for the page, found a folder")
    check_writable(page_file.parent)
    records, words = _records_and_captures(options.files, settings)
    captures = [_capture_test(capture_of(options, words), options, settings)] if words else []
    page = page_of(_source(records, captures, settings, options))
    write_text(page_file, page_html(page))
    return Result(inert_lines(f"wrote {page_file}: {page['headline']}") + "\n")


def _records_and_captures(words: Sequence[str], settings: Settings) -> tuple[list[Path], list[str]]:
    newest = None if words else newest_record(settings)
    if not words and newest is None:
        raise UsageError(
            "nothing to show: no run is recorded here: make one with pytest --ttnn-perf, or name "
            "a capture or a run record"
        )
    records: list[Path] = [newest] if newest else []
    captures: list[str] = []
    runs = {ArtifactKind.RUN_RECORD, ArtifactKind.BENCHMARK_JSON}
    for word in words:
        if not Path(word).is_dir() and kind_of(Path(word)) in runs:
            records.append(Path(word))
        else:
            captures.append(word)
    if len(records) > 1:
        raise UsageError(
            f"{records[0]} and {records[1]} are two run records: a page shows one run; name "
            "earlier ones with --runs"
        )
    return records, captures


class _CaptureTest(NamedTuple):
    """A capture as a test, its op table and its problem."""

    judged: JudgedTest
    table: OpTable | None
    problem: str | None


def _capture_test(
    capture: Capture, options: argparse.Namespace, settings: Settings
) -> _CaptureTest:
    subject = capture.read(options)
    found = checked(subject, settings)
    table, name = subject.ops, capture.name
    metrics = list(device_metrics(table, file=name)) if table else []
    facts = {"arch": table.arch, "devices": len(table.devices) or None} if table else {}
    observation = Observation(
        name,
        {observed.metric.name: replace(observed, gated=False) for observed in metrics},
        facts={fact: value for fact, value in facts.items() if value is not None},
        ops=gated_ops(table) if table else None,
        findings=found.findings,
        bottleneck=found.bottleneck,
    )
    problem = why_invalid(table, name) if table else None
    return _CaptureTest(JudgedTest(observation), table, problem)


def _source(
    records: Sequence[Path],
    captures: Sequence[_CaptureTest],
    settings: Settings,
    options: argparse.Namespace,
) -> PageSource:
    """Assemble the page."""
    run, here = read_run(records[0]) if records else Run(None, {}), Path.cwd()
    own = {each.judged.observation.test: each for each in captures}
    run = replace(run, tests={**run.tests, **{name: each.judged for name, each in own.items()}})
    words = () if options.baselines is None else ("--ttnn-perf-baselines", str(options.baselines))
    gate = Gate(settings, BaselineStore(settings.baselines), Rerun(options=words))
    return PageSource(
        gate.summarize(run, records).report(),
        gate.store,
        find_root(here).name,
        _history(records, settings, options),
        tables={name: each.table for name, each in own.items() if each.table is not None},
        of_captures=not records,
        notes=tuple(f"no times of ops: {each.problem}" for each in captures if each.problem),
    )


def _history(
    records: Sequence[Path], settings: Settings, options: argparse.Namespace
) -> RunHistory:
    history = RunHistory(())
    asked = options.runs is not None or options.history is not None
    if records and (asked or (settings.artifacts / "runs").is_dir()):
        options.last = options.last or USUAL_RUNS
        history = wanted_history(options)
    return with_own_runs(history, records, Path.cwd())
