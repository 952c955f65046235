"""``ttnn-perf history [TEST]``: what recorded runs measured, run after run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf.cli.baseline_edits import select_tests
from pytest_ttnn_perf.history.history_report import overview_listing, runs_listing
from pytest_ttnn_perf.history.runs import Wanted, read_history
from pytest_ttnn_perf.history.series import chosen, series_of
from pytest_ttnn_perf.report.numbers import Result
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.history.runs import RunHistory


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


def from_here(folder: Path) -> Path:
    """Return a folder below the current one as seen from there."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def wanted_history(options: argparse.Namespace) -> RunHistory:
    """Read the runs that options name.

    Raises:
        InputError: none of the records can be read.
        UsageError: there are no records, or no such branch.
    """
    folder = from_here(project_settings().artifacts / "runs")
    if options.runs is None and not folder.is_dir():
        message = (
            f"{folder}: expected run records, found no folder: make some with pytest --ttnn-perf, "
            "or name others with --runs"
        )
        raise UsageError(message)
    paths = options.runs or [folder]
    wanted = Wanted(options.branch, all_branches=options.all_branches, dirty=options.dirty)
    history = read_history(paths, Path.cwd(), wanted)
    if history.unreadable and not history.runs and not history.left_out:
        problem = f"none of the {len(history.unreadable)} files is a run record that can be read"
        raise InputError(paths[0], f"{problem}; the first: {history.unreadable[0]}")
    return history if options.last is None else replace(history, runs=history.runs[-options.last :])
