"""The content of a page: a run or captures, and earlier runs.

Numbers of a metric are in its own unit; times ``scale`` they are in the ``unit`` that is shown. The
columns of a history are parallel: the places of runs, values, outcomes of verdicts, and marks that
say what a run did to the baseline. ``worst`` sorts tests, 0 is the worst.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import all_rules
from pytest_ttnn_perf.analysis.ops.align import attribute_regions
from pytest_ttnn_perf.analysis.ops.names import op_and_function, op_name
from pytest_ttnn_perf.analysis.ops.roofline import Bound, board_of_arch, group_rooflines
from pytest_ttnn_perf.analysis.show.attribution import waterfall_of
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.files import write_text
from pytest_ttnn_perf.core.finding import RuleOutcome
from pytest_ttnn_perf.core.hardware import UNKNOWN
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Better, Kind, metric_in
from pytest_ttnn_perf.core.observation import Outcome, Reason, value_of
from pytest_ttnn_perf.core.ops import CALLS, OpGroups
from pytest_ttnn_perf.core.text import counted, visible
from pytest_ttnn_perf.gate.judge import NO_METRIC
from pytest_ttnn_perf.gate.judging import change_by_op, changed_times_ns, differences_of
from pytest_ttnn_perf.history.page_html import TONES, page_html
from pytest_ttnn_perf.history.runs import (
    RunHistory,
    RunSelection,
    history_lines,
    mark_of,
    read_history,
    series_of,
)
from pytest_ttnn_perf.report.findings import (
    by_saving,
    evidence_lines,
    saving,
    title,
)
from pytest_ttnn_perf.report.sentences import (
    accept_line,
    label,
    recorded_only,
    sentence,
)
from pytest_ttnn_perf.report.tables import display_unit, format_value
from pytest_ttnn_perf.report.terminal import (
    by_remedy,
    health_lines,
    shift_line,
    worth_saying,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.core.finding import Finding, UnansweredRules
    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import JudgedTest, Verdict
    from pytest_ttnn_perf.core.ops import OpGroup, OpTable
    from pytest_ttnn_perf.gate.store import BaselineStore
    from pytest_ttnn_perf.history.page_html import Part
    from pytest_ttnn_perf.history.runs import Series
    from pytest_ttnn_perf.report.ci import CiReport
    from pytest_ttnn_perf.report.run import RunResult

    Identity = tuple[str, Metric, str, tuple[tuple[str, Scalar], ...]]

#: So many runs are shown if nobody says otherwise.
USUAL_RUNS: Final = 50
#: Of more samples, those at equal distances are drawn.
MOST_SAMPLES: Final = 200
#: As many characters of a commit as people compare; a title has room for fewer.
_COMMIT, _SHORT_COMMIT = 12, 7


class PageSource(Struct, frozen=True):
    """A run as reported, with related captures and runs.

    ``tables`` are captures, by the ids of tests. ``of_captures``: there is no run.
    """

    report: CiReport
    store: BaselineStore
    project: str
    history: RunHistory = RunHistory(())
    tables: Mapping[str, OpTable] = {}
    of_captures: bool = False
    notes: tuple[str, ...] = ()


def write_page_of_run(result: RunResult) -> Path:
    settings, report = result.context.settings, result.ci_report
    assert settings.html is not None
    assert report is not None, "a page is one of the reports"
    project, own = result.context.project, result.records[:1]
    # Names of records begin with when their runs did: not all of them are read.
    records = (settings.artifacts / "runs").glob("*.json")
    others = sorted(file for file in records if file not in own)[len(own) - USUAL_RUNS :]
    try:
        history = read_history(others, project, RunSelection())
    except UsageError as error:  # such as a repository without a main branch
        history = RunHistory((), notes=(str(error),))
    history = with_own_runs(history, own, project)
    source = PageSource(report, result.store, project.name, history)
    page = page_of(source)
    write_text(settings.html, page_html(page))
    return settings.html


def with_own_runs(history: RunHistory, own: Sequence[Path], folder: Path) -> RunHistory:
    """Add the runs of some records, on any branch."""
    runs = read_history(own, folder, RunSelection(all_branches=True, dirty=True)).runs
    known = {(run.id, run.at) for run in history.runs}
    new = [run for run in runs if (run.id, run.at) not in known]
    return replace(history, runs=(*history.runs, *new))


def page_of(source: PageSource) -> Part:
    report, run = source.report, source.report.run
    earlier = EarlierRuns(source.history)
    tests, notes = _tests(source, earlier)
    differences = differences_of(
        (judged.observation for judged in run.tests.values()),
        source.store,
        hardware=run.hardware,
        environment=run.environment,
    )
    subject, details = _subject(source)
    headline = _headline(source, tests)
    within = f" ({details})" if details else ""
    gated = (each for test in tests for each in test["metrics"] if each["gated"])
    counts = Counter(metric["outcome"] for metric in gated)
    found = {finding["code"] for test in tests for finding in test["findings"]}
    return {
        "title": visible(f"{subject}: {headline}{within}"),
        "subject": visible(f"{subject}{within}"),
        "headline": visible(headline),
        "tone": "bad" if report.is_bad else "plain" if source.of_captures else "good",
        "facts": [*_facts(report)],
        "counts": [
            (counts[word], word.lower().replace("_", " "), TONES[word])
            for word in TONES
            if counts[word]
        ],
        "runs": earlier.runs,
        "tests": tests,
        "rules": {rule.code: rule.page for rule in all_rules() if rule.code in found},
        "differences": [
            (name, str(before), "" if now is None else str(now))
            for name, before, now in differences
        ],
        "notes": [*_notes(source), *source.notes, *notes],
    }


def _subject(source: PageSource) -> tuple[str, str]:
    """Return the subject of a page; its boards, commit and label."""
    report = source.report
    tests, environment = report.tests, report.run.environment
    own = (judged.observation.hardware or report.run.hardware for judged in tests)
    boards = {each.arch if each.board == UNKNOWN else each.board for each in own if each}
    if source.of_captures:  # which know no boards
        boards = {table.arch for table in source.tables.values() if table.arch}
    commit = (environment.commit or "")[:_SHORT_COMMIT]
    details = (*sorted(boards), commit, report.run.label)
    alone = source.of_captures and len(tests) == 1
    subject = tests[0].observation.test.rpartition("/")[2] if alone else source.project
    return subject, ", ".join(filter(None, details))


def _headline(source: PageSource, tests: Sequence[Part]) -> str:
    """Return the result of a run, or the findings of captures."""
    if not source.of_captures:
        headline = source.report.headline
        failed = {test["outcome"] for test in tests if test["failed"]}
        regressed = failed == {Outcome.REGRESSED.value}
        return headline.replace(" failed", " regressed") if regressed else headline
    found = [each for test in tests for each in test["findings"] if each["state"] == "found"]
    wrong = sum(each["fails"] for each in found)
    errors = f" ({counted(wrong, 'error')})" if wrong else ""
    most = max(found, key=lambda each: each["saving_us"] or 0.0, default=None)
    worth = most["saving"].removeprefix("at most ") if most else ""
    saves = f", up to {worth}" if worth else ""
    count = counted(len(found), "finding") if found else "no findings"
    return f"{count}{errors}{saves}"


def _facts(report: CiReport) -> Iterator[tuple[str, str]]:
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
    report, options = source.report, source.report.summary_options
    tests = report.tests
    if tests and not any(judged.verdicts for judged in tests) and not source.of_captures:
        yield f"Not judged yet: ttnn-perf gate {report.record or 'RUN.json'}"
    if options.shift is not None:
        yield shift_line(options.shift)
    yield from accept_line(tests, options.failed, options.rerun)
    yield from (line.text.strip() for line in health_lines(options.health, options.rerun))
    yield from (f"history: {line.strip()}" for line in history_lines(source.history))


# Tests: verdicts, numbers and findings.

#: Words for tests that no verdict names, and for those that fail whatever their verdicts are.
_RECORDED, _NO_ROOM, _MISTAKE, _FINDING = "RECORDED", "OUT_OF_MEMORY", "ERROR", "FINDING"
#: What comes first, the worst.
_ORDER: Final = tuple(TONES)


def _tests(source: PageSource, earlier: EarlierRuns) -> tuple[list[Part], list[str]]:
    report, tables = source.report, source.tables
    regions = sum(len(j.observation.ops.regions) for j in report.tests if j.observation.ops)
    # Op kinds of a region: a page of many tests must still open.
    ops = max(8, min(60, 6_000 // max(regions, 1)))
    found: list[tuple[float, Part]] = []
    notes: dict[str, None] = {}
    for judged in report.tests:
        table = tables.get(judged.observation.test)
        waterfalls, problem = _waterfalls(source, judged)
        page = {
            **_test(report, judged, earlier),
            "waterfalls": [each for each in waterfalls if each["parts"]],
            "regions": [*_regions(source, judged, table, ops)],
        }
        notes |= dict.fromkeys(problem)
        # Of tests that passed, changes are noise: those of a file stand together.
        worse = max((v.change or 0.0 for v in judged.verdicts if page["failed"]), default=0.0)
        found.append((-round(worse, 3), page))
    found.sort(key=lambda pair: (pair[1]["worst"], pair[0], pair[1]["id"]))
    return [page for _, page in found], list(notes)


def _test(report: CiReport, judged: JudgedTest, earlier: EarlierRuns) -> Part:
    observation = judged.observation
    failed = report.failed(judged)
    hardware = observation.hardware or report.run.hardware
    key = hardware.key if hardware else ""
    outcome = _outcome(report, judged)
    commands, advice = _remedies(report, judged)
    verdicts = [v for v in judged.verdicts if v.metric.name != NO_METRIC.name]
    verdicts.sort(key=lambda verdict: _ORDER.index(label(verdict, judged)))
    judged_metrics = [_metric(judged, v.metric, v, key, earlier) for v in verdicts]
    others = (observation.metrics[name].metric for name in recorded_only(judged))
    return {
        "id": observation.test,
        "outcome": outcome,
        "failed": failed,
        # What failed comes before everything that did not.
        "worst": _ORDER.index(outcome) + (0 if failed else len(_ORDER)),
        "key": key,
        "setting": [(n, str(value)) for n, value in sorted(observation.setting.items())],
        "summary": "; ".join([*_summary(judged, outcome), *advice]),
        "by_op": judged.by_op or "",
        "commands": commands,
        "metrics": [*judged_metrics, *(_metric(judged, m, None, key, earlier) for m in others)],
        "findings": [
            *page_findings(judged.findings, observation.unanswered, enforced=report.enforced)
        ],
        "rules": Counter(outcome.value for outcome in observation.outcomes.values()),
    }


def _outcome(report: CiReport, judged: JudgedTest) -> str:
    if judged.observation.problems:
        return _MISTAKE
    words = [label(verdict, judged) for verdict in judged.verdicts]
    if report.failed(judged) and report.enforced and any(f.fails for f in judged.findings):
        words.append(_FINDING)
    # It is a result of a point of a sweep, and no failure.
    alone = _NO_ROOM if judged.observation.out_of_memory else _RECORDED
    return min(words, key=_ORDER.index, default=alone)


def _summary(judged: JudgedTest, outcome: str) -> Iterator[str]:
    """Yield the deciding sentence; of several, the largest change."""
    observation = judged.observation
    if outcome == _MISTAKE:
        yield from observation.problems
    elif outcome == _FINDING:
        yield from (title(finding) for finding in judged.findings if finding.fails)
    else:
        decided = [v for v in judged.verdicts if label(v, judged) == outcome]
        if decided:
            yield sentence(max(decided, key=lambda verdict: abs(verdict.change or 0.0)))
        elif observation.out_of_memory:
            yield str(observation.ended)
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
    return commands, [remedy.advice for remedy in remedies if remedy.command is None]


def _metric(
    judged: JudgedTest, metric: Metric, verdict: Verdict | None, key: str, earlier: EarlierRuns
) -> Part:
    """Return the numbers and the verdict of a metric.

    The change may be without what the machine did to all tests: it does not follow from the values.
    """
    observation = judged.observation
    observed = observation.metrics.get(metric.name)
    value = value_of(observed, verdict)
    centre = verdict.centre if verdict else None
    unit, scale = display_unit(metric, value if centre is None else centre)
    setting = tuple(sorted(observation.setting.items(), key=lambda item: item[0]))
    if verdict is not None:
        text = sentence(verdict)
    elif value is not None:
        text = f"{metric.name} {format_value(metric, value)}, recorded only"
    else:
        note = observed.note if observed else None
        text = ": ".join(filter(None, (f"{metric.name} not measured", note)))
    return {
        "name": metric.name,
        "unit": unit,
        "scale": scale,
        "better": metric.better.value,
        "whole": metric.kind is Kind.COUNT or metric.better is Better.EQUAL,
        "outcome": label(verdict, judged) if verdict else "",
        "sentence": text,
        "value": value,
        "baseline": centre,
        "limit": verdict.worst_allowed if verdict else None,
        "target": observed.limits.target if observed else None,
        "gated": verdict is not None and verdict.reason is not Reason.EXPLAINS,
        "why_ungated": (observed and observed.why_ungated) or "",
        "samples": _drawn(observed.samples) if observed else [],
        "confirmations": [*map(_drawn, observed.confirmations)] if observed else [],
        "history": earlier.of((observation.test, metric, key, setting)),
        "change": verdict.change_as_read if verdict else None,
    }


def _drawn(samples: Sequence[float]) -> list[float]:
    """Return finite samples; of very many, those at equal distances."""
    finite = [sample for sample in samples if isfinite(sample)]
    return finite[:: -(-len(finite) // MOST_SAMPLES) or 1]


def page_findings(
    findings: Sequence[Finding], unanswered: Iterable[UnansweredRules] = (), *, enforced: bool
) -> Iterator[Part]:
    """Yield findings by saving, then waived and unmeasured ones."""
    found = by_saving(f for f in findings if f.outcome is RuleOutcome.FOUND and not f.quiet)
    for finding in sorted(found, key=lambda finding: not finding.stands):
        also = [f"also: {', '.join(finding.also)}, of the same ops"] if finding.also else []
        yield {
            "code": finding.code,
            "title": title(finding).removeprefix(f"{finding.code} "),
            "state": "found" if finding.stands else "waived",
            "fails": finding.fails and enforced,
            "region": finding.region,
            "saving_us": None if finding.saving_ns is None else _us(finding.saving_ns),
            "saving": saving(finding),
            "evidence": [*(text.strip() for text in evidence_lines(finding)), *also],
            "how": finding.arithmetic or "",
            "fix": (finding.waived is None and finding.fix) or "",
        }
    reasons: dict[str, dict[str, None]] = defaultdict(dict)
    for group in unanswered:
        if group.outcome is RuleOutcome.NOT_MEASURED:
            reasons[group.reason].update(dict.fromkeys(group.codes))
    for finding in findings:
        if finding.outcome is RuleOutcome.NOT_MEASURED:
            reasons[finding.reason or ""][finding.code] = None
    for reason, codes in reasons.items():
        one = len(codes) == 1
        yield {
            "code": next(iter(codes)) if one else counted(len(codes), "rule"),
            "title": reason,
            "state": "without data",
            "fails": False,
            "region": "",
            "saving_us": None,
            "saving": "",
            "evidence": [] if one else [", ".join(codes)],
            "how": "",
            "fix": "",
        }


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


# Earlier runs: the history of each metric.


class EarlierRuns:
    """Runs, and the history of each metric."""

    def __init__(self, history: RunHistory) -> None:
        self.runs: tuple[Part, ...] = tuple(
            {
                "id": run.id or "",
                "started_at": run.at,
                "commit": run.commit or "",
                "branch": run.environment.branch or "",
                "host": run.host,
                "label": run.label or "",
            }
            for run in history.runs
        )
        self._histories = {
            (each.test, each.metric, each.key, each.setting): _history(each)
            for each in series_of(history.runs)
        }

    def of(self, identity: Identity) -> Part:
        empty: Part = {name: [] for name in ("runs", "values", "outcomes", "marks")}
        return self._histories.get(identity, empty)


def _history(series: Series) -> Part:
    points = series.points
    verdicts = (point.reading.verdict for point in points)
    return {
        "runs": [point.number for point in points],
        "values": [point.reading.value for point in points],
        "outcomes": [verdict.outcome.value if verdict else "" for verdict in verdicts],
        "marks": [*map(mark_of, points)],
    }


# Ops: the time of each kind, and what the roofline allows.


def _regions(
    source: PageSource, judged: JudgedTest, table: OpTable | None, most: int
) -> Iterator[Part]:
    observation = judged.observation
    hardware = observation.hardware or source.report.run.hardware
    if observation.ops is None:
        return
    arch = hardware.arch if hardware else table.arch if table else None
    cores = table.available_cores if table else None
    known = regions_of_groups(observation.ops, arch, cores, most=most)
    lines = (observation.bottleneck or "").splitlines()
    for region in known:
        start = f"{region['name']}: " if region["name"] else ""
        said = (line for line in lines if line.startswith(start))
        yield {**region, "bottleneck": next(said, "").removeprefix(start)}


def regions_of_groups(
    ops: OpGroups, arch: str | None, cores: int | None, *, most: int
) -> Iterator[Part]:
    board = board_of_arch(arch)
    roof = board and {
        "dram_gb_s": board.dram_gb_s,
        "peaks_tflops": [
            (fidelity, round(tflops * cores, 1))
            for fidelity, tflops in board.tflops.items()
            if cores
        ],
    }
    for region in () if ops.kernel_time == CALLS else ops.regions:
        groups = [group for group in ops.of(region).groups if group.total_ns > 0]
        if groups:
            yield {
                "name": region,
                "time_us": _us(sum(group.total_ns for group in groups)),
                "ops": list(_page_ops(groups, arch, most=most)),
                "roof": roof,
            }


def _page_ops(groups: Sequence[OpGroup], arch: str | None, *, most: int) -> Iterator[Part]:
    """Yield op kinds, longest first, then the rest as one.

    Their times add up to that of the region.
    """
    kinds: dict[Any, list[tuple[OpGroup, Roofline]]] = defaultdict(list)
    for group, line in zip(groups, group_rooflines(groups, arch), strict=True):
        name = op_and_function(group.signature.op, group.settings)
        shape = op_name(group.signature, group.settings).removeprefix(name).strip()
        kinds[name, shape, group.cores, group.fidelity].append((group, line))
    whole_ns = sum(group.total_ns for group in groups)

    def times(members: Sequence[tuple[OpGroup, Roofline]]) -> Part:
        total_ns = sum(group.total_ns for group, _ in members)
        return {
            "calls": sum(group.count for group, _ in members),
            "time_us": _us(total_ns),
            "share": round(total_ns / whole_ns, 4),
        }

    ordered = sorted(kinds.items(), key=lambda item: (-times(item[1])["time_us"], item[0][:2]))
    # One more is shown rather than "1 other".
    end = most if len(ordered) > most + 1 else most + 1
    for (name, shape, cores, fidelity), members in ordered[:end]:
        work = _work(members, fidelity)
        yield {"name": name, "shape": shape, "cores": cores, **times(members), **work}
    rest = [member for _, members in ordered[end:] for member in members]
    if rest:
        unknown = dict.fromkeys(("cores", "ideal_us", "intensity", "tflops"))
        name = f"{len(ordered) - end} other kinds"
        yield {"name": name, "shape": "", "bound": "", "note": "", **unknown, **times(rest)}


_BOUNDS: Final[dict[Bound | None, str]] = {Bound.DRAM: "dram", Bound.COMPUTE: "compute"}


def _work(members: Sequence[tuple[OpGroup, Roofline]], fidelity: str | None) -> Part:
    """Return what the roofline says of the ops of one kind."""

    def whole(values: Iterable[float | None]) -> float | None:
        parts = [
            None if value is None else group.count * value
            for (group, _), value in zip(members, values, strict=True)
        ]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    lines = [line for _, line in members]
    ideal_ns = whole(line.least_ns for line in lines)
    flops = whole(None if line.stale else line.work.flops for line in lines)
    moved = whole(None if line.dram_fraction is None else line.work.dram_bytes for line in lines)
    bounds = {_bound(line) for line in lines}
    notes = [fidelity] if fidelity else []
    if any(line.stale for line in lines):
        notes.append("with these shapes it would be faster than the chip: they are not its own")
    total_ns = sum(group.total_ns for group, _ in members)
    return {
        "ideal_us": None if ideal_ns is None else _us(ideal_ns),
        "bound": bounds.pop() if len(bounds) == 1 else "",
        "intensity": float(f"{flops / moved:.4g}") if flops and moved else None,
        "tflops": float(f"{flops / total_ns / 1000:.4g}") if flops else None,
        "note": "; ".join(notes),
    }


def _bound(line: Roofline) -> str:
    if line.bound is Bound.BOTH:
        return "dram" if (line.dram_ns or 0.0) >= (line.compute_ns or 0.0) else "compute"
    return _BOUNDS.get(line.bound, "")


def _us(ns: float) -> float:
    return round(ns / 1000, 3)
