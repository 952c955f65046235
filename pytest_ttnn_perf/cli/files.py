"""Commands on files: show one, compare two, import others."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from enum import Enum
from functools import partial
from math import isnan
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.regions import (
    Basis,
    region_named,
    regions_of,
    step_time,
    why_invalid,
)
from pytest_ttnn_perf.analysis.readers.attach import ARTIFACTS, read_artifact
from pytest_ttnn_perf.analysis.readers.benchmark_json import joined_run, read_benchmark_run
from pytest_ttnn_perf.analysis.readers.detect import (
    OP_TABLES,
    ArtifactKind,
    head_of,
    kind_of,
    op_table_of,
    read_run,
)
from pytest_ttnn_perf.analysis.readers.report_db import read_report_db
from pytest_ttnn_perf.analysis.readers.targets import is_target_file, read_target_file
from pytest_ttnn_perf.analysis.readers.tt_smi import read_tt_smi
from pytest_ttnn_perf.analysis.readers.ttlang import (
    PerfSummary,
    SimCounters,
    TtlangLog,
    read_perf_summary_json,
    read_ttlang_log,
)
from pytest_ttnn_perf.analysis.readers.ttlang_sim import read_sim_trace
from pytest_ttnn_perf.analysis.show.attribution import compare_captures, op_comparison_listing
from pytest_ttnn_perf.analysis.show.kernels import (
    LineChange,
    Platform,
    comparison_lines,
    hardware_changes,
    kernel_pairs,
    line_changes,
    log_lines,
    platform_of_log,
    program_changes,
)
from pytest_ttnn_perf.analysis.show.ops import SORTED_BY, op_listing, outside_lines, step_line
from pytest_ttnn_perf.cli.common import (
    add_argument,
    add_chip,
    add_format,
    add_window,
    capture_file,
    on_chip,
    presumed_kind_of,
    typed_hardware,
)
from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.files import write_text
from pytest_ttnn_perf.core.hardware import Environment
from pytest_ttnn_perf.core.metric import Better, representative
from pytest_ttnn_perf.core.observation import JudgedTest, Observation, Run, encode_run, value_of
from pytest_ttnn_perf.core.ops import category_of
from pytest_ttnn_perf.core.text import counted, duration
from pytest_ttnn_perf.experiments.paired import Difference, Pair, Reading, by_op_of, pairs_of
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.gate.sweeps import sweeps_of
from pytest_ttnn_perf.gate.targets import encode_targets
from pytest_ttnn_perf.report.run import write_run
from pytest_ttnn_perf.report.sentences import reasons_by_name, sweep_lines
from pytest_ttnn_perf.report.tables import (
    DROPPED,
    METRIC,
    NAME,
    Column,
    Columns,
    Fit,
    Listing,
    Result,
    Style,
    format_change,
    format_fraction,
    format_value,
    id_column,
    stdout_style,
    table_of,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from pytest_ttnn_perf.core.baseline import Session
    from pytest_ttnn_perf.core.hardware import Hardware, Scalar
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import Artifact, MetricObservation, Verdict
    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.gate.targets import Target, TargetEntry
    from pytest_ttnn_perf.report.tables import Block


def add_show(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    add("file FILE", "a run record or a capture; the format is detected", type=Path)
    add("--ops", "list each op in order: time, cores, share of the peaks, and what binds it")
    add("--sort BY", "with --ops: the longest time, the longest gap before it, or the most time "
        "above the roofline first", choices=SORTED_BY)  # fmt: skip
    add("--all", "of a tt-lang profile: all lines and threads")
    add_window(parser)
    add_chip(parser)
    add_format(parser)


_READERS: Final[Mapping[ArtifactKind, Callable[[Path], object]]] = {
    ArtifactKind.REPORT_DB: read_report_db,
    ArtifactKind.PERF_SUMMARY_JSON: read_perf_summary_json,
    ArtifactKind.SIM_TRACE: read_sim_trace,
    ArtifactKind.TT_SMI: read_tt_smi,
    ArtifactKind.TTLANG_LOG: read_ttlang_log,
}


def run_show(options: argparse.Namespace) -> Result:
    """Show what is in a file.

    For a run record: metrics, spread, verdicts and environment. For an ops_perf_results CSV: time
    by op, category and device, traces, signposts, and dropped rows; with --ops, every op on a line
    of its own.
    """
    file, start, end, region = options.file, options.start, options.end, options.region
    if options.ops:
        table = on_chip(op_table_of(file, start=start, end=end), options, file)
        name = None if region is None else region_named(table, region, file.name).name
        style = stdout_style()
        listing = op_listing(table, name=file.name, style=style, region=name, sort=options.sort)
        # It is as wide as it may be, and coloured.
        return Result(listing.text(options.format, Style()))
    if options.sort or options.arch or options.board:
        raise UsageError("--sort, --arch and --board are of the table of ops: add --ops")
    kind = presumed_kind_of(file)
    if kind in OP_TABLES:
        table = op_table_of(file, start=start, end=end, region=region)
        return Result(_ops_listing(table, file.name).text(options.format))
    if start or end or region:
        selecting = "--region, --start and --end select ops of an op table"
        raise UsageError(f"{selecting}; {file.name} is {kind.value}")
    if kind in {ArtifactKind.RUN_RECORD, ArtifactKind.BENCHMARK_JSON}:
        read = read_run if kind is ArtifactKind.RUN_RECORD else read_benchmark_run
        return Result(_run_listing(read(file)).text(options.format))
    record = _READERS[kind](file)
    listing = _record_listing(record, file.name, kind.value)
    if (log := _log_of(record)) is not None:
        page: list[Block] = [*log_lines(log, whole=options.all)]
        listing = replace(listing, lines=(f"{file.name}: {kind.value}", "", *page))
    return Result(listing.text(options.format))


# Op tables: ops of one code together, over all devices.

_OPS: Final[Columns[dict[str, Any]]] = Columns(
    Column("op", itemgetter("op"), "op", fit=NAME),
    Column("category", itemgetter("category"), "category", fit=DROPPED[2]),
    Column("count", itemgetter("count"), "count", right=True),
    Column("total_ns", itemgetter("total_ns"), "total", lambda g: duration(g["total_ns"]),
           right=True),
    Column("share", itemgetter("share"), "share", lambda g: f"{g['share'] * 100:.1f} %",
           right=True),
    Column("median_ns", itemgetter("median_ns"), "median", lambda g: duration(g["median_ns"]),
           right=True, fit=DROPPED[1]),
    Column("cores", itemgetter("cores"), "cores",
           lambda g: "-".join(map(str, dict.fromkeys(g["cores"] or ("-",)))),
           right=True, fit=DROPPED[3]),
)  # fmt: skip


def _ops_listing(table: OpTable, name: str) -> Listing:
    groups, invalid = _groups(table), why_invalid(table)
    arch = f", {table.arch}" if table.arch else ""
    devices = counted(len(table.devices), "device")
    regions = regions_of(table)
    times = [step_time(table, region) for region in regions.regions]
    lines: list[Block] = [
        f"{name}: {table.format}{arch}; {counted(len(table), 'op')} on {devices}",
        *([f"no number of it can be trusted: {invalid}"] if invalid else ()),
        "",
    ]
    if groups:
        lines += [*_OPS.table(groups), ""]
    lines += [
        f"region {step_line(time)}"
        for time in times
        if time.basis is not Basis.WHOLE or regions.outside.ops
    ]
    lines += [*outside_lines(regions.outside), *_notes(table)]
    document = {
        "format": table.format,
        "arch": table.arch,
        "rows": table.rows,
        "ops": len(table),
        "dropped": dict(table.dropped),
        "invalid": invalid,
        "devices": list(table.devices),
        "device_kernel_time_ns": {str(d): ns for d, ns in table.kernel_ns_by_device.items()},
        "traces": [
            {"device": t.device, "trace": t.trace, "replays": t.replays, "complete": t.complete}
            for t in table.traces
        ],
        "regions": [to_builtins(each) for each in times],
        "signposts": [{"name": s.name, "position": s.position} for s in table.signposts],
        "by_op": groups,
    }
    rows = tuple(
        tuple({**group, "cores": "-".join(map(str, group["cores"] or ()))}.values())
        for group in groups
    )
    return Listing(tuple(lines), document, _OPS.names, rows)


def _groups(table: OpTable) -> list[dict[str, Any]]:
    columns = table.columns
    times: dict[str, list[float]] = defaultdict(list)
    cores: dict[str, set[int]] = defaultdict(set)
    names = [signature.op for signature in table.signatures]
    for index, kernel_ns, count in zip(
        columns.signature, columns.kernel_ns, columns.cores, strict=True
    ):
        times[names[index]].append(kernel_ns)
        if count is not None:
            cores[names[index]].add(count)
    whole = sum(columns.kernel_ns) or 1.0
    groups = [
        {
            "op": op,
            "category": category_of(op).value,
            "count": len(own),
            "total_ns": sum(own),
            "share": sum(own) / whole,
            "median_ns": median(own),
            "cores": [min(cores[op]), max(cores[op])] if cores[op] else None,
        }
        for op, own in times.items()
    ]
    return sorted(groups, key=lambda group: (-group["total_ns"], group["op"]))


def _notes(table: OpTable) -> Iterator[str]:
    totals = [f"{d}: {duration(ns)}" for d, ns in table.kernel_ns_by_device.items()]
    if totals:
        yield "kernel time by device: " + ", ".join(totals)
    for trace in table.traces:
        state = "complete" if trace.complete else "INCOMPLETE: replays ran different ops"
        replays = counted(trace.replays, "replay")
        yield f"trace {trace.trace} on device {trace.device}: {replays}, {state}"
    if table.signposts:
        marks = ", ".join(f"{mark.name} (after {mark.position})" for mark in table.signposts[:20])
        more = len(table.signposts) - 20
        yield f"signposts: {marks}" + (f", and {more} more" if more > 0 else "")
    reasons = ", ".join(f"{count} {reason}" for reason, count in table.dropped.items() if count)
    yield f"rows: {table.rows}; dropped: {reasons or 'none'}"


# Run records: a row has a test, a metric of it, its session if a sample is finite, its verdict.

_Row = tuple[str, "MetricObservation", "Session | None", "Verdict | None"]


def _spread(session: Session | None) -> str:
    known = session is not None and session.n > 1 and session.median
    return format_fraction(session.mad / abs(session.median) if session and known else None)


def _outcome_text(row: _Row) -> str:
    _, observed, _, verdict = row
    if verdict is not None:
        return verdict.outcome.value
    return "-" if observed.gated else "recorded only"


_METRICS: Final[Columns[_Row]] = Columns(
    id_column(lambda row: row[0]),
    Column("metric", lambda row: row[1].metric.name, "metric", fit=METRIC),
    Column("", lambda row: format_value(row[1].metric, value_of(row[1], row[3])), "value",
           right=True),
    Column("median", lambda row: row[2] and row[2].median),
    Column("mad", lambda row: row[2] and row[2].mad, "spread", lambda row: _spread(row[2]),
           right=True, fit=DROPPED[2]),
    Column("n", lambda row: len(row[1].samples), "samples", right=True, fit=DROPPED[1]),
    Column("unit", lambda row: row[1].metric.unit),
    Column("source", lambda row: row[1].metric.source.value),
    Column("gated", lambda row: row[1].gated),
    Column("outcome", lambda row: row[3] and row[3].outcome.value, "verdict", _outcome_text),
    Column("value", lambda row: value_of(row[1], row[3])),
)  # fmt: skip


def _metrics_of(run: Run) -> list[_Row]:
    rows: list[_Row] = []
    for test, judged in run.tests.items():
        verdicts = {verdict.metric.name: verdict for verdict in judged.verdicts}
        for name, observed in judged.observation.metrics.items():
            finite = tuple(sample for sample in observed.samples if not isnan(sample))
            session = session_of(observed, finite) if finite else None
            rows.append((test, observed, session, verdicts.get(name)))
    return rows


def _run_listing(run: Run) -> Listing:
    rows = _metrics_of(run)
    lines: list[Block] = [*_run_heading(run), *_METRICS.table(rows)]
    seen = {test: judged.observation for test, judged in run.tests.items()}
    lines += [f"{test}: {one.ended}" for test, one in seen.items() if one.ended is not None]
    lines += reasons_by_name(observed for _, observed, _, _ in rows)
    document = encode_run(run)
    sweeps = list(sweeps_of(run.tests.values()))
    if sweeps:
        lines += ["", *(line for one in sweeps for line in sweep_lines(one))]
        document |= {"sweeps": [encode(each) for each in sweeps]}
    return Listing(tuple(lines), document, _METRICS.names, _METRICS.rows(rows))


def _run_heading(run: Run) -> Iterator[str]:
    environment = run.environment
    dirty = " (dirty)" if environment.dirty else ""
    parts = {
        "run": run.id,
        "label": run.label,
        "key": run.hardware.key if run.hardware else None,
        "started": environment.started_at,
        "commit": environment.commit and f"{environment.commit}{dirty}",
        "python": environment.python,
        "ttnn": environment.ttnn,
        "cpu": environment.cpu,
    }
    yield from (f"{name}: {value}" for name, value in parts.items() if value is not None)
    yield f"tests: {len(run.tests)}" + ("" if run.complete else " (the run was cut short)")


# Other records: their fields, and a table for each list of records.

#: What a terminal shows of a long list; JSON and CSV have all of it.
_MOST_ROWS: Final = 40
_WIDEST: Final = 48


def _record_listing(record: object, name: str, kind: str) -> Listing:
    content = _plain(record)
    document = {"kind": kind, **(content if isinstance(content, dict) else {"value": content})}
    lines: list[Block] = [f"{name}: {kind}"]
    rows: list[dict[str, Any]] = []
    for place, value in document.items():
        table = list(value.values()) if isinstance(value, dict) else value
        if _is_table(table):
            lines += ["", f"{place}:", *_table(table)]
            rows = rows or table
        elif place != "kind" and value not in (None, [], {}, ""):
            lines.append(f"{place}: {_cell(value, widest=10 * _WIDEST)}")
    headings = tuple(dict.fromkeys(column for row in rows for column in row))
    cells = tuple(
        tuple(_text(cell) if isinstance(cell, (dict, list)) else cell for cell in values)
        for values in ([row.get(column) for column in headings] for row in rows)
    )
    return Listing(tuple(lines), document, headings, cells)


def _plain(value: object) -> Any:
    """Return records, enums and tuples as plain JSON."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {field: _plain(member) for field, member in zip(value._fields, value, strict=True)}
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple, frozenset, set)):
        return [_plain(member) for member in value]
    return value


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _table(rows: list[dict[str, Any]]) -> list[Block]:
    known = {column for row in rows for column, value in row.items() if value not in (None, [], {})}
    columns = dict.fromkeys(column for row in rows for column in row)
    headings = [column for column in columns if column in known]
    shown = [[_cell(row.get(column)) for column in headings] for row in rows[:_MOST_ROWS]]
    table = table_of(headings, shown)
    more = len(rows) - _MOST_ROWS
    return [table, f"... and {more} more; --format json has them"] if more > 0 else [table]


def _cell(value: object, *, widest: int = _WIDEST) -> str:
    text = _text(value).replace("\n", " ")
    return text if len(text) <= widest else text[: widest - 1] + "…"


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        known = {key: member for key, member in value.items() if member is not None}
        return ", ".join(f"{key} {_text(member)}" for key, member in known.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _log_of(record: object) -> TtlangLog | None:
    if isinstance(record, PerfSummary):
        return TtlangLog(perf_summaries=(record,))
    if isinstance(record, SimCounters):
        return TtlangLog(sim=record)
    return record if isinstance(record, TtlangLog) else None


def add_compare(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    add("before BEFORE", "a run record or a capture, or a folder with a capture", type=Path)
    add("after AFTER", "another one of the same kind", type=Path)
    add_window(parser)
    add_format(parser)


def run_compare(options: argparse.Namespace) -> Result:
    """Show what changed between two run records or two captures.

    Metrics of runs stand side by side, without being judged. The ops of two ops_perf_results
    CSVs are aligned: the parts add up to the change of the kernel time.
    """
    files = before, after = capture_file(options.before), capture_file(options.after)
    # The results of benchmarks are compared as runs.
    kinds = [
        ArtifactKind.RUN_RECORD if kind is ArtifactKind.BENCHMARK_JSON else kind
        for kind in map(presumed_kind_of, files)
    ]
    found = f"{before.name} is {kinds[0].value}, {after.name} is {kinds[1].value}"
    if OP_TABLES.keys() & set(kinds) and ArtifactKind.RUN_RECORD not in kinds:
        window = {"start": options.start, "end": options.end, "region": options.region}
        listing = op_comparison_listing(compare_captures(before, after, **window))
        return Result(listing.text(options.format))
    if ArtifactKind.RUN_RECORD in kinds and kinds[0] is not kinds[1]:
        raise UsageError(f"a run record is compared with another one: {found}")
    if options.start or options.end or options.region:
        are_runs = f"{before.name} and {after.name} are run records"
        what = are_runs if ArtifactKind.RUN_RECORD in kinds else found.partition(",")[0]
        raise UsageError(f"--region, --start and --end select ops of an op table; {what}")
    if ArtifactKind.RUN_RECORD in kinds:
        comparison = compare_runs(read_run(before), read_run(after))
        listing = comparison_listing(comparison, names=(before.name, after.name))
        return Result(listing.text(options.format))
    if kinds[0] is not kinds[1] or kinds[0] not in ARTIFACTS:
        raise UsageError(f"a capture is compared with another of its kind: {found}")
    listing = _captures_listing(read_artifact(before), read_artifact(after), kinds[0].value)
    return Result(listing.text(options.format))


class RunComparison(Struct, frozen=True):
    """Two runs, metric by metric, with what else differs.

    ``troubles`` are the run (``before`` or ``after``), the test, and why it may lack metrics.
    ``by_op`` has the ops behind the change of a test's times, in a sentence.
    """

    before: Run
    after: Run
    pairs: tuple[Pair, ...]
    environment: tuple[Difference, ...] = ()
    troubles: tuple[tuple[str, str, str], ...] = ()
    by_op: dict[str, str] = {}


#: What differs between any two runs, or any two commits, and says nothing.
_FLEETING: Final = frozenset(
    {"started_at", "load_1m", "committed_at", "parents", "attempt", "shard"}
)


def compare_runs(before: Run, after: Run) -> RunComparison:
    """Join two runs; what only the second has comes last."""
    pairs: list[Pair] = []
    by_op: dict[str, str] = {}
    for test in dict.fromkeys([*before.tests, *after.tests]):
        first, second = (_judged(run, test) for run in (before, after))
        pairs += pairs_of(first, second)
        sentence = by_op_of(first.observation, second.observation)
        by_op |= {test: sentence} if sentence is not None else {}
    environment = (
        Difference(name, then, now)
        for name in Environment.__struct_fields__
        if name not in _FLEETING
        for then, now in [(getattr(run.environment, name) for run in (before, after))]
        if then != now
    )
    troubles = (*_troubles("before", before), *_troubles("after", after))
    return RunComparison(before, after, tuple(pairs), tuple(environment), troubles, by_op)


def _judged(run: Run, test: str) -> JudgedTest:
    if test not in run.tests:
        return JudgedTest(Observation(test))
    judged = run.tests[test]
    seen = judged.observation
    return replace(judged, observation=replace(seen, hardware=seen.hardware or run.hardware))


def _troubles(name: str, run: Run) -> Iterator[tuple[str, str, str]]:
    for test, judged in run.tests.items():
        observation = judged.observation
        if observation.ended:
            yield name, test, str(observation.ended)
        elif not observation.metrics:
            yield name, test, "the test recorded no metric"


_NO_GATE: Final = "nothing is judged here: verdicts come from `ttnn-perf gate`"


def _value(reading: Reading | None, beside: float | None = None) -> str:
    return format_value(reading.metric, reading.value, beside=beside) if reading else "-"


def _after(pair: Pair) -> str:
    # In the unit of the value before, unless each has its own.
    return _value(pair.after, pair.before.value if pair.before and pair.unit is not None else None)


def _note_of(pair: Pair) -> str:
    if pair.before is None:
        return "only after"
    if pair.after is None:
        return "only before"
    if pair.obstacle is not None:
        what = pair.obstacle
        return f"not comparable: {what.field} {what.before!r} → {what.after!r}"
    if pair.values is None:
        sides = {"before": pair.before, "after": pair.after}
        missing = " and ".join(name for name, side in sides.items() if side.value is None)
        return f"not comparable: no finite value {missing}"
    return _direction(pair.after.metric, *pair.values, change=pair.change)


def _direction(metric: Metric, before: float, after: float, *, change: float | None) -> str:
    if before == after:
        return "unchanged"
    if metric.better is Better.EQUAL:
        return "different"
    # A ratio is read by its per cent; of a count or an accuracy, every digit that is shown counts.
    if metric.compared_by_ratio:
        same = format_change(change) == format_change(0)
    else:
        same = format_value(metric, before) == format_value(metric, after, beside=before)
    if same:
        return "unchanged"
    return "worse" if (after > before) == (metric.better is Better.LOWER) else "better"


_PAIR: Final[tuple[Column[Pair], ...]] = (
    Column("metric", lambda p: p.metric, "metric", fit=METRIC),
    Column("unit", lambda p: p.unit),
    Column("before", lambda p: p.before and p.before.value, "before", lambda p: _value(p.before),
           right=True, fit=DROPPED[1]),
    Column("after", lambda p: p.after and p.after.value, "after", _after, right=True),
    Column("change", lambda p: p.change, "change", lambda p: format_change(p.change), right=True),
    Column("note", _note_of, "note", fit=Fit(least=12)),
)  # fmt: skip
_RUN_METRICS: Final[Columns[Pair]] = Columns(id_column(lambda p: p.test), *_PAIR)
_CAPTURE_METRICS: Final[Columns[Pair]] = Columns(*_PAIR)


def comparison_listing(comparison: RunComparison, *, names: tuple[str, str]) -> Listing:
    before, after, pairs = comparison.before, comparison.after, comparison.pairs
    changes = [
        f"{d.field} {_or_unknown(d.before)} → {_or_unknown(d.after)}"
        for d in comparison.environment
    ]
    lines: list[Block] = [
        f"before: {_run_text(before, names[0])}",
        f"after: {_run_text(after, names[1])}",
        f"environment: {', '.join(changes) or 'nothing that is recorded differs'}",
        "",
    ]
    lines += [*_RUN_METRICS.table(pairs), ""] if pairs else []
    lines += [": ".join(trouble) for trouble in comparison.troubles]
    lines += [f"{test} by op: {sentence}" for test, sentence in comparison.by_op.items()]
    document = {
        "before": _run_document(before),
        "after": _run_document(after),
        "metrics": _RUN_METRICS.objects(pairs),
        "environment": [to_builtins(difference) for difference in comparison.environment],
        "troubles": [
            {"run": run, "test": test, "what": what} for run, test, what in comparison.troubles
        ],
        "by_op": [{"test": test, "sentence": text} for test, text in comparison.by_op.items()],
    }
    lines.append(_NO_GATE)
    return Listing(tuple(lines), document, _RUN_METRICS.names, _RUN_METRICS.rows(pairs))


def _or_unknown(value: Scalar) -> str:
    return "unknown" if value is None else str(value)


def _run_text(run: Run, name: str) -> str:
    parts = [name]
    parts += [f"run {run.id}"] if run.id is not None else []
    parts += [run.label] if run.label is not None else []
    parts += [run.hardware.key] if run.hardware else []
    cut = "" if run.complete else " (the run was cut short)"
    return ", ".join([*parts, counted(len(run.tests), "test")]) + cut


def _run_document(run: Run) -> dict[str, object]:
    key = run.hardware.key if run.hardware else None
    return {"id": run.id, "complete": run.complete, "hardware": key}


# Captures without op tables: reports, graphs, logs, simulations.

#: What a terminal shows of a long list; JSON has all of it.
_MOST_CHANGES: Final = 20
_LINES: Final[Columns[LineChange]] = Columns(
    Column("thread", lambda c: c.thread, "thread"),
    Column("before", lambda c: c.before, "before", lambda c: _cycles(c.before), right=True,
           fit=DROPPED[1]),
    Column("after", lambda c: c.after, "after", lambda c: _cycles(c.after), right=True),
    Column("delta", lambda c: c.delta, "change", lambda c: f"{c.delta:+,}", right=True),
    Column("source", lambda c: c.source, "line", fit=NAME),
)  # fmt: skip


def _cycles(cycles: int | None) -> str:
    return "-" if cycles is None else f"{cycles:,}"


def _captures_listing(first: Artifact, second: Artifact, kind: str) -> Listing:
    pairs = _pairs(first, second)
    differs = hardware_changes(_hardware_of(first), _hardware_of(second))
    lines: list[Block] = [f"not the same hardware: {', '.join(differs)}"] if differs else []
    notes = [
        f"{word}: {observed.note}"
        for word, artifact in (("before", first), ("after", second))
        for observed in artifact.metrics
        if not observed.samples and observed.note
    ]
    logs = [side.kernels for side in (first, second) if side.kernels is not None]
    beside = len(logs) > 1 and all(log.perf_summaries for log in logs)
    lines += comparison_lines(*logs) if beside else _CAPTURE_METRICS.table(pairs)
    lines += dict.fromkeys(notes)
    if not lines:
        lines.append("nothing that is compared differs")
    document: dict[str, object] = {
        "kind": kind,
        "differs": list(differs),
        "metrics": _CAPTURE_METRICS.objects(pairs),
    }
    headings, rows = _CAPTURE_METRICS.names, _CAPTURE_METRICS.rows(pairs)
    if len(logs) > 1:
        programs = program_changes(*logs)
        changed = line_changes(*logs)
        lines += ["", *programs] if programs else []
        if changed:
            lines += ["", *_LINES.table(changed[:_MOST_CHANGES]), *_left_out(changed)]
        document |= {"programs": list(programs), "lines": _LINES.objects(changed)}
        document["kernels"] = [
            {"name": pair.name, "before": _plain(pair.before and pair.before.program),
             "after": _plain(pair.after and pair.after.program), "obstacle": pair.obstacle}
            for pair in kernel_pairs(*logs)
        ]  # fmt: skip
    return Listing(tuple(lines), document, headings, rows)


def _pairs(first: Artifact, second: Artifact) -> list[Pair]:
    ours, theirs = (
        {
            observed.metric.name: Reading(
                observed.metric,
                representative(observed.metric, observed.samples) if observed.samples else None,
            )
            for observed in artifact.metrics
        }
        for artifact in (first, second)
    )
    return [Pair("", name, ours.get(name), theirs.get(name)) for name in {**ours, **theirs}]


def _hardware_of(artifact: Artifact) -> Platform:
    if artifact.kernels is not None:
        return platform_of_log(artifact.kernels)
    clock = artifact.environment.get("clock_mhz")
    cores = {device.compute_cores for device in artifact.report.devices} if artifact.report else {}
    return Platform(
        artifact.arch,
        artifact.board,
        artifact.devices,
        next(iter(cores)) if len(cores) == 1 else None,
        float(clock) if isinstance(clock, (int, float)) else None,
    )


def _left_out(records: Sequence[object]) -> Iterator[str]:
    more = len(records) - _MOST_CHANGES
    if more > 0:
        yield f"... and {more} more; --format json has them"


def add_import(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    add("files FILE", "the format is detected", type=Path, nargs="+")
    add("--json PATH", "where to write it", type=Path)
    add("--hardware KEY", "on what they were measured, such as wormhole_b0-n150-1x1 (default: "
        "what they say)")  # fmt: skip
    add("--model NAME", "of targets: the model, for files that do not name it")
    add_format(parser)


def run_import(options: argparse.Namespace) -> Result:
    """Turn results of benchmarks into a run record, targets into a file.

    Results may be BenchmarkRun JSON, or those of tt-xla, vLLM and inference servers. What
    several files have of one test are its samples. Targets, such as model_targets.yaml, are for
    the setting targets.
    """
    heads = {file: head_of(file).decode("utf-8-sig", errors="replace") for file in options.files}
    targets = [file for file, head in heads.items() if is_target_file(file, head)]
    if targets and len(targets) < len(options.files):
        raise UsageError(f"{targets[0]} has targets, and others do not: import them by themselves")
    if targets:
        return _import_targets(options, _hardware(options))
    if options.model is not None:
        message = f"--model is for targets, and {options.files[0]} has results: they name theirs"
        raise UsageError(message)
    for file in options.files:
        kind = kind_of(file)
        if kind is not ArtifactKind.BENCHMARK_JSON:
            raise InputError(file, f"expected results of a benchmark, found {kind.value}")
    run = joined_run(options.files, _hardware(options))
    lines = _run_lines(run)
    if options.json is not None:
        write_run(run, options.json)
        lines.append(f"wrote {options.json}; judge it: ttnn-perf gate {options.json}")
    rows = _METRICS.rows(_metrics_of(run))
    listing = Listing(tuple(lines), encode_run(run), _METRICS.names, rows)
    return Result(listing.text(options.format))


def _hardware(options: argparse.Namespace) -> Hardware | None:
    return None if options.hardware is None else typed_hardware(options.hardware)


_TARGETS: Final[Columns[tuple[TargetEntry, Target]]] = Columns(
    Column("model", lambda row: row[0].models[0], "model", fit=NAME),
    Column("system", lambda row: row[0].board or row[0].arch, "system"),
    Column("batch", lambda row: row[0].batch, "batch", lambda row: _any(row[0].batch), right=True),
    Column("input_sequence_length", lambda row: row[0].input_sequence_length, "length",
           lambda row: _any(row[0].input_sequence_length), right=True),
    Column("metric", lambda row: row[1].names[0], "metric"),
    Column("target", lambda row: row[1].value, "target",
           lambda row: f"{row[1].value:g} {row[1].unit}".strip(), right=True),
    Column("unit", lambda row: row[1].unit),
)  # fmt: skip


def _any(number: int | None) -> str:
    return "any" if number is None else str(number)


def _import_targets(options: argparse.Namespace, hardware: Hardware | None) -> Result:
    read = [
        read_target_file(file, model=options.model, hardware=hardware) for file in options.files
    ]
    entries = [entry for part in read for entry in part.entries]
    left = [item for part in read for item in part.not_taken]
    rows = [(entry, target) for entry in entries for target in entry.targets]
    document = encode_targets(entries)
    lines: list[Block] = [*_TARGETS.table(rows), ""] if rows else []
    lines += [f"not taken: {item.place}: {item.why}" for item in left]
    models = len({entry.models[0] for entry in entries})
    lines.append(
        f"{counted(len(rows), 'target')} of {counted(models, 'model')} taken, {len(left)} not"
    )
    if options.json is not None and entries:
        write_text(options.json, json.dumps(document, indent=1) + "\n")
        lines.append(
            f'wrote {options.json}; use it: targets = "{options.json}" in [tool.ttnn_perf]'
        )
    not_taken = [{"place": item.place, "why": item.why} for item in left]
    document |= {"not_taken": not_taken}
    listing = Listing(tuple(lines), document, _TARGETS.names, _TARGETS.rows(rows))
    return Result(listing.text(options.format), failed=not entries)


def _run_lines(run: Run) -> list[Block]:
    rows = _metrics_of(run)
    gated = sum(observed.gated for _, observed, _, _ in rows)
    known = (judged.observation.hardware for judged in run.tests.values())
    keys = sorted({hardware.key for hardware in known if hardware is not None})
    return [
        *_METRICS.table(rows),
        "",
        *reasons_by_name(observed for _, observed, _, _ in rows),
        f"{counted(len(run.tests), 'test')} on {', '.join(keys)}: "
        f"{counted(gated, 'metric')} gated, {len(rows) - gated} recorded only",
    ]
