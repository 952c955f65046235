"""``ttnn-perf show FILE``: what a run record or a capture holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from enum import Enum
from math import isnan
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.detect import (
    OP_TABLES,
    ArtifactKind,
    kind_of,
    op_table_of,
    read_run,
)
from pytest_ttnn_perf.analysis.captures.device_log import read_device_log
from pytest_ttnn_perf.analysis.captures.graph_json import read_graph_json
from pytest_ttnn_perf.analysis.captures.report_db import read_report_db
from pytest_ttnn_perf.analysis.captures.tt_smi import read_tt_smi
from pytest_ttnn_perf.analysis.captures.ttlang_log import read_ttlang_log
from pytest_ttnn_perf.analysis.captures.ttlang_perf import read_perf_summary_json
from pytest_ttnn_perf.analysis.captures.ttlang_sim import read_sim_stats, read_sim_trace
from pytest_ttnn_perf.analysis.captures.validity import why_invalid
from pytest_ttnn_perf.analysis.ops.regions import region_named, regions_of, step_time
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.records.json import encode
from pytest_ttnn_perf.records.observation import encode_run
from pytest_ttnn_perf.records.ops import category_of, short_code
from pytest_ttnn_perf.records.region import Basis
from pytest_ttnn_perf.records.ttlang import TtlangLog
from pytest_ttnn_perf.report.checklist import outside_lines, step_line
from pytest_ttnn_perf.report.layout import DROPPED, METRIC, NAME, Fit, Style, stdout_style, table_of
from pytest_ttnn_perf.report.notes import reasons_by_name
from pytest_ttnn_perf.report.numbers import (
    Column,
    Columns,
    Listing,
    Result,
    format_fraction,
    format_ns,
    format_value,
    id_column,
)
from pytest_ttnn_perf.report.op_listing import op_listing
from pytest_ttnn_perf.report.sweeps import sweep_lines
from pytest_ttnn_perf.run.judge import swept

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from pytest_ttnn_perf.records.baseline import Session
    from pytest_ttnn_perf.records.observation import JudgedTest, MetricObservation, Run
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.region import StepTime
    from pytest_ttnn_perf.report.layout import Block, Table


@dataclass(frozen=True, slots=True)
class _Group:
    """Ops of one code, over all devices."""

    op: str
    category: str
    times_ns: Sequence[float]
    share: float
    cores: tuple[int, int] | None

    @property
    def total_ns(self) -> float:
        return sum(self.times_ns)

    @property
    def median_ns(self) -> float:
        return median(self.times_ns)

    @property
    def cores_text(self) -> str:
        low, high = self.cores or (0, 0)
        return "-" if self.cores is None else str(low) if low == high else f"{low}-{high}"


_OP_COLUMNS: Final[Columns[_Group]] = Columns(
    Column("op", lambda g: g.op, "op", fit=NAME, short=lambda g: short_code(g.op)),
    Column("category", lambda g: g.category, "category", fit=DROPPED[2]),
    Column("count", lambda g: len(g.times_ns), "count", right=True),
    Column("total_ns", lambda g: g.total_ns, "total", lambda g: format_ns(g.total_ns), right=True),
    Column("share", lambda g: g.share, "share", lambda g: f"{g.share * 100:.1f} %", right=True),
    Column("median_ns", lambda g: g.median_ns, "median", lambda g: format_ns(g.median_ns),
           right=True, fit=DROPPED[1]),
    Column("cores", lambda g: list(g.cores) if g.cores else None, "cores", lambda g: g.cores_text,
           right=True, fit=DROPPED[3]),
)  # fmt: skip


def ops_listing(table: OpTable, *, name: str) -> Listing:
    """Lay out the op table of the file ``name``."""
    groups, invalid = _groups(table), why_invalid(table)
    arch = f", {table.arch}" if table.arch else ""
    devices = counted(len(table.devices), "device")
    lines: list[Block] = [
        f"{name}: {table.format}{arch}; {counted(len(table), 'op')} on {devices}",
        *([f"no number of it can be trusted: {invalid}"] if invalid else ()),
        "",
    ]
    if groups:
        lines += [*_OP_COLUMNS.table(groups), "", _categories(groups), ""]
    lines += _notes(table)
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
        "regions": [asdict(each) | {"basis": each.basis.value} for each in _step_times(table)],
        "signposts": [{"name": s.name, "position": s.position} for s in table.signposts],
        "by_op": _OP_COLUMNS.objects(groups),
    }
    rows = tuple(
        (*row[:-1], "-".join(map(str, group.cores or ())))
        for row, group in zip(_OP_COLUMNS.rows(groups), groups, strict=True)
    )
    return Listing(tuple(lines), document, _OP_COLUMNS.names, rows)


def _groups(table: OpTable) -> list[_Group]:
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
        _Group(
            op,
            category_of(op).value,
            own,
            sum(own) / whole,
            (min(cores[op]), max(cores[op])) if cores[op] else None,
        )
        for op, own in times.items()
    ]
    return sorted(groups, key=lambda group: (-group.total_ns, group.op))


def _categories(groups: Sequence[_Group]) -> str:
    shares: dict[str, float] = defaultdict(float)
    for group in groups:
        shares[group.category] += group.share
    parts = sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
    return "by category: " + ", ".join(f"{name} {share * 100:.1f} %" for name, share in parts)


def _step_times(table: OpTable) -> Iterator[StepTime]:
    for region in regions_of(table).regions:
        yield step_time(table, region)


def _notes(table: OpTable) -> Iterator[str]:
    outside = regions_of(table).outside
    for time in _step_times(table):
        if time.basis is not Basis.WHOLE or outside.ops:
            yield f"region {step_line(time)}"
    yield from outside_lines(outside)
    totals = [f"{d}: {format_ns(ns)}" for d, ns in table.kernel_ns_by_device.items()]
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


@dataclass(frozen=True, slots=True)
class _Measured:
    """A metric of a test in a run; ``session`` is None without a finite sample."""

    test: str
    observed: MetricObservation
    session: Session | None
    outcome: str | None

    @property
    def median(self) -> float | None:
        return self.session.median if self.session else None

    @property
    def spread(self) -> float | None:
        several = self.session is not None and self.session.n > 1 and self.session.median
        return self.session.mad / abs(self.session.median) if self.session and several else None


_RUN_COLUMNS: Final[Columns[_Measured]] = Columns(
    id_column(lambda m: m.test),
    Column("metric", lambda m: m.observed.metric.name, "metric", fit=METRIC),
    Column("median", lambda m: m.median, "median",
           lambda m: format_value(m.observed.metric, m.median), right=True),
    Column("mad", lambda m: m.session and m.session.mad, "spread",
           lambda m: format_fraction(m.spread), right=True, fit=DROPPED[2]),
    Column("n", lambda m: len(m.observed.samples), "samples", right=True, fit=DROPPED[1]),
    Column("unit", lambda m: m.observed.metric.unit),
    Column("source", lambda m: m.observed.metric.source.value),
    Column("gated", lambda m: m.observed.gated),
    Column("outcome", lambda m: m.outcome, "verdict",
           lambda m: m.outcome or ("-" if m.observed.gated else "recorded only")),
)  # fmt: skip


def run_listing(run: Run) -> Listing:
    """Lay out what a run record holds."""
    found = [
        measured for name, judged in run.tests.items() for measured in _metrics_of(name, judged)
    ]
    raised = [
        f"{name} raised {judged.observation.raised}"
        for name, judged in run.tests.items()
        if judged.observation.raised is not None
    ]
    raised += [
        f"{name} ran out of memory: {judged.observation.out_of_memory}"
        for name, judged in run.tests.items()
        if judged.observation.out_of_memory is not None
    ]
    why = reasons_by_name(measured.observed for measured in found)
    sweeps = list(swept(run.tests.values()))
    lines: list[Block] = [*_run_heading(run), *_RUN_COLUMNS.table(found), *raised, *why]
    if sweeps:
        lines += ["", *(line for one in sweeps for line in sweep_lines(one))]
    document = encode_run(run) | ({"sweeps": [encode(each) for each in sweeps]} if sweeps else {})
    return Listing(tuple(lines), document, _RUN_COLUMNS.names, _RUN_COLUMNS.rows(found))


def _metrics_of(test: str, judged: JudgedTest) -> Iterator[_Measured]:
    outcomes = {verdict.metric.name: verdict.outcome.value for verdict in judged.verdicts}
    for name, observed in judged.observation.metrics.items():
        finite = tuple(sample for sample in observed.samples if not isnan(sample))
        session = session_of(observed, finite) if finite else None
        yield _Measured(test, observed, session, outcomes.get(name))


def _run_heading(run: Run) -> Iterator[str]:
    environment = run.environment
    parts = {
        "run": run.id,
        "label": run.label,
        "key": run.hardware.key if run.hardware else None,
        "started": environment.started_at,
        "commit": environment.commit,
        "python": environment.python,
        "ttnn": environment.ttnn,
        "cpu": environment.cpu,
    }
    for name, value in parts.items():
        if value is not None:
            dirty = " (dirty)" if name == "commit" and environment.dirty else ""
            yield f"{name}: {value}{dirty}"
    yield f"tests: {len(run.tests)}" + ("" if run.complete else " (the run was cut short)")


#: What a terminal shows of a long list; JSON and CSV have all of it.
_MOST_ROWS: Final = 40
_WIDEST: Final = 48
_MOST_HOT: Final = 10


def record_listing(record: object, *, name: str, kind: str) -> Listing:
    """Lay out the record that was read from the file ``name``, which is ``kind``."""
    content = plain(record)
    document = {"kind": kind, **(content if isinstance(content, dict) else {"value": content})}
    lines: list[Block] = [f"{name}: {kind}"]
    rows: list[dict[str, Any]] = []
    for place, value in _sections("", {f: v for f, v in document.items() if f != "kind"}):
        if _is_table(value):
            lines += ["", f"{place}:", *_table(value)]
            rows = rows or value
        elif value not in (None, [], {}, ""):
            lines.append(f"{place}: {_cell(value, widest=10 * _WIDEST)}")
    headings = tuple(dict.fromkeys(column for row in rows for column in row))
    cells = tuple(
        tuple(_text(cell) if isinstance(cell, (dict, list)) else cell for cell in values)
        for values in ([row.get(column) for column in headings] for row in rows)
    )
    return Listing(tuple(lines), document, headings, cells)


def _sections(place: str, members: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record, and after each table the tables that stand in its rows."""
    for field, value in members.items():
        path = f"{place} {field}".strip()
        rows = list(value.values()) if isinstance(value, dict) else value
        if not _is_table(rows):
            yield path, value
            continue
        inner = {column for row in rows for column, cell in row.items() if _is_table(cell)}
        yield path, [{c: v for c, v in row.items() if c not in inner} for row in rows]
        for number, row in enumerate(rows[:_MOST_ROWS], start=1):
            nested = {column: row[column] for column in row if column in inner}
            yield from _sections(f"{path} {number}", nested)


def plain(value: object) -> Any:
    """Return records, enums and tuples as plain JSON."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {field: plain(member) for field, member in zip(value._fields, value, strict=True)}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple, frozenset, set)):
        return [plain(member) for member in value]
    return value


def _is_table(value: object) -> bool:
    """Return whether a value is a list of objects."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _table(rows: list[dict[str, Any]]) -> list[Block]:
    known = {column for row in rows for column, value in row.items() if value not in (None, [], {})}
    headings = [
        column for column in dict.fromkeys(c for row in rows for c in row) if column in known
    ]
    shown = [[_cell(row.get(column)) for column in headings] for row in rows[:_MOST_ROWS]]
    more = len(rows) - _MOST_ROWS
    table = table_of(headings, shown)
    if len(rows) == 1:  # what is too wide for a line is long enough for a column
        table = replace(table, narrower=lambda: _transposed(headings, shown[0]))
    return [table, f"... and {more} more; --format json has them"] if more > 0 else [table]


def _transposed(headings: Sequence[str], cells: Sequence[str]) -> Table:
    pairs = zip(headings, cells, strict=True)
    return table_of(("field", "value"), list(pairs), fits=(NAME, Fit(least=_WIDEST)))


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


_RECORDS: Final[Mapping[ArtifactKind, Callable[[Path], object]]] = {
    ArtifactKind.DEVICE_LOG: read_device_log,
    ArtifactKind.REPORT_DB: read_report_db,
    ArtifactKind.GRAPH_JSON: read_graph_json,
    ArtifactKind.PERF_SUMMARY_JSON: read_perf_summary_json,
    ArtifactKind.SIM_TRACE: read_sim_trace,
    ArtifactKind.SIM_STATS: read_sim_stats,
    ArtifactKind.TT_SMI: read_tt_smi,
    ArtifactKind.TTLANG_LOG: read_ttlang_log,
}


def show_ops(
    file: Path, *, start: str | None, end: str | None, region: str | None, shape: str
) -> str:
    """Show the ops of a capture one by one, of all regions or of one.

    Raises:
        InputError: the file holds no op table, or is damaged.
        UsageError: a window or a region was named that the file does not have.
    """
    table = op_table_of(file, start=start, end=end)
    name = None if region is None else region_named(table, region, file.name).name
    listing = op_listing(table, name=file.name, style=stdout_style(), region=name)
    return listing.text(shape, Style())  # it is as wide as it may be, and coloured


def show_file(
    file: Path,
    *,
    start: str | None = None,
    end: str | None = None,
    region: str | None = None,
    shape: str,
) -> str:
    """Show what a file holds; of an op table, a window between signposts or a region if named.

    Raises:
        InputError: the file is of no known format, or is damaged.
        UsageError: a window was named that the file does not have.
    """
    kind = presumed_kind_of(file)
    if kind in OP_TABLES:
        table = op_table_of(file, start=start, end=end, region=region)
        return ops_listing(table, name=file.name).text(shape)
    if start or end or region:
        selecting = "--region, --start and --end select ops of an op table"
        message = f"{selecting}; {file.name} is {kind.value}"
        raise UsageError(message)
    if kind is ArtifactKind.RUN_RECORD:
        return run_listing(read_run(file)).text(shape)
    if kind is ArtifactKind.BENCHMARK_JSON:
        from pytest_ttnn_perf.analysis.captures.benchmark_run import read_benchmark_run

        return run_listing(read_benchmark_run(file)).text(shape)
    record = _RECORDS[kind](file)
    listing = record_listing(record, name=file.name, kind=kind.value)
    if isinstance(record, TtlangLog):
        listing = replace(listing, lines=(*listing.lines, *_hot_lines(record)))
    return listing.text(shape)


def _hot_lines(log: TtlangLog) -> Iterator[Block]:
    """Yield the source lines of kernels with most cycles, where a log tells them."""
    from pytest_ttnn_perf.analysis.checklist.kernels import hot_lines

    hottest = hot_lines(log)[:_MOST_HOT]
    if hottest:
        cells = [
            (f"{hot.cycles:,}", f"{hot.share * 100:.1f} %", hot.thread, str(hot.line), hot.source)
            for hot in hottest
        ]
        headings = ("cycles", "of its thread", "thread", "line", "source")
        yield from ("", "hot lines:", table_of(headings, cells, right=frozenset({0, 1, 3})))


def presumed_kind_of(file: Path) -> ArtifactKind:
    """Return the format of a file; unknown JSON counts as a run record, whose reader says more."""
    try:
        return kind_of(file)
    except InputError:
        if Path(file.name.removesuffix(".gz")).suffix in {".json", ".jsonl"}:
            return ArtifactKind.RUN_RECORD
        raise


def run(options: argparse.Namespace) -> Result:
    """Return the file's content.

    Raises:
        InputError: it is of no known format, or is damaged.
        UsageError: a window or a region was named that it does not have.
    """
    shown = show_ops if options.ops else show_file
    text = shown(
        options.file,
        start=options.start,
        end=options.end,
        region=options.region,
        shape=options.format,
    )
    return Result(text)
