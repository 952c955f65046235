"""``ttnn-perf compare BEFORE AFTER``: changes between two runs or two captures."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import to_builtins

from pytest_ttnn_perf.analysis.readers.attach import ARTIFACTS, read_artifact
from pytest_ttnn_perf.analysis.readers.compare import (
    CallChange,
    ChangedCalls,
    LineChange,
    Platform,
    call_changes,
    compare_captures,
    hardware_changes,
    line_changes,
    platform_of_log,
    program_changes,
)
from pytest_ttnn_perf.analysis.readers.detect import OP_TABLES, ArtifactKind, read_run
from pytest_ttnn_perf.analysis.show.attribution import op_comparison_listing
from pytest_ttnn_perf.cli.common import add_argument, add_format, add_window, presumed_kind_of
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.metric import Better
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.experiments.compare_runs import Pair, Reading, compare_runs
from pytest_ttnn_perf.gate.judge import representative
from pytest_ttnn_perf.report.tables import (
    DROPPED,
    METRIC,
    NAME,
    Column,
    Columns,
    Fit,
    Listing,
    Result,
    format_change,
    format_value,
    id_column,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import Artifact, Run
    from pytest_ttnn_perf.experiments.compare_runs import RunComparison
    from pytest_ttnn_perf.report.tables import Block


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ttnn-perf compare``."""
    parser.description = (
        "For two run records, show every metric side by side, without judging it. For two "
        "ops_perf_results CSVs, align the ops and show which ones changed, by how much, and why; "
        "the parts add up to the change of the kernel time."
    )
    add = partial(add_argument, parser)
    add("before BEFORE", "a run record or a capture; the format is detected", type=Path)
    add("after AFTER", "a file of the same kind", type=Path)
    add_window(parser)
    add_format(parser)
    parser.set_defaults(run=run_compare)


def run_compare(options: argparse.Namespace) -> Result:
    """Compare two run records, or two captures of one kind."""
    files = before, after = options.before, options.after
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
        message = f"a run record is compared with another one: {found}"
        raise UsageError(message)
    if options.start or options.end or options.region:
        are_runs = f"{before.name} and {after.name} are run records"
        what = are_runs if ArtifactKind.RUN_RECORD in kinds else found.partition(",")[0]
        message = f"--region, --start and --end select ops of an op table; {what}"
        raise UsageError(message)
    if ArtifactKind.RUN_RECORD in kinds:
        comparison = compare_runs(read_run(before), read_run(after))
        listing = comparison_listing(comparison, names=(before.name, after.name))
        return Result(listing.text(options.format))
    if kinds[0] is not kinds[1] or kinds[0] not in ARTIFACTS:
        message = f"a capture is compared with another of its kind: {found}"
        raise UsageError(message)
    listing = _captures_listing(read_artifact(before), read_artifact(after), kinds[0].value)
    return Result(listing.text(options.format))


#: How notes begin: of metrics that were compared, and of others.
_COMPARED: Final = ("worse", "better", "different", "unchanged")
_APART: Final = ("not comparable", "only before", "only after")
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
_METRICS: Final[Columns[Pair]] = Columns(*_PAIR)


def comparison_listing(comparison: RunComparison, *, names: tuple[str, str]) -> Listing:
    """Lay out two runs that were read from the files ``names``."""
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
    lines += [f"{trouble.run}: {trouble.test}: {trouble.what}" for trouble in comparison.troubles]
    lines += [f"{change.test} by op: {change.sentence}" for change in comparison.by_op]
    document = {
        "before": _run_document(before),
        "after": _run_document(after),
        "metrics": _RUN_METRICS.objects(pairs),
        "environment": [to_builtins(difference) for difference in comparison.environment],
        "troubles": [to_builtins(trouble) for trouble in comparison.troubles],
        "by_op": [to_builtins(change) for change in comparison.by_op],
    }
    lines += [_count_line(pairs), _NO_GATE]
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


def _count_line(pairs: Sequence[Pair]) -> str:
    notes = Counter(_note_of(pair).partition(":")[0] for pair in pairs)
    ways = ", ".join(f"{notes[way]} {way}" for way in _COMPARED if notes[way])
    compared = f"{counted(sum(notes[way] for way in _COMPARED), 'metric')} compared"
    apart = [f"{notes[why]} {why}" for why in _APART if notes[why]]
    return "; ".join([f"{compared}: {ways}" if ways else compared, *apart])


# Captures without op tables: reports, graphs, logs, simulations.

#: What a terminal shows of a long list; JSON has all of it.
_MOST_ROWS: Final = 20
_CALLS: Final[Columns[ChangedCalls]] = Columns(
    Column("change", lambda c: c.change.value),
    Column("call", lambda c: c.call),
    Column("count", lambda c: c.count),
    Column("what", lambda c: "; ".join(c.what)),
)
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
    """Lay out what changed: metrics, calls, programs, lines."""
    pairs = _pairs(first, second)
    differs = hardware_changes(_hardware_of(first), _hardware_of(second))
    lines: list[Block] = [f"not the same hardware: {', '.join(differs)}"] if differs else []
    notes = [
        f"{word}: {observed.note}"
        for word, artifact in (("before", first), ("after", second))
        for observed in artifact.metrics
        if not observed.samples and observed.note
    ]
    lines += [*_METRICS.table(pairs), *dict.fromkeys(notes)]
    if not lines:
        lines.append("nothing that is compared differs")
    document: dict[str, object] = {
        "kind": kind,
        "differs": list(differs),
        "metrics": _METRICS.objects(pairs),
    }
    headings, rows = _METRICS.names, _METRICS.rows(pairs)
    if first.report is not None and second.report is not None:
        calls = call_changes(first.report, second.report)
        lines += ["", *_call_lines(calls)]
        document["calls"] = _CALLS.objects(calls)
        headings, rows = _CALLS.names, _CALLS.rows(calls)
    if first.kernels is not None and second.kernels is not None:
        programs = program_changes(first.kernels, second.kernels)
        changed = line_changes(first.kernels, second.kernels)
        lines += ["", *programs] if programs else []
        if changed:
            lines += ["", *_LINES.table(changed[:_MOST_ROWS]), *_left_out(changed)]
        document |= {"programs": list(programs), "lines": _LINES.objects(changed)}
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


def _call_lines(calls: Sequence[ChangedCalls]) -> Iterator[str]:
    """Yield the calls that changed, each with what changed of it below."""
    if not calls:
        yield "the same calls, with the same operands"
        return
    counts = (
        f"{sum(each.count for each in calls if each.change is change)} {change.value}"
        for change in CallChange
    )
    yield f"calls: {', '.join(counts)}"
    for each in calls[:_MOST_ROWS]:
        several = f"{each.count} x " if each.count > 1 else ""
        yield f"{each.change.value:<9}{several}{each.call}"
        yield from (f"{'':<11}{what}" for what in each.what)
    yield from _left_out(calls)


def _left_out(records: Sequence[object]) -> Iterator[str]:
    more = len(records) - _MOST_ROWS
    if more > 0:
        yield f"... and {more} more; --format json has them"
