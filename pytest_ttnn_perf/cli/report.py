"""``ttnn-perf report [FILE...]``: one page for a browser, of a run or of captures."""

from __future__ import annotations

import os
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.files import check_writable
from pytest_ttnn_perf._base.text import counted, inert_lines
from pytest_ttnn_perf.analysis.captures.detect import ArtifactKind, kind_of, read_run
from pytest_ttnn_perf.analysis.captures.device_metrics import device_metrics, gated_ops
from pytest_ttnn_perf.analysis.captures.validity import why_invalid
from pytest_ttnn_perf.analysis.checklist.runner import select_rules
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.cli.artifacts import captures_of, complaining, look_at, newest_record
from pytest_ttnn_perf.cli.check import checked
from pytest_ttnn_perf.cli.history import wanted_history
from pytest_ttnn_perf.experiments.journal_report import journals_of
from pytest_ttnn_perf.history.page import PageSource, page_of
from pytest_ttnn_perf.history.page_captures import CaptureSearch, is_of, is_report_folder
from pytest_ttnn_perf.history.page_series import USUAL_RUNS
from pytest_ttnn_perf.history.page_sources import (
    visualizer_command,
    with_captures,
    with_own_runs,
    write_page,
    write_traces,
)
from pytest_ttnn_perf.history.runs import RunHistory
from pytest_ttnn_perf.records.finding import Input
from pytest_ttnn_perf.records.observation import JudgedTest, Observation, Run
from pytest_ttnn_perf.report.numbers import Result
from pytest_ttnn_perf.report.sentences import Rerun
from pytest_ttnn_perf.run.health import health_of
from pytest_ttnn_perf.run.judge import summary_options_of
from pytest_ttnn_perf.run.record import ci_job, ci_report
from pytest_ttnn_perf.run.settings import find_root, project_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.cli.artifacts import Capture
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.report.ci import CiReport

_RUNS: Final = frozenset({ArtifactKind.RUN_RECORD, ArtifactKind.BENCHMARK_JSON})


def run(options: argparse.Namespace) -> Result:
    """Write the page, and traces if they are asked for; say where they are.

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
    records, words = _told_apart(options.files or [_last_run(settings)])
    captures: list[_LookedAt] = []
    errors: list[InputError] = []
    if words:
        looked_at, errors = look_at(
            captures_of(options, words), lambda each: _looked_at(each, options, settings)
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


def _told_apart(words: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the run records among files, and the others: captures, or folders of them."""
    records: list[Path] = []
    captures: list[str] = []
    for word in words:
        if not Path(word).is_dir() and kind_of(Path(word)) in _RUNS:
            records.append(Path(word))
        else:
            captures.append(word)
    return records, captures


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A run, and the files that it was read from."""

    run: Run
    files: tuple[Path, ...]


def _joined(files: Sequence[Path]) -> _Recorded:
    """Return the records of the shards of a run as one; an empty run without any.

    Raises:
        UsageError: two of them have the same test: they are of different runs.
    """
    if not files:
        return _Recorded(Run(None, {}), ())
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
        return _Recorded(first, tuple(files))
    shifts = (each.shift for each in (first, *others) if each.shift is not None)
    complete = first.complete and all(other.complete for other in others)
    whole = replace(first, tests=tests, complete=complete, coverage=None)
    return _Recorded(replace(whole, shift=next(shifts, None)), tuple(files))


def _with_hardware(run: Run) -> Iterator[tuple[str, JudgedTest]]:
    """Yield tests with the hardware that they ran on, where their run says it for all."""
    for name, judged in run.tests.items():
        observation = judged.observation
        own = observation.hardware or run.hardware
        yield name, replace(judged, observation=replace(observation, hardware=own))


@dataclass(frozen=True, slots=True)
class _LookedAt:
    """A capture as a test that measured nothing else, its op table, and what is wrong with it."""

    judged: JudgedTest
    table: OpTable | None
    command: str
    problem: str | None


def _looked_at(capture: Capture, options: argparse.Namespace, settings: Settings) -> _LookedAt:
    """Return what a capture tells, and what the checklist says of it."""
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
    return _LookedAt(JudgedTest(observation), table, command, problem)


def _source(
    recorded: _Recorded,
    captures: Sequence[_LookedAt],
    settings: Settings,
    options: argparse.Namespace,
) -> PageSource:
    """Return what the page is made of; a capture that a test has its ops from is that test's."""
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


def _headline(captures: Sequence[_LookedAt]) -> str:
    count = counted(len(captures), "capture")
    wrong = [each for each in captures if any(f.fails for f in each.judged.findings)]
    return f"{count}, errors of the checklist in {len(wrong)}" if wrong else f"{count}, no errors"


def _report(
    run: Run, records: Sequence[Path], settings: Settings, options: argparse.Namespace
) -> CiReport:
    """Return a recorded run as reports tell it, with the verdicts that the record has."""
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
    """Return the runs that options name, and those of the page; only these where there are none."""
    folder = settings.artifacts / "runs"
    asked = options.runs is not None or getattr(options, "history", None) is not None
    if not records or not (asked or folder.is_dir()):
        return with_own_runs(RunHistory(()), records, Path.cwd())
    options.last = options.last or USUAL_RUNS
    return with_own_runs(wanted_history(options), records, Path.cwd())
