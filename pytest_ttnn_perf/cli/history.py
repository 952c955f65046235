"""``ttnn-perf history [TEST]``: what recorded runs measured, run after run."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.cli.artifacts import from_here
from pytest_ttnn_perf.cli.baseline_edits import matches, select_tests
from pytest_ttnn_perf.history.history_report import overview_listing, runs_listing
from pytest_ttnn_perf.history.renames import follow, renamed_tests
from pytest_ttnn_perf.history.runs import Wanted, read_history
from pytest_ttnn_perf.history.series import chosen, series_of
from pytest_ttnn_perf.records.database_url import check_installed
from pytest_ttnn_perf.report.numbers import Result
from pytest_ttnn_perf.run.settings import project_settings, read_database, with_environment

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pytest_ttnn_perf.history.renames import Renamed
    from pytest_ttnn_perf.history.runs import RunHistory
    from pytest_ttnn_perf.records.database_url import DatabaseUrl


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
        named = select_tests(tests, [options.test], where=_where(history))
        listing = runs_listing(chosen(series, named), history, all_metrics=bool(options.metric))
    return Result(listing.text(options.format))


def _where(history: RunHistory) -> str:
    return f"the {len(history.runs)} runs that are looked at"


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
    from pytest_ttnn_perf.history.database import Database
    from pytest_ttnn_perf.history.database_reading import Asked, read_runs

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
    renamed, problem = _renamed(project_settings().baselines)
    url = None if options.runs else asked_database(options)
    if url is not None:
        history = _read_database(url, options, wanted, renamed)
        return _followed(history, renamed, problem)
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
    history = _followed(history, renamed, problem)
    return history if options.last is None else replace(history, runs=history.runs[-options.last :])


def _renamed(baselines: Path) -> tuple[Renamed, str | None]:
    """Return what tests were called before, as the baselines tell it, or why that is not known."""
    try:
        files = BaselineStore(baselines).all_files() if baselines.is_dir() else ()
        return renamed_tests(files), None
    except InputError as error:
        return {}, f"tests that were renamed are not followed: {error}"


def _followed(history: RunHistory, renamed: Renamed, problem: str | None) -> RunHistory:
    """Return runs with tests under their names of today."""
    notes = (*history.notes, problem) if problem else history.notes
    return replace(history, runs=follow(history.runs, renamed), notes=notes)
