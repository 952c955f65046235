"""What a page is made from: the captures of tests, earlier runs, traces; and the page's file."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.files import write_text
from pytest_ttnn_perf.history.page import PageSource, page_of
from pytest_ttnn_perf.history.page_captures import CaptureSearch
from pytest_ttnn_perf.history.page_series import USUAL_RUNS
from pytest_ttnn_perf.history.runs import RunHistory, Wanted, read_history
from pytest_ttnn_perf.report.layout import shown_path
from pytest_ttnn_perf.report.sentences import command_line
from pytest_ttnn_perf.report.trace_events import write_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.report.page.contents import Page, PageJournal
    from pytest_ttnn_perf.run.record import RunResult


def write_page_of_run(
    result: RunResult, journals: tuple[PageJournal, ...], notes: tuple[str, ...]
) -> Path:
    """Write the page of a run that is over, beside the runs that are recorded already.

    Raises:
        WriteError: the folder or the disk refused.
    """
    settings, cwd, report = result.context.settings, result.context.cwd, result.ci_report
    assert settings.html is not None
    assert report is not None, "a page is one of the reports"
    project = result.context.project
    history = recent_history(settings.artifacts / "runs", result.records[:1], project)
    source = PageSource(report, result.store, history, journals=journals, notes=notes)
    search = CaptureSearch(cwd, settings.artifacts, settings.replay)
    write_page(page_of(with_captures(source, search, cwd)), settings.html)
    return settings.html


def write_page(page: Page, file: Path) -> None:
    """Write a page.

    Raises:
        WriteError: the folder or the disk refused.
    """
    from pytest_ttnn_perf.report.page.write import page_html

    write_text(file, page_html(page))


def with_captures(source: PageSource, search: CaptureSearch, cwd: Path) -> PageSource:
    """Return what a page is made of with the captures of its tests that are still there.

    Tests that failed come first: not all files are read.
    """
    report = source.report
    tables: dict[str, OpTable] = {}
    folders: dict[str, str] = {}
    for judged in sorted(report.tests, key=lambda each: not report.failed(each)):
        observation = judged.observation
        table = search.table_of(observation)
        if table is not None:
            tables[observation.test] = table
        folder = search.report_folder(observation)
        if folder is not None:
            folders[observation.test] = visualizer_command(shown_path(folder, cwd))
    skipped = search.skipped
    notes = (f"timelines: captures of {skipped} tests were not read, as there are too many",)
    return replace(
        source,
        tables={**tables, **source.tables},
        report_folders={**folders, **source.report_folders},
        notes=(*source.notes, *(notes if skipped else ())),
    )


def visualizer_command(folder: str) -> str:
    """Return the command that opens the report of a test."""
    return command_line("ttnn-visualizer", "--profiler-path", folder)


def recent_history(
    folder: Path, own: Sequence[Path], project: Path, *, last: int = USUAL_RUNS
) -> RunHistory:
    """Return the last runs in a folder of records, and those of some records whatever they are of.

    Names of records begin with when their runs did: not all of them are read.
    """
    others = sorted(file for file in folder.glob("*.json") if file not in own)
    try:
        history = read_history(others[len(own) - last :], project, Wanted())
    except UsageError as error:  # such as a repository without a main branch
        history = RunHistory((), notes=(str(error),))
    return with_own_runs(history, own, project)


def with_own_runs(history: RunHistory, own: Sequence[Path], folder: Path) -> RunHistory:
    """Return a history with the runs of some records in it, whatever branch they are of."""
    runs = read_history(own, folder, Wanted(all_branches=True, dirty=True)).runs
    known = {(run.id, run.at) for run in history.runs}
    new = [run for run in runs if (run.id, run.at) not in known]
    return replace(history, runs=(*history.runs, *new))


_NOT_IN_NAMES: Final = re.compile(r"[^\w.\-]+", re.ASCII)
_LONGEST_NAME: Final = 100


def write_traces(
    tables: Mapping[str, OpTable], folder: Path, page: Path
) -> tuple[list[Path], dict[str, str]]:
    """Write a trace of each test into a folder; return the files, and links from the page.

    Raises:
        WriteError: the folder or the disk refused.
    """
    names = _file_names(tables)
    for test, table in tables.items():
        write_trace(table, folder / names[test], name=test)
    place = os.path.relpath(folder, page.parent).replace(os.sep, "/")
    links = {test: quote(f"{place}/{name}") for test, name in names.items()}
    return [folder / name for name in names.values()], links


def _file_names(tests: Iterable[str]) -> dict[str, str]:
    """Return a name for the trace of each test, in which nothing is special."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for test in tests:
        # Of a capture, which is no test, the name of its file says enough.
        told = test if "::" in test else test.rpartition("/")[2]
        stem = _NOT_IN_NAMES.sub("_", told).strip("._")[-_LONGEST_NAME:] or "test"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}_{number}"
        taken.add(name)
        names[test] = f"{name}.trace.json"
    return names
