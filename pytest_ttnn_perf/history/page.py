"""The content of a page, from a run or captures and from earlier runs."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.align import attribute_regions, group_ops
from pytest_ttnn_perf.analysis.ops.names import op_and_function, op_name
from pytest_ttnn_perf.analysis.ops.regions import (
    middle_lanes,
    middle_steps,
    once_per_table,
    regions_of,
)
from pytest_ttnn_perf.analysis.ops.roofline import Bound, board_of_arch, group_rooflines
from pytest_ttnn_perf.analysis.ops.timeline import Alignment, Clock, timeline_of, write_trace
from pytest_ttnn_perf.analysis.readers.detect import DATABASE, OP_TABLES, kind_of, op_table_of
from pytest_ttnn_perf.analysis.readers.device_csv import gated_ops
from pytest_ttnn_perf.analysis.show.attribution import waterfall_of
from pytest_ttnn_perf.core.baseline import ops_path
from pytest_ttnn_perf.core.errors import InputError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.files import write_text
from pytest_ttnn_perf.core.finding import RuleOutcome
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Better, Kind, metric_in
from pytest_ttnn_perf.core.ops import CALLS, OpGroups
from pytest_ttnn_perf.core.text import counted, visible
from pytest_ttnn_perf.core.verdict import Outcome, PointState, Reason
from pytest_ttnn_perf.gate.judge import NO_METRIC, settled_value
from pytest_ttnn_perf.gate.judging import change_by_op, changed_times_ns, differences_of
from pytest_ttnn_perf.history.page_html import (
    Page,
    PageHistory,
    PageMetric,
    PageTest,
    page_html,
)
from pytest_ttnn_perf.history.runs import RunHistory, Wanted, read_history
from pytest_ttnn_perf.history.series import history_lines, mark_of, series_of
from pytest_ttnn_perf.history.trends import changed_beside, changes_of, headline
from pytest_ttnn_perf.report.findings import (
    advice_lines,
    by_saving,
    evidence_lines,
    saving_lines,
    title,
)
from pytest_ttnn_perf.report.sentences import (
    ACCEPTED,
    accept_line,
    command_line,
    outcome_word,
    recorded_only,
    sentence,
)
from pytest_ttnn_perf.report.sweeps import heading, sweep_sentences
from pytest_ttnn_perf.report.tables import display_unit, format_ns, format_value, shown_path
from pytest_ttnn_perf.report.terminal import (
    by_remedy,
    drift_line,
    health_lines,
    outcome_counts,
    shift_line,
    worth_saying,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.ops import OpGroup, OpTable
    from pytest_ttnn_perf.history.page_html import Part
    from pytest_ttnn_perf.history.runs import RecordedRun
    from pytest_ttnn_perf.history.series import Series
    from pytest_ttnn_perf.history.trends import SeriesChange

    Identity = tuple[str, Metric, str, tuple[tuple[str, Scalar], ...]]
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_ttnn_perf.analysis.ops.timeline import Span, Timeline
    from pytest_ttnn_perf.core.finding import Finding, Unanswered
    from pytest_ttnn_perf.core.observation import JudgedTest, MetricObservation, Observation
    from pytest_ttnn_perf.core.verdict import PointResult, Sweep, Verdict
    from pytest_ttnn_perf.gate.record import RunResult
    from pytest_ttnn_perf.gate.store import BaselineStore
    from pytest_ttnn_perf.report.ci import CiReport


# What a page shows of ops: the time of each kind, beside what the roofline allows.

#: Kinds of ops on a page, and of one region: the others of it are summed up. A page of many tests
#: must still open.
_PAGE_OPS_ALL, _PAGE_OPS_LEAST, _PAGE_OPS_MOST = 6_000, 8, 60


def most_ops(regions: int) -> int:
    """Limit of op kinds per region of a page.

    >>> most_ops(1), most_ops(200), most_ops(5000)
    (60, 30, 8)
    """
    return max(_PAGE_OPS_LEAST, min(_PAGE_OPS_MOST, _PAGE_OPS_ALL // max(regions, 1)))


class Chip(NamedTuple):
    """Architecture and compute cores of a chip; None where unknown."""

    arch: str | None
    cores: int | None = None


def regions_of_groups(ops: OpGroups, chip: Chip, *, most: int) -> Iterator[Part]:
    """Yield the regions of op groups that have times."""
    for region in () if ops.kernel_time == CALLS else ops.regions:
        groups = [group for group in ops.of(region).groups if group.total_ns > 0]
        if groups:
            yield {
                "name": visible(region),
                "time_us": _us(sum(group.total_ns for group in groups)),
                "calls": 1,
                "ops": tuple(_page_ops(groups, chip, most=most)),
                "roof": _roof(chip),
                "bottleneck": "",
            }


def regions_of_table(table: OpTable, *, most: int) -> list[Part]:
    """Regions of a capture: the middle step on its slowest device."""
    found: list[Part] = []
    chip = Chip(table.arch, table.available_cores)
    for region in regions_of(table).regions:
        groups = group_ops(table, middle_lanes(table, region)).groups
        named = tuple(replace(group, region=region.name) for group in groups)
        pages = regions_of_groups(OpGroups(table.kernel_time, named), chip, most=most)
        found += [{**page, "calls": len(region.steps)} for page in pages]
    return found


def _roof(chip: Chip) -> Part | None:
    """Peak bandwidth and, where the core count is known, peak FLOPS."""
    board = board_of_arch(chip.arch)
    if board is None:
        return None
    peaks = tuple(
        (fidelity, round(tflops * chip.cores, 1))
        for fidelity, tflops in board.tflops.items()
        if chip.cores
    )
    return {
        "dram_gb_s": board.dram_gb_s,
        "peaks_tflops": peaks,
    }


class _Kind(NamedTuple):
    """Key of the ops in one treemap rectangle."""

    name: str
    shape: str
    cores: int | None
    fidelity: str | None


def _page_ops(groups: Sequence[OpGroup], chip: Chip, *, most: int) -> Iterator[Part]:
    """Yield op kinds, longest first, then the rest as one.

    Their times add up to that of the region.
    """
    kinds: dict[_Kind, list[tuple[OpGroup, Roofline]]] = {}
    for group, line in zip(groups, group_rooflines(groups, chip.arch), strict=True):
        kinds.setdefault(_kind(group), []).append((group, line))
    whole_ns = sum(group.total_ns for group in groups)
    ordered = sorted(kinds.items(), key=lambda item: (-_total_ns(item[1]), item[0][:2]))
    # One more is shown rather than "1 other".
    end = most if len(ordered) > most + 1 else most + 1
    for kind, members in ordered[:end]:
        yield _page_op(kind, members, whole_ns)
    rest = [member for _, members in ordered[end:] for member in members]
    if rest:
        total_ns = _total_ns(rest)
        yield {
            "name": f"{len(ordered) - end} other kinds",
            "shape": "",
            "calls": sum(group.count for group, _ in rest),
            "time_us": _us(total_ns),
            "share": round(total_ns / whole_ns, 4),
            "ideal_us": None,
            "bound": "",
            "cores": None,
            "intensity": None,
            "tflops": None,
            "note": "",
        }


def _kind(group: OpGroup) -> _Kind:
    name = op_and_function(group.signature.op, group.settings)
    shape = op_name(group.signature, group.settings).removeprefix(name).strip()
    return _Kind(name, shape, group.cores, group.fidelity)


def _total_ns(members: Sequence[tuple[OpGroup, Roofline]]) -> float:
    return sum(group.total_ns for group, _ in members)


_BOUNDS: Final = {Bound.DRAM: "dram", Bound.COMPUTE: "compute", Bound.NEITHER: "", None: ""}


def _page_op(kind: _Kind, members: Sequence[tuple[OpGroup, Roofline]], whole_ns: float) -> Part:
    total_ns = _total_ns(members)
    ideals = [None if r.least_ns is None else g.count * r.least_ns for g, r in members]
    flops = [
        None if r.stale or r.work.flops is None else g.count * r.work.flops for g, r in members
    ]
    moved = [
        None
        if r.dram_fraction is None or r.work.dram_bytes is None
        else g.count * r.work.dram_bytes
        for g, r in members
    ]
    ideal_ns, operations, moved_bytes = _sum(ideals), _sum(flops), _sum(moved)
    bounds = {_bound(line) for _, line in members}
    notes = [visible(kind.fidelity)] if kind.fidelity else []
    if any(line.stale for _, line in members):
        notes.append("with these shapes it would be faster than the chip: they are not its own")
    return {
        "name": visible(kind.name),
        "shape": visible(kind.shape),
        "calls": sum(group.count for group, _ in members),
        "time_us": _us(total_ns),
        "share": round(total_ns / whole_ns, 4),
        "ideal_us": None if ideal_ns is None else _us(ideal_ns),
        "bound": bounds.pop() if len(bounds) == 1 else "",
        "cores": kind.cores,
        "intensity": _digits(operations / moved_bytes) if operations and moved_bytes else None,
        "tflops": _digits(operations / total_ns / 1000) if operations else None,
        "note": "; ".join(notes),
    }


def _bound(line: Roofline) -> str:
    if line.bound is Bound.BOTH:
        return "dram" if (line.dram_ns or 0.0) >= (line.compute_ns or 0.0) else "compute"
    return _BOUNDS[line.bound]


def _sum(values: Sequence[float | None]) -> float | None:
    """Return a sum; None where a part of it is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _us(ns: float) -> float:
    return round(ns / 1000, 3)


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


# What a page shows of earlier runs: the history of each metric, and trends.

#: So many runs are shown if nobody says otherwise.
USUAL_RUNS: Final = 50
#: So many tests are named of one change.
_MOST_TESTS: Final = 50
_NO_HISTORY: Final = PageHistory()


class EarlierRuns(Struct, frozen=True):
    """Runs, the history of each metric, and trends."""

    runs: tuple[Part, ...] = ()
    histories: Mapping[Identity, PageHistory] | None = None
    trends: tuple[Part, ...] = ()

    def of(self, identity: Identity) -> PageHistory:
        """The history of a metric; empty if no run has it."""
        return (self.histories or {}).get(identity, _NO_HISTORY)


def earlier_runs(history: RunHistory) -> EarlierRuns:
    """Collect histories and trends from ordered runs."""
    groups = changes_of(history).groups
    changed: dict[Identity, list[SeriesChange]] = defaultdict(list)
    for group in groups:
        for told in group:
            if told.series is not None:
                changed[_identity(told.series)].append(told)
    histories = {
        _identity(series): _history(series, changed.get(_identity(series), ()))
        for series in series_of(history.runs)
    }
    trends = tuple(_trend(group) for group in groups)
    return EarlierRuns(tuple(map(_run, history.runs)), histories, trends)


def seen(metric: Metric, value: float) -> float:
    """Round to six digits; counts and accuracies stay exact.

    Of a PCC, the last digits are those that matter: what is short of 1 never reads as 1.

    >>> from pytest_ttnn_perf.core.metric import Metric
    >>> seen(Metric("wall_time", "ns"), 12_345_678.9), seen(Metric("wall_time", "ms"), 1 / 3)
    (12345700, 0.333333)
    """
    exact = metric.kind in {Kind.COUNT, Kind.BYTES, Kind.ACCURACY} or metric.better is Better.EQUAL
    rounded = value if exact else float(f"{value:.6g}")
    whole = int(rounded) if abs(rounded) < 1e15 else None
    return whole if whole == rounded else rounded


def _identity(series: Series) -> Identity:
    return series.test, series.metric, series.key, series.setting


def _run(run: RecordedRun) -> Part:
    texts = (run.id, run.at, run.commit, run.environment.branch, run.host, run.label)
    names = ("id", "started_at", "commit", "branch", "host", "label")
    return {name: visible(text or "") for name, text in zip(names, texts, strict=True)}


def _history(series: Series, told: Sequence[SeriesChange]) -> PageHistory:
    points = series.points
    verdicts = (point.reading.verdict for point in points)
    return PageHistory(
        runs=tuple(point.number for point in points),
        values=tuple(seen(series.metric, point.reading.value) for point in points),
        outcomes=tuple(verdict.outcome.value if verdict else "" for verdict in verdicts),
        marks=tuple(map(mark_of, points)),
        changes=tuple(_changes(series, told)),
    )


def _changes(series: Series, told: Sequence[SeriesChange]) -> Iterator[Part]:
    places = {point.number: place for place, point in enumerate(series.points)}
    for one in sorted(told, key=lambda each: each.trend.bad):
        yield {
            "before": places[one.trend.good],
            "after": places[one.trend.bad],
            "change": round(one.change or 0.0, 4),
            "worse": one.direction == "worse",
            "cause": visible("; or ".join(one.causes)),
            "command": one.command or "",
        }


def _trend(group: Sequence[SeriesChange]) -> Part:
    first = group[0]
    tests = dict.fromkeys(one.series.test for one in group if one.series is not None)
    detail = [*changed_beside(first)]
    detail += [
        f"{one.series.test} by op: {one.by_op}"
        for one in group[:_MOST_TESTS]
        if one.series is not None and one.by_op is not None
    ]
    if len(tests) > _MOST_TESTS:
        detail.append(f"and {len(tests) - _MOST_TESTS} more tests; ttnn-perf trends lists all")
    return {
        "title": visible(headline(first)),
        "detail": tuple(map(visible, detail)),
        "worse": any(one.direction == "worse" for one in group),
        "kind": first.trend.kind.value,
        "tests": tuple(map(visible, tests))[:_MOST_TESTS],
        "command": next((one.command for one in group if one.command), ""),
    }


# What a page shows of when ops ran: one step of each region, shortened where it is long.

#: Spans on a page, and of one timeline: a drawing shows no more, and a page must still open.
_ALL, _LEAST, _MOST = 30_000, 200, 4_000
#: Where all devices pause for so many times as long as they work, pauses are drawn shorter.
_MOSTLY_PAUSES: Final = 2.0
#: From so many microseconds on, two decimals of one are enough.
_LONG_US: Final = 10_000.0
_KERNEL, _WAITS = "k", "w"


def most_spans(timelines: int) -> int:
    """Limit of spans per timeline of a page.

    >>> most_spans(1), most_spans(20), most_spans(1000)
    (4000, 1500, 200)
    """
    return max(_LEAST, min(_MOST, _ALL // max(timelines, 1)))


class DrawnTimelines(NamedTuple):
    """Timelines, and notes on their clocks."""

    timelines: tuple[Part, ...]
    notes: tuple[str, ...]


def timelines_of(table: OpTable, *, most: int) -> DrawnTimelines:
    """Timelines of a capture: the middle step of each region."""
    drawn: list[Part] = []
    notes: dict[str, None] = {}
    for region in regions_of(table).regions:
        timeline = timeline_of(table, middle_steps(table, region)[0])
        drawn.append(_drawn(table, timeline, region.name, most))
        if timeline.clock is not Clock.CYCLES:
            notes[f"timelines: starts are {timeline.clock.value}"] = None
        if timeline.alignment is not Alignment.ALONE:
            notes[f"timelines: devices are put {timeline.alignment.value}"] = None
    return DrawnTimelines(tuple(drawn), tuple(notes))


def _drawn(table: OpTable, timeline: Timeline, region: str, most: int) -> Part:
    shortened: list[str] = []
    each = most // max(len(timeline.lanes), 1)
    longest = max(map(len, timeline.lanes.values()), default=0)
    lanes = {device: spans[:each] for device, spans in timeline.lanes.items()}
    if longest > each:
        shortened.append(f"the first {each} of {longest} ops of each device")
    drawn, told = _with_short_pauses(lanes)
    shortened += told
    names: dict[str, int] = {}
    return {
        "region": visible(region),
        "names": tuple(names),
        "lanes": tuple(_lane(table, device, spans, names) for device, spans in drawn.items()),
        "shortened": "; ".join(shortened),
    }


def _lane(table: OpTable, device: int, spans: Sequence[Span], names: dict[str, int]) -> Part:
    parts = list(_parts(spans))
    decimals = 2 if spans and spans[-1].end_ns / 1000 > _LONG_US else 3
    ops = [table.op(span.row) for span, _, _, _ in parts]
    texts = [visible(op_name(op.signature, op.attributes)) for op in ops]
    return {
        "device": f"device {device}",
        "starts_us": tuple(round(start / 1000, decimals) for _, start, _, _ in parts),
        "durations_us": tuple(round(ns / 1000, 3) for _, _, ns, _ in parts),
        "names": tuple(names.setdefault(text, len(names)) for text in texts),
        "kinds": "".join(kind for _, _, _, kind in parts),
    }


def _parts(spans: Sequence[Span]) -> Iterator[tuple[Span, float, float, str]]:
    """Yield drawn spans: a collective waits first, then exchanges."""
    for span in spans:
        if span.waits_ns > 0:
            yield span, span.start_ns, span.waits_ns, _WAITS
        if span.kernel_ns > span.waits_ns:
            left_ns = span.kernel_ns - span.waits_ns
            yield span, span.start_ns + span.waits_ns, left_ns, _KERNEL


def _with_short_pauses(
    lanes: Mapping[int, Sequence[Span]],
) -> tuple[Mapping[int, Sequence[Span]], list[str]]:
    """Shorten pauses of all devices where they dominate."""
    ordered = sorted((s for spans in lanes.values() for s in spans), key=lambda s: s.start_ns)
    pauses: list[tuple[float, float]] = []
    until_ns = ordered[0].end_ns if ordered else 0.0
    for span in ordered[1:]:
        if span.start_ns > until_ns:
            pauses.append((span.start_ns, span.start_ns - until_ns))
        until_ns = max(until_ns, span.end_ns)
    paused_ns = sum(ns for _, ns in pauses)
    worked_ns = until_ns - paused_ns - (ordered[0].start_ns if ordered else 0.0)
    if paused_ns <= _MOSTLY_PAUSES * worked_ns:
        return lanes, []
    most_ns = worked_ns / len(pauses)
    cut = [(start, ns - most_ns) for start, ns in pauses if ns > most_ns]
    left_out_ns = sum(ns for _, ns in cut)
    told = (
        f"{counted(len(cut), 'pause')} of more than {format_ns(most_ns)} drawn as that long: "
        f"{format_ns(left_out_ns)} left out"
    )
    return {device: list(_earlier(spans, cut)) for device, spans in lanes.items()}, [told]


def _earlier(spans: Sequence[Span], cut: Sequence[tuple[float, float]]) -> Iterator[Span]:
    """Yield spans without the pauses that end before them."""
    place, gone_ns = 0, 0.0
    for span in spans:
        while place < len(cut) and cut[place][0] <= span.start_ns:
            gone_ns += cut[place][1]
            place += 1
        yield span._replace(start_ns=span.start_ns - gone_ns)


# What a page shows of one test of a run: its verdicts, its numbers and its findings.

#: Of more samples, those at equal distances are drawn.
MOST_SAMPLES: Final = 200
#: Words for tests that no verdict names, and for those that fail whatever their verdicts are.
_RECORDED, _NO_ROOM, _MISTAKE, _FINDING = "RECORDED", "OUT_OF_MEMORY", "ERROR", "FINDING"
#: What comes first, the worst.
_ORDER: Final = (
    _MISTAKE,
    Outcome.REGRESSED.value,
    Outcome.NO_DATA.value,
    Outcome.TOO_NOISY.value,
    Outcome.NOT_COMPARABLE.value,
    Outcome.NO_BASELINE.value,
    _FINDING,
    Outcome.SHIFTED.value,
    ACCEPTED,
    Outcome.IMPROVED.value,
    _NO_ROOM,
    Outcome.WITHIN.value,
    _RECORDED,
)


def page_tests(report: CiReport, earlier: EarlierRuns) -> list[tuple[JudgedTest, PageTest]]:
    """All tests of a run, worst first, without their ops."""
    found = [(judged, _test(report, judged, earlier)) for judged in report.tests]
    found.sort(key=lambda pair: (pair[1].worst, -_change(pair[0]), pair[1].id))
    return found


def _test(report: CiReport, judged: JudgedTest, earlier: EarlierRuns) -> PageTest:
    observation = judged.observation
    failed = report.failed(judged)
    hardware = observation.hardware or report.run.hardware
    key = hardware.key if hardware else ""
    outcome = _outcome(report, judged)
    commands, advice = _remedies(report, judged)
    return PageTest(
        id=visible(observation.test),
        outcome=outcome,
        failed=failed,
        # What failed comes before everything that did not.
        worst=_ORDER.index(outcome) + (0 if failed else len(_ORDER)),
        key=key,
        setting=tuple(
            (visible(name), visible(str(value)))
            for name, value in sorted(observation.setting.values.items())
        ),
        summary=visible("; ".join([*_summary(judged, outcome), *advice])),
        by_op=visible(judged.by_op or ""),
        commands=tuple(commands),
        metrics=tuple(_metrics(judged, key, earlier)),
        findings=tuple(
            page_findings(judged.findings, observation.unanswered, enforced=report.enforced)
        ),
    )


def _outcome(report: CiReport, judged: JudgedTest) -> str:
    """The word for a test: its worst verdict, or another failure."""
    if judged.observation.problems:
        return _MISTAKE
    words = [outcome_word(verdict, judged) for verdict in judged.verdicts]
    if report.failed(judged) and report.enforced and any(f.fails for f in judged.findings):
        words.append(_FINDING)
    # It is a result of a point of a sweep, and no failure.
    alone = _RECORDED if judged.observation.out_of_memory is None else _NO_ROOM
    return min(words, key=_ORDER.index, default=alone)


def _change(judged: JudgedTest) -> float:
    """Largest change for the worse, rounded."""
    return round(max((verdict.change or 0.0 for verdict in judged.verdicts), default=0.0), 3)


def _summary(judged: JudgedTest, outcome: str) -> Iterator[str]:
    """Yield the deciding sentence; of several, the largest change."""
    observation = judged.observation
    if outcome == _MISTAKE:
        yield from observation.problems
    elif outcome == _FINDING:
        yield from (title(finding) for finding in judged.findings if finding.fails)
    else:
        decided = [v for v in judged.verdicts if outcome_word(v, judged) == outcome]
        if decided:
            yield sentence(max(decided, key=lambda verdict: abs(verdict.change or 0.0)))
        elif observation.out_of_memory is not None:
            yield f"out of memory: {observation.out_of_memory}"
        elif observation.bottleneck is not None:
            yield from observation.bottleneck.splitlines()
        else:
            yield f"nothing is gated: {counted(len(observation.metrics), 'metric')} recorded only"


def _remedies(report: CiReport, judged: JudgedTest) -> tuple[list[str], list[str]]:
    """Commands that resolve failures, and advice without a command."""
    options = report.summary_options
    told = [v for v in judged.verdicts if worth_saying(v, judged, summary_options=options)]
    failed = report.failed(judged)
    blocked = failed and any(finding.fails for finding in judged.findings)
    shifted = options.shift is not None
    groups = by_remedy(judged, told, rerun=options.rerun, blocked=blocked, shifted=shifted)
    remedies = [remedy for remedy in groups if remedy is not None]
    commands = [remedy.command for remedy in remedies if remedy.command is not None]
    profile = options.rerun.full_profile(judged.observation) if failed else None
    if profile is not None and not judged.observation.problems:
        commands.append(profile)
    return commands, [remedy.advice for remedy in remedies if remedy.command is None]


def _metrics(judged: JudgedTest, key: str, earlier: EarlierRuns) -> Iterator[PageMetric]:
    """Yield judged metrics, then recorded ones."""
    for verdict in judged.verdicts:
        if verdict.metric.name != NO_METRIC.name:
            yield _metric(judged, verdict.metric, verdict, key, earlier)
    for name in recorded_only(judged):
        yield _metric(judged, judged.observation.metrics[name].metric, None, key, earlier)


def _metric(
    judged: JudgedTest, metric: Metric, verdict: Verdict | None, key: str, earlier: EarlierRuns
) -> PageMetric:
    observation = judged.observation
    observed = observation.metrics.get(metric.name)
    value = verdict.observed if verdict else None
    if value is None and observed is not None:
        value = settled_value(observed)
    centre = verdict.centre if verdict else None
    unit, scale = display_unit(metric, value if centre is None else centre)
    setting = tuple(sorted(observation.setting.values.items(), key=lambda item: item[0]))
    gated = verdict is not None and verdict.reason is not Reason.EXPLAINS

    def shown(number: float | None) -> float | None:
        return None if number is None or not isfinite(number) else seen(metric, number)

    return PageMetric(
        name=visible(metric.name),
        unit=visible(unit),
        scale=scale,
        better=metric.better.value,
        outcome=outcome_word(verdict, judged) if verdict else "",
        sentence=visible(sentence(verdict) if verdict else _recorded(metric, value, observed)),
        value=shown(value),
        baseline=shown(centre),
        limit=shown(verdict.worst_allowed) if verdict else None,
        target=shown(observed.limits.target) if observed else None,
        gated=gated,
        why_ungated=visible((observed and observed.why_ungated) or ""),
        samples=_samples(metric, observed.samples) if observed else (),
        confirmations=tuple(_samples(metric, each) for each in observed.confirmations)
        if observed
        else (),
        history=earlier.of((observation.test, metric, key, setting)),
        change=verdict.change_as_read if verdict else None,
    )


def _recorded(metric: Metric, value: float | None, observed: MetricObservation | None) -> str:
    if value is None:
        note = observed.note if observed else None
        return ": ".join(filter(None, (f"{metric.name} not measured", note)))
    return f"{metric.name} {format_value(metric, value)}, recorded only"


def _samples(metric: Metric, samples: Sequence[float]) -> tuple[float, ...]:
    finite = [sample for sample in samples if isfinite(sample)]
    step = -(-len(finite) // MOST_SAMPLES) or 1
    return tuple(seen(metric, sample) for sample in finite[::step])


def page_findings(
    findings: Sequence[Finding], unanswered: Iterable[Unanswered] = (), *, enforced: bool
) -> Iterator[Part]:
    """Yield findings by saving, then waived and unmeasured ones."""
    found = [f for f in findings if f.outcome is RuleOutcome.FOUND and not f.quiet]
    for finding in by_saving(found):
        if finding.stands:
            yield _finding(finding, "found", enforced=enforced)
    for finding in by_saving(found):
        if not finding.stands:
            yield _finding(finding, "waived", enforced=enforced)
    reasons: dict[str, dict[str, None]] = {}
    for group in unanswered:
        if group.outcome is RuleOutcome.NOT_MEASURED:
            reasons.setdefault(group.reason, {}).update(dict.fromkeys(group.codes))
    for finding in findings:
        if finding.outcome is RuleOutcome.NOT_MEASURED:
            reasons.setdefault(finding.reason or "", {})[finding.code] = None
    for reason, codes in reasons.items():
        one = len(codes) == 1
        yield {
            "code": next(iter(codes)) if one else counted(len(codes), "rule"),
            "title": visible(reason),
            "state": "not measured",
            "fails": False,
            "region": "",
            "saving_us": None,
            "share": None,
            "evidence": () if one else (", ".join(codes),),
            "fix": (),
        }


def _finding(finding: Finding, state: str, *, enforced: bool) -> Part:
    saving_ns, step_ns = finding.saving_ns, finding.step_ns
    # What is saved of a wall time may be more than a step, which is a part of that.
    of_step = saving_ns / step_ns if saving_ns is not None and step_ns else None
    evidence = (*evidence_lines(finding), *saving_lines(finding))
    return {
        "code": finding.code,
        "title": visible(title(finding).removeprefix(f"{finding.code} ")),
        "state": state,
        "fails": finding.fails and enforced,
        "region": visible(finding.region),
        "saving_us": None if saving_ns is None else round(saving_ns / 1000, 3),
        "share": None if of_step is None or of_step > 1 else round(of_step, 4),
        "evidence": tuple(visible(text.strip()) for text in evidence),
        "fix": tuple(visible(text.strip()) for text in advice_lines(finding)),
    }


# Which capture the ops of a test come from: a record has sums of them, a capture has each op.

#: So many files are read for a page: each takes a moment.
_MOST_FILES: Final = 50
_gated: Final = once_per_table(gated_ops)
#: What ttnn-visualizer needs beside the database.
_CONFIG: Final = "config.json"


class CaptureSearch(Struct):
    """Finds the capture of a test among files; each is read once.

    ``folder`` is where tests ran, ``replay`` where captures of them were recorded, ``artifacts``
    where runs keep theirs. ``given`` are captures that were read already.
    """

    folder: Path
    artifacts: Path
    replay: Path | None = None
    given: tuple[OpTable, ...] = ()
    #: Tests that were not looked for, as too many files were read already.
    skipped: int = 0
    _read: dict[Path, OpTable | None] = {}

    def table_of(self, observation: Observation) -> OpTable | None:
        """Find the capture of a test's ops, if it still exists."""
        ops = observation.ops
        if ops is None or ops.kernel_time == CALLS:
            return None
        for table in self.given:
            if is_of(ops, table):
                return table
        for file in self._files(observation):
            if file not in self._read and len(self._read) >= _MOST_FILES:
                self.skipped += 1
                return None
            found = self._table(file)
            if found is not None and is_of(ops, found):
                return found
        return None

    def _files(self, observation: Observation) -> Iterator[Path]:
        yield from (self.folder / name for name in observation.attached)
        if self.replay is not None:
            from pytest_ttnn_perf.analysis.readers.attach import recorded_files

            for name in dict.fromkeys(filter(None, (observation.test, observation.node_id))):
                yield from recorded_files(self.replay, name)

    def _table(self, file: Path) -> OpTable | None:
        if file not in self._read:
            try:
                has_ops = file.is_file() and kind_of(file) in OP_TABLES
                self._read[file] = op_table_of(file) if has_ops else None
            except TtnnPerfError:  # gone or changed since: the timeline is all that is lost
                self._read[file] = None
        return self._read[file]

    def report_folder(self, observation: Observation) -> Path | None:
        """Find the report of a test that ttnn-visualizer can open."""
        attached = (self.folder / name for name in observation.attached)
        folders = [file.parent for file in attached if file.name == DATABASE]
        folders.append(self.artifacts / "reports" / ops_path(observation.test).with_suffix(""))
        return next(filter(is_report_folder, folders), None)


def is_report_folder(folder: Path) -> bool:
    """Whether ttnn-visualizer can open a folder."""
    return (folder / DATABASE).is_file() and (folder / _CONFIG).is_file()


def is_of(ops: OpGroups, table: OpTable) -> bool:
    """Whether op groups come from a capture: all regions, equal times."""
    whole = _gated(table)
    if whole is None:
        return False
    return all(_times(ops.of(region)) == _times(whole.of(region)) for region in ops.regions)


def _times(ops: OpGroups) -> Mapping[tuple[str, int, float], int]:
    return Counter((group.signature.op, group.count, group.total_ns) for group in ops.groups)


# The page of a run: its tests, its ops, what came before it, and what limits all that.


class PageSource(Struct, frozen=True):
    """Input of a page: a run as reported, and related captures and runs.

    By the ids of tests, ``tables`` are captures, ``report_folders`` what ttnn-visualizer opens, and
    ``traces`` links to traces. ``journals`` say by which steps tests were optimized. ``headline``
    and ``notes`` stand for, and beside, those of the run.
    """

    report: CiReport
    store: BaselineStore
    history: RunHistory = RunHistory(())
    tables: Mapping[str, OpTable] = {}
    report_folders: Mapping[str, str] = {}
    traces: Mapping[str, str] = {}
    journals: tuple[dict[str, Any], ...] = ()
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
            {
                "name": each.name,
                "before": visible(str(each.before)),
                "now": "" if each.now is None else visible(str(each.now)),
                "note": "",
            }
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
    """Yield facts of the run: commit, host, hardware, time."""
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
    """Yield notes on the whole run and on limits of the page."""
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
    """Add ops, timelines and waterfalls to tests; collect notes."""
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
        names = {region["name"] for region in known}
        found.append(
            replace(
                page,
                waterfalls=waterfalls,
                regions=known,
                timelines=tuple(t for t in drawn.timelines if t["region"] in names)
                if drawn
                else (),
                visualizer=source.report_folders.get(test, ""),
                trace=source.traces.get(test, ""),
            )
        )
        notes |= dict.fromkeys([*(drawn.notes if drawn else ()), *problem])
    return found, list(notes)


def _regions(
    source: PageSource, judged: JudgedTest, table: OpTable | None, most: int
) -> Iterator[Part]:
    """Yield the regions of a test from its capture or its record."""
    observation = judged.observation
    hardware = observation.hardware or source.report.run.hardware
    if observation.ops is None:
        return
    arch = hardware.arch if hardware else table.arch if table else None
    chip = Chip(arch, table.available_cores if table else None)
    known = list(regions_of_groups(observation.ops, chip, most=most))
    if table is not None:
        own = {region["name"] for region in known}
        known = [each for each in regions_of_table(table, most=most) if each["name"] in own]
    lines = (observation.bottleneck or "").splitlines()
    for region in known:
        start = f"{region['name']}: " if region["name"] else ""
        said = (line for line in lines if line.startswith(start))
        yield {**region, "bottleneck": visible(next(said, "").removeprefix(start))}


def _waterfalls(
    source: PageSource, judged: JudgedTest
) -> tuple[tuple[dict[str, Any], ...], list[str]]:
    """Changes by op, or a note if the baseline has changed since."""
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


def _sweep(sweep: Sweep) -> Part:
    columns = []
    for each in sweep.metrics:
        values = (abs(v) for point in sweep.points if (v := point.value(each.role)) is not None)
        unit, scale = display_unit(each.metric, max(values, default=None))
        columns.append(
            {
                "name": each.name,
                "unit": unit,
                "scale": scale,
            }
        )
    return {
        "name": visible(sweep.test),
        "metrics": tuple(columns),
        "points": tuple(
            {
                "test": visible(point.test),
                "axes": tuple(
                    (visible(axis), visible(str(value))) for axis, value in point.axes.items()
                ),
                "values": tuple(point.value(each.role) for each in sweep.metrics),
                "best": point.test in sweep.best,
                "note": visible(_point_note(point)),
            }
            for point in sweep.points
        ),
        "summary": visible("; ".join((heading(sweep), *sweep_sentences(sweep)))),
    }


def _point_note(point: PointResult) -> str:
    if point.state is PointState.MEASURED:
        return ", ".join(point.unmet)
    return ": ".join(filter(None, (point.state.value, point.why)))


def write_page_of_run(
    result: RunResult, journals: tuple[dict[str, Any], ...], notes: tuple[str, ...]
) -> Path:
    """Write the page of a finished run with its recorded history.

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
    write_text(file, page_html(page))


def with_captures(source: PageSource, search: CaptureSearch, cwd: Path) -> PageSource:
    """Add the captures of tests that still exist.

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
    """The last runs in a folder, and ``own`` runs on any branch.

    Names of records begin with when their runs did: not all of them are read.
    """
    others = sorted(file for file in folder.glob("*.json") if file not in own)
    try:
        history = read_history(others[len(own) - last :], project, Wanted())
    except UsageError as error:  # such as a repository without a main branch
        history = RunHistory((), notes=(str(error),))
    return with_own_runs(history, own, project)


def with_own_runs(history: RunHistory, own: Sequence[Path], folder: Path) -> RunHistory:
    """Add the runs of some records, on any branch."""
    runs = read_history(own, folder, Wanted(all_branches=True, dirty=True)).runs
    known = {(run.id, run.at) for run in history.runs}
    new = [run for run in runs if (run.id, run.at) not in known]
    return replace(history, runs=(*history.runs, *new))


_NOT_IN_NAMES: Final = re.compile(r"[^\w.\-]+", re.ASCII)
_LONGEST_NAME: Final = 100


def write_traces(
    tables: Mapping[str, OpTable], folder: Path, page: Path
) -> tuple[list[Path], dict[str, str]]:
    """Write one trace per test; return files and links from the page.

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
    """Safe and distinct file names for traces."""
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
