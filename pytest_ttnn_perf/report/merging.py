"""What became of a merge: both sides of every conflict, and the command that takes the other."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.model.merge import Take
from pytest_ttnn_perf.report.listing import Listing
from pytest_ttnn_perf.report.numbers import format_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.model.baseline import Accepted
    from pytest_ttnn_perf.model.merge import Conflict, Merged
    from pytest_ttnn_perf.model.metric import Metric

_COLUMNS: Final = (
    "test", "metric", "unit", "ours", "ours_sessions", "theirs", "theirs_sessions", "taken",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """One side's baseline of a test: who accepted it, and centre and sessions of each metric."""

    accepted: Accepted
    values: Mapping[str, tuple[Metric, float, int]]


_Sides = tuple["Conflict", "Side | None", "Side | None"]


def conflict_listing(path: str, merged: Merged, sides: Sequence[_Sides]) -> Listing:
    """Lay out what could not be joined, with both sides' numbers, reasons and dates."""
    lines = [f"joined the sessions of both sides: {test}" for test in merged.joined]
    for conflict, ours, theirs in sides:
        head = "resolved" if conflict.settled else "conflict"
        how = "was changed on one side and removed on the other"
        if ours and theirs:
            how = "was accepted on both sides"
        lines.append(f"{head} in {path}: {conflict.test} {how}; {conflict.taken.value} is in it")
        lines += _metric_lines(ours, theirs)
        lines += [f"  {name}: {_said(side)}" for name, side in (("ours", ours), ("theirs", theirs))]
    if merged.unsettled:
        lines += _commands(path)
    document = {
        "path": path,
        "joined": list(merged.joined),
        "conflicts": [_document(*each) for each in sides],
    }
    rows = tuple(row for each in sides for row in _rows(*each))
    return Listing(tuple(lines), document, _COLUMNS, rows)


def table_conflict_listing(path: str, *, conflict: bool, theirs: bool, settled: bool) -> Listing:
    """Lay out what became of an op table."""
    taken = Take.THEIRS.value if theirs else Take.OURS.value
    lines: list[str] = []
    if conflict:
        head = "resolved" if settled else "conflict"
        lines.append(f"{head} in {path}: both sides have another op table; {taken} is in it")
        if not settled:
            lines.append("  it belongs to the baseline that is taken, which this file cannot tell")
            lines += _commands(path)
    document = {"path": path, "joined": [], "conflicts": [{"taken": taken}] if conflict else []}
    return Listing(tuple(lines), document, _COLUMNS, ())


def _commands(path: str) -> Iterator[str]:
    words = shlex.join(["ttnn-perf", "baseline", "merge", "--path", path, "--take", "theirs"])
    yield f"  take theirs with: {words} && {shlex.join(['git', 'add', path])}"
    yield f"  keep ours with: {shlex.join(['git', 'add', path])}"


def _metric_lines(ours: Side | None, theirs: Side | None) -> Iterator[str]:
    for name in _names(ours, theirs):
        yield f"  {name}: ours {_value(ours, name)}, theirs {_value(theirs, name)}"


def _names(ours: Side | None, theirs: Side | None) -> list[str]:
    return sorted({*(ours.values if ours else ()), *(theirs.values if theirs else ())})


def _value(side: Side | None, name: str) -> str:
    if side is None or name not in side.values:
        return "none"
    metric, centre, sessions = side.values[name]
    return f"{format_value(metric, centre)} ({counted(sessions, 'session')})"


def _said(side: Side | None) -> str:
    if side is None:
        return "removed"
    accepted = side.accepted
    commit = f" at {accepted.commit}" if accepted.commit else ""
    return f"accepted {accepted.at}{commit}, {accepted.reason or 'no reason given'}"


def _document(conflict: Conflict, ours: Side | None, theirs: Side | None) -> dict[str, object]:
    return {
        "test": conflict.test,
        "taken": conflict.taken.value,
        "settled": conflict.settled,
        "ours": _side_document(ours),
        "theirs": _side_document(theirs),
    }


def _side_document(side: Side | None) -> dict[str, object] | None:
    if side is None:
        return None
    accepted = side.accepted
    return {
        "at": accepted.at,
        "commit": accepted.commit,
        "reason": accepted.reason,
        "metrics": {
            name: {"centre": centre, "unit": metric.unit, "sessions": sessions}
            for name, (metric, centre, sessions) in side.values.items()
        },
    }


def _rows(
    conflict: Conflict, ours: Side | None, theirs: Side | None
) -> Iterator[tuple[object, ...]]:
    for name in _names(ours, theirs):
        metric, mine, my_sessions = _cells(ours, name)
        other, its, its_sessions = _cells(theirs, name)
        known = metric or other
        unit = known.unit if known else ""
        numbers = (mine, my_sessions, its, its_sessions)
        yield (conflict.test, name, unit, *numbers, conflict.taken.value)


def _cells(side: Side | None, name: str) -> tuple[Metric | None, float | None, int | None]:
    if side is None or name not in side.values:
        return None, None, None
    return side.values[name]
