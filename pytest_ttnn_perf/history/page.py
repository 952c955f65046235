"""The page of a run: its tests, its ops, what came before it, and what limits all that."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf._base.text import visible
from pytest_ttnn_perf.analysis.ops.grouping import attribute_regions
from pytest_ttnn_perf.history.history_report import history_lines
from pytest_ttnn_perf.history.page_ops import Chip, most_ops, regions_of_groups, regions_of_table
from pytest_ttnn_perf.history.page_series import EarlierRuns, earlier_runs
from pytest_ttnn_perf.history.page_tests import MOST_SAMPLES, page_tests
from pytest_ttnn_perf.history.page_timelines import most_spans, timelines_of
from pytest_ttnn_perf.history.runs import RunHistory
from pytest_ttnn_perf.records.metric import KERNEL_TIME, metric_in
from pytest_ttnn_perf.records.ops import CALLS
from pytest_ttnn_perf.records.sweep import PointState
from pytest_ttnn_perf.report.attribution import waterfall_of
from pytest_ttnn_perf.report.numbers import display_unit
from pytest_ttnn_perf.report.page.contents import (
    Page,
    PageColumn,
    PageDifference,
    PagePoint,
    PageSweep,
)
from pytest_ttnn_perf.report.sentences import accept_line
from pytest_ttnn_perf.report.sweeps import heading, sweep_sentences
from pytest_ttnn_perf.report.terminal import health_lines, outcome_counts
from pytest_ttnn_perf.report.under_way import drift_line, shift_line
from pytest_ttnn_perf.run.judge import change_by_op, changed_times_ns, differences_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.records.observation import JudgedTest
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.sweep import PointResult, Sweep
    from pytest_ttnn_perf.report.ci import CiReport
    from pytest_ttnn_perf.report.page.contents import (
        PageJournal,
        PageRegion,
        PageTest,
        PageWaterfall,
    )


@dataclass(frozen=True, slots=True)
class PageSource:
    """What a page is made of: a run as all reports tell it, and what is known beside it.

    By the ids of tests, ``tables`` are captures, ``report_folders`` what ttnn-visualizer opens, and
    ``traces`` links to traces. ``journals`` say by which steps tests were optimized. ``headline``
    and ``notes`` stand for, and beside, those of the run.
    """

    report: CiReport
    store: BaselineStore
    history: RunHistory = RunHistory(())
    tables: Mapping[str, OpTable] = field(default_factory=dict)
    report_folders: Mapping[str, str] = field(default_factory=dict)
    traces: Mapping[str, str] = field(default_factory=dict)
    journals: tuple[PageJournal, ...] = ()
    headline: str | None = None
    notes: tuple[str, ...] = ()


def page_of(source: PageSource) -> Page:
    """Return the page of a run."""
    report, run = source.report, source.report.run
    options = report.summary_options
    earlier = earlier_runs(source.history) if source.history.runs else EarlierRuns()
    tests, notes = _tests_with_ops(source, page_tests(report, earlier))
    differences = differences_of(
        run.tests, source.store, hardware=run.hardware, environment=run.environment
    )
    return Page(
        title=visible(_title(report)),
        headline=visible(source.headline or report.headline),
        failed=report.is_bad,
        facts=tuple((name, visible(value)) for name, value in _facts(report)),
        counts=tuple(outcome_counts(report.tests)),
        runs=earlier.runs,
        tests=tuple(tests),
        differences=tuple(
            PageDifference(
                each.name,
                visible(str(each.before)),
                "" if each.now is None else visible(str(each.now)),
            )
            for each in differences
        ),
        trends=earlier.trends,
        sweeps=tuple(map(_sweep, options.sweeps)),
        journals=source.journals,
        notes=tuple(map(visible, (*_notes(source), *source.notes, *notes))),
    )


#: As many characters of a commit as people compare.
_COMMIT: Final = 12


def _title(report: CiReport) -> str:
    run = report.run
    named = (run.environment.commit or "")[:_COMMIT] or run.id
    if named is None and run.tests:  # a capture
        named = next(iter(run.tests)).rpartition("/")[2]
    return ", ".join(filter(None, ("ttnn-perf", run.label, named)))


def _facts(report: CiReport) -> Iterator[tuple[str, str]]:
    """Yield what is known of the run: the commit, the host, the hardware, when."""
    run, environment = report.run, report.run.environment
    own = (judged.observation.hardware or run.hardware for judged in report.tests)
    commit = environment.commit or ""
    facts = {
        "commit": commit[:_COMMIT] + (" with changes" if commit and environment.dirty else ""),
        "branch": environment.branch,
        "label": run.label,
        "hardware": ", ".join(sorted({hardware.key for hardware in own if hardware})),
        "host": environment.runner or environment.host_hash,
        "started": environment.started_at,
        "ttnn": environment.ttnn,
        "python": environment.python,
        "plugin": environment.plugin,
        "run": run.id,
        "record": report.record,
    }
    yield from ((name, value) for name, value in facts.items() if value)


def _notes(source: PageSource) -> Iterator[str]:
    """Say what holds for the whole run, and what limits what can be seen of it."""
    report, options = source.report, source.report.summary_options
    tests = report.tests
    if tests and not any(judged.verdicts for judged in tests) and source.headline is None:
        yield "the record has no verdicts: ttnn-perf gate judges it against baselines"
    if options.shift is not None:
        yield shift_line(options.shift)
    yield from accept_line(tests, options.failed, options.rerun)
    yield from (line.text.strip() for line in health_lines(options.health))
    yield from map(drift_line, options.drifts)
    yield from (f"history: {line.strip()}" for line in history_lines(source.history))
    longest = max(
        (len(each.samples) for judged in tests for each in judged.observation.metrics.values()),
        default=0,
    )
    if longest > MOST_SAMPLES:
        yield f"of more than {MOST_SAMPLES} samples, those at equal distances are drawn"


def _tests_with_ops(
    source: PageSource, tests: Sequence[tuple[JudgedTest, PageTest]]
) -> tuple[list[PageTest], list[str]]:
    """Return tests with what their ops tell, and what is to be known of that."""
    tables = source.tables
    regions = sum(len(j.observation.ops.regions) for j, _ in tests if j.observation.ops)
    ops, spans = most_ops(regions), most_spans(len(tables))
    found: list[PageTest] = []
    notes: dict[str, None] = {}
    for judged, page in tests:
        test, table = judged.observation.test, tables.get(judged.observation.test)
        waterfalls, problem = _waterfalls(source, judged)
        drawn = timelines_of(table, most=spans) if table is not None else None
        known = tuple(_regions(source, judged, table, ops))
        names = {region.name for region in known}
        found.append(
            replace(
                page,
                waterfalls=waterfalls,
                regions=known,
                timelines=tuple(t for t in drawn.timelines if t.region in names) if drawn else (),
                visualizer=source.report_folders.get(test, ""),
                trace=source.traces.get(test, ""),
            )
        )
        notes |= dict.fromkeys([*(drawn.notes if drawn else ()), *problem])
    return found, list(notes)


def _regions(
    source: PageSource, judged: JudgedTest, table: OpTable | None, most: int
) -> Iterator[PageRegion]:
    """Yield the regions of a test: from its capture if that is there, else from the record."""
    observation = judged.observation
    hardware = observation.hardware or source.report.run.hardware
    if observation.ops is None:
        return
    arch = hardware.arch if hardware else table.arch if table else None
    chip = Chip(arch, table.available_cores if table else None)
    known = list(regions_of_groups(observation.ops, chip, most=most))
    if table is not None:
        own = {region.name for region in known}
        known = [each for each in regions_of_table(table, most=most) if each.name in own]
    lines = (observation.bottleneck or "").splitlines()
    for region in known:
        start = f"{region.name}: " if region.name else ""
        said = (line for line in lines if line.startswith(start))
        yield replace(region, bottleneck=visible(next(said, "").removeprefix(start)))


def _waterfalls(
    source: PageSource, judged: JudgedTest
) -> tuple[tuple[PageWaterfall, ...], list[str]]:
    """Return the changes of a test by op, or why its baseline does not tell them any more."""
    observation, store = judged.observation, source.store
    hardware = observation.hardware or source.report.run.hardware
    now, test = observation.ops, observation.test
    if judged.by_op is None or now is None or hardware is None or now.kernel_time == CALLS:
        return (), []
    times_ns = changed_times_ns(judged)
    try:
        then = store.ops_of(hardware, test)
    except InputError as error:
        return (), [f"{test}: no waterfall: {error}"]
    # The record says what the gate saw: with another baseline, it would be another sentence.
    if then is None or change_by_op(then, now, times_ns) != judged.by_op:
        return (), [f"{test}: no waterfall: its baseline is not that of the run any more"]
    return tuple(
        waterfall_of(replace(each, region=region), metric_in(region, KERNEL_TIME))
        for region, each in attribute_regions(then, now, times_ns)
        if each is not None
    ), []


def _sweep(sweep: Sweep) -> PageSweep:
    columns = []
    for each in sweep.metrics:
        values = (abs(v) for point in sweep.points if (v := point.value(each.role)) is not None)
        unit, scale = display_unit(each.metric, max(values, default=None))
        columns.append(PageColumn(each.name, unit, scale))
    return PageSweep(
        visible(sweep.test),
        tuple(columns),
        tuple(
            PagePoint(
                visible(point.test),
                tuple((visible(axis), visible(str(value))) for axis, value in point.axes.items()),
                tuple(point.value(each.role) for each in sweep.metrics),
                best=point.test in sweep.best,
                note=visible(_point_note(point)),
            )
            for point in sweep.points
        ),
        summary=visible("; ".join((heading(sweep), *sweep_sentences(sweep)))),
    )


def _point_note(point: PointResult) -> str:
    if point.state is PointState.MEASURED:
        return ", ".join(point.unmet)
    return ": ".join(filter(None, (point.state.value, point.why)))
