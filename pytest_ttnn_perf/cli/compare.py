"""``ttnn-perf compare`` of two captures without op tables: reports, graphs, logs, simulations."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import to_builtins

from pytest_ttnn_perf.analysis.readers.attach import ARTIFACTS, read_artifact
from pytest_ttnn_perf.analysis.readers.compare import (
    CallChange,
    ChangedCalls,
    LineChange,
    Told,
    call_changes,
    compare_captures,
    hardware_changes,
    line_changes,
    program_changes,
    told_by_log,
)
from pytest_ttnn_perf.analysis.readers.detect import OP_TABLES, ArtifactKind, read_run
from pytest_ttnn_perf.analysis.show.attribution import op_comparison_listing
from pytest_ttnn_perf.cli.captures import presumed_kind_of
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
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import Artifact, MetricObservation, Run
    from pytest_ttnn_perf.experiments.compare_runs import RunComparison
    from pytest_ttnn_perf.report.tables import Block


# ``ttnn-perf compare BEFORE AFTER``: what changed between two runs or two captures.

#: What notes begin with: of metrics that were compared, and of those that were not.
_COMPARED: Final = ("worse", "better", "different", "unchanged")
_APART: Final = ("not comparable", "only before", "only after")
_NO_GATE: Final = "nothing is judged here: verdicts come from `ttnn-perf gate`"


def comparison_listing(comparison: RunComparison, *, names: tuple[str, str]) -> Listing:
    """Lay out two runs that were read from the files ``names``."""
    before, after, pairs = comparison.before, comparison.after, comparison.pairs
    lines: list[Block] = [
        f"before: {_run_text(before, names[0])}",
        f"after: {_run_text(after, names[1])}",
    ]
    changes = [f"{d.field} {_known(d.before)} → {_known(d.after)}" for d in comparison.environment]
    lines += [f"environment: {', '.join(changes) or 'nothing that is recorded differs'}", ""]
    lines += [*_COLUMNS.table(pairs), ""] if pairs else []
    lines += [f"{trouble.run}: {trouble.test}: {trouble.what}" for trouble in comparison.troubles]
    lines += [f"{change.test} by op: {change.sentence}" for change in comparison.by_op]
    document = {
        "before": _heading(before),
        "after": _heading(after),
        "metrics": _COLUMNS.objects(pairs),
        "environment": [to_builtins(difference) for difference in comparison.environment],
        "troubles": [to_builtins(trouble) for trouble in comparison.troubles],
        "by_op": [to_builtins(change) for change in comparison.by_op],
    }
    lines += [_count_line(pairs), _NO_GATE]
    return Listing(tuple(lines), document, _COLUMNS.names, _COLUMNS.rows(pairs))


def _run_text(run: Run, name: str) -> str:
    parts = [name]
    parts += [f"run {run.id}"] if run.id is not None else []
    parts += [run.label] if run.label is not None else []
    parts += [run.hardware.key] if run.hardware else []
    cut = "" if run.complete else " (the run was cut short)"
    return ", ".join([*parts, counted(len(run.tests), "test")]) + cut


def _heading(run: Run) -> dict[str, object]:
    key = run.hardware.key if run.hardware else None
    return {"id": run.id, "complete": run.complete, "hardware": key}


def _known(value: Scalar) -> str:
    return "unknown" if value is None else str(value)


def value_cell(reading: Reading | None, *, beside: float | None = None) -> str:
    """Return a value as people read it, in the unit of the one beside it."""
    return format_value(reading.metric, reading.value, beside=beside) if reading else "-"


def after_cell(pair: Pair) -> str:
    """Return the value after in the unit of the one before, unless each has its own."""
    beside = pair.before.value if pair.before and pair.unit is not None else None
    return value_cell(pair.after, beside=beside)


def note_of(pair: Pair) -> str:
    """Return better, worse, different or unchanged, or why two values are not comparable."""
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
    return _way(pair.after.metric, *pair.values, change=pair.change)


_COLUMNS: Final[Columns[Pair]] = Columns(
    id_column(lambda p: p.test),
    Column("metric", lambda p: p.metric, "metric", fit=METRIC),
    Column("unit", lambda p: p.unit),
    Column("before", lambda p: p.before and p.before.value, "before",
           lambda p: value_cell(p.before), right=True, fit=DROPPED[1]),
    Column("after", lambda p: p.after and p.after.value, "after", after_cell, right=True),
    Column("change", lambda p: p.change, "change", lambda p: format_change(p.change), right=True),
    Column("note", note_of, "note", fit=Fit(least=12)),
)  # fmt: skip


def _way(metric: Metric, before: float, after: float, *, change: float | None) -> str:
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


def _count_line(pairs: Sequence[Pair]) -> str:
    notes = Counter(note_of(pair).partition(":")[0] for pair in pairs)
    ways = ", ".join(f"{notes[way]} {way}" for way in _COMPARED if notes[way])
    compared = f"{counted(sum(notes[way] for way in _COMPARED), 'metric')} compared"
    apart = [f"{notes[why]} {why}" for why in _APART if notes[why]]
    return "; ".join([f"{compared}: {ways}" if ways else compared, *apart])


def compare_files(
    before: Path,
    after: Path,
    *,
    start: str | None = None,
    end: str | None = None,
    region: str | None = None,
    shape: str,
) -> str:
    """Say what changed between two run records, or between two captures of one kind.

    Of op tables, the window between two signposts, or one region, is compared if it is named.

    Raises:
        InputError: a file is neither, or is damaged.
        UsageError: the files cannot be compared, or lack the window.
    """
    kinds = [_compared_as(presumed_kind_of(file)) for file in (before, after)]
    if ArtifactKind.RUN_RECORD not in kinds and not OP_TABLES.keys() & set(kinds):
        if start or end or region:
            found = f"{before.name} is {kinds[0].value}"
            message = f"--region, --start and --end select ops of an op table; {found}"
            raise UsageError(message)
        return captures_listing(before, after, kinds).text(shape)
    if ArtifactKind.RUN_RECORD not in kinds:
        change = compare_captures(before, after, start=start, end=end, region=region)
        return op_comparison_listing(change).text(shape)
    if kinds[0] is not kinds[1]:
        found = f"{before.name} is {kinds[0].value}, {after.name} is {kinds[1].value}"
        message = f"a run record is compared with another one: {found}"
        raise UsageError(message)
    if start or end or region:
        message = (
            f"--region, --start and --end select ops of an op table; {before.name} and "
            f"{after.name} are run records"
        )
        raise UsageError(message)
    comparison = compare_runs(read_run(before), read_run(after))
    return comparison_listing(comparison, names=(before.name, after.name)).text(shape)


def _compared_as(kind: ArtifactKind) -> ArtifactKind:
    """Return the kind that a file is compared as: the results of benchmarks are runs."""
    return ArtifactKind.RUN_RECORD if kind is ArtifactKind.BENCHMARK_JSON else kind


def run_compare(options: argparse.Namespace) -> Result:
    """Return the comparison."""
    text = compare_files(
        options.before,
        options.after,
        start=options.start,
        end=options.end,
        region=options.region,
        shape=options.format,
    )
    return Result(text)


T = TypeVar("T")
#: What a terminal shows of a long list; JSON has all of it.
_MOST_ROWS: Final = 20
_METRICS: Final[Columns[Pair]] = Columns(
    Column("metric", lambda p: p.metric, "metric", fit=METRIC),
    Column("unit", lambda p: p.unit),
    Column("before", lambda p: p.before and p.before.value, "before",
           lambda p: value_cell(p.before), right=True, fit=DROPPED[1]),
    Column("after", lambda p: p.after and p.after.value, "after", after_cell, right=True),
    Column("change", lambda p: p.change, "change", lambda p: format_change(p.change), right=True),
    Column("note", note_of, "note", fit=Fit(least=12)),
)  # fmt: skip
_CALLS: Final[Columns[ChangedCalls]] = Columns(
    Column("change", lambda c: c.change.value),
    Column("call", lambda c: c.call),
    Column("count", lambda c: c.count),
    Column("what", lambda c: "; ".join(c.what)),
)  # fmt: skip
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


def captures_listing(before: Path, after: Path, kinds: Sequence[ArtifactKind]) -> Listing:
    """Lay out what changed between two captures of one kind: metrics, calls, programs, lines.

    Raises:
        InputError: one is damaged.
        UsageError: they are of different kinds, or of one that tells nothing.
    """
    if kinds[0] is not kinds[1] or kinds[0] not in ARTIFACTS:
        found = f"{before.name} is {kinds[0].value}, {after.name} is {kinds[1].value}"
        message = f"a capture is compared with another of its kind: {found}"
        raise UsageError(message)
    first, second = read_artifact(before), read_artifact(after)
    pairs = _pairs(first, second)
    differs = hardware_changes(_told(first), _told(second))
    lines: list[Block] = [f"not the same hardware: {', '.join(differs)}"] if differs else []
    lines += [*_METRICS.table(pairs), *_notes(first, second)]
    if not lines:
        lines.append("nothing that is compared differs")
    document: dict[str, object] = {
        "kind": kinds[0].value,
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
        lines += ["", *_shortened(_LINES, changed)] if changed else []
        document |= {"programs": list(programs), "lines": _LINES.objects(changed)}
    return Listing(tuple(lines), document, headings, rows)


def _pairs(first: Artifact, second: Artifact) -> list[Pair]:
    ours = {observed.metric.name: observed for observed in first.metrics}
    theirs = {observed.metric.name: observed for observed in second.metrics}
    return [
        Pair("", name, _reading(ours.get(name)), _reading(theirs.get(name)))
        for name in {**ours, **theirs}
    ]


def _reading(observed: MetricObservation | None) -> Reading | None:
    if observed is None:
        return None
    samples = observed.samples
    return Reading(observed.metric, representative(observed.metric, samples) if samples else None)


def _notes(first: Artifact, second: Artifact) -> list[str]:
    """Return why a metric has no value."""
    notes = (
        f"{word}: {observed.note}"
        for word, artifact in (("before", first), ("after", second))
        for observed in artifact.metrics
        if not observed.samples and observed.note
    )
    return list(dict.fromkeys(notes))


def _told(artifact: Artifact) -> Told:
    if artifact.kernels is not None:
        return told_by_log(artifact.kernels)
    clock = artifact.environment.get("clock_mhz")
    cores = {device.compute_cores for device in artifact.report.devices} if artifact.report else {}
    return Told(
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


def _shortened(columns: Columns[T], records: Sequence[T]) -> list[Block]:
    """Return the lines of a table that is not too long to read."""
    return [*columns.table(records[:_MOST_ROWS]), *_left_out(records)]
