"""What ran several times: replays of a trace and calls between signposts, held side by side."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.checklist.op_times import described
from pytest_ttnn_perf.checklist.windows import measured_calls, signpost_windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.ops import OpTable


class Execution(NamedTuple):
    """What one device ran in one replay or call; ``places`` are rows of the table."""

    number: int
    places: list[int]


class Difference(NamedTuple):
    """An execution that is not like the first of its kind, and the first op in which it differs.

    ``same_ops``: only their operands differ.
    """

    what: str
    number: int
    expected: str
    found: str
    same_ops: bool

    def __str__(self) -> str:
        return f"{self.what} {self.number}: {self.found} instead of {self.expected}"


def executions(table: OpTable) -> dict[str, list[Execution]]:
    """Return what ran at least twice, by what it is: traces, and windows of one name."""
    found: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    columns = table.columns
    for at, (device, trace, replay) in enumerate(
        zip(columns.device, columns.trace, columns.replay, strict=True)
    ):
        if trace is not None and replay is not None and not columns.host[at]:
            found[f"trace {trace} on device {device}, replay"][replay].append(at)
    windows = measured_calls(table) if table.calls else signpost_windows(table)
    for number, window in enumerate(windows):
        for at in range(window.start, window.stop):
            if not columns.host[at] and columns.trace[at] is None:
                found[f"{window.name} on device {columns.device[at]}, call"][number].append(at)
    numbered = {
        what: [Execution(n, places) for n, places in enumerate(by_number.values(), start=1)]
        for what, by_number in found.items()
    }
    return {what: runs for what, runs in numbered.items() if len(runs) > 1}


def differences(table: OpTable) -> Iterator[Difference]:
    """Yield the executions that ran other ops or on other operands than the first of a kind."""
    signature = table.columns.signature
    for what, (first, *others) in executions(table).items():
        expected = [signature[at] for at in first.places]
        for other in others:
            ran = [signature[at] for at in other.places]
            if ran != expected:
                yield _difference(table, what, first, other)


def first_difference(table: OpTable) -> Difference | None:
    """Return a difference between executions; None where all are alike or nothing ran twice."""
    return next(differences(table), None)


def _difference(table: OpTable, what: str, first: Execution, other: Execution) -> Difference:
    pairs = [
        (table.op(mine), table.op(theirs))
        for mine, theirs in zip(first.places, other.places, strict=False)
    ]
    same = len(first.places) == len(other.places) and all(
        mine.signature.op == theirs.signature.op for mine, theirs in pairs
    )
    for mine, theirs in pairs:
        if mine.signature != theirs.signature:
            return Difference(what, other.number, described(mine), described(theirs), same)
    expected, found = counted(len(first.places), "op"), counted(len(other.places), "op")
    return Difference(what, other.number, expected, found, same)
