"""``ttnn-perf compare`` of two captures without op tables: reports, graphs, logs, simulations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.analysis.captures.differences import (
    CallChange,
    ChangedCalls,
    Told,
    call_changes,
    hardware_changes,
)
from pytest_ttnn_perf.analysis.captures.ttlang_changes import (
    LineChange,
    line_changes,
    program_changes,
    told_by_log,
)
from pytest_ttnn_perf.cli.compare import after_cell, note_of, value_cell
from pytest_ttnn_perf.experiments.compare_runs import Pair, Reading
from pytest_ttnn_perf.gate.judge import representative
from pytest_ttnn_perf.observe.artifacts import ARTIFACTS, read_artifact
from pytest_ttnn_perf.report.layout import DROPPED, METRIC, NAME, Fit
from pytest_ttnn_perf.report.numbers import Column, Columns, Listing, format_change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.analysis.captures.detect import ArtifactKind
    from pytest_ttnn_perf.records.observation import Artifact, MetricObservation
    from pytest_ttnn_perf.report.layout import Block


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
