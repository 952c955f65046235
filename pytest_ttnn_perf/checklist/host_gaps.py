"""How long devices wait between ops, counted only where it tells something of the model.

Between phases of a program lie compilation and idle time, so that the gaps of a whole capture are
nearly all of its time. Counted are gaps inside replays of traces, else inside windows; the gap
before the first op of each is not inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.checklist.op_times import worst_ops
from pytest_ttnn_perf.checklist.windows import measured_calls
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.windows import Window
    from pytest_ttnn_perf.model.finding import Evidence
    from pytest_ttnn_perf.model.ops import OpTable
    from pytest_ttnn_perf.model.subject import Subject

_NEITHER: Final = (
    "the capture has neither replays of a trace nor a window of signposts (NAME … NAME_END): gaps "
    "of a whole capture are compilation and idle time"
)
_NO_GAPS: Final = "the capture does not tell the gaps between ops"
INFLATED: Final = "outside a replay the profiler itself makes gaps longer"

#: The places of the ops that one device ran one after the other.
Sequence = list[int]


class Gaps(NamedTuple):
    """What devices waited and worked inside ``executions`` replays, or windows."""

    waited_ns: float
    worked_ns: float
    executions: int
    replayed: bool
    waits: tuple[int, ...]

    @property
    def share(self) -> float:
        """The part of the time in which devices waited."""
        return self.waited_ns / self.whole_ns if self.whole_ns else 0.0

    @property
    def whole_ns(self) -> float:
        """The time that was looked at."""
        return self.waited_ns + self.worked_ns

    @property
    def place(self) -> str:
        """Where the gaps were counted, in words."""
        kind = "replay" if self.replayed else "window"
        return counted(self.executions, kind)

    @property
    def caveat(self) -> str | None:
        """What to keep in mind about the number."""
        return None if self.replayed else INFLATED


def gaps_of(subject: Subject) -> Gaps | str:
    """Return the gaps of a subject, or why they cannot be told."""
    table = subject.ops
    if table is None:
        return subject.why_absent(Input.OPS)
    replays = _replays(table)
    windows = [] if replays else measured_calls(table)
    sequences = list(replays.values()) or _in_windows(table, windows)
    if not sequences:
        return _NEITHER
    gaps = table.columns.gap_ns
    waits = tuple(at for sequence in sequences for at in sequence[1:] if gaps[at] is not None)
    if not waits and any(len(sequence) > 1 for sequence in sequences):
        return _NO_GAPS
    return Gaps(
        waited_ns=sum(_gap(table, at) for at in waits),
        worked_ns=sum(table.columns.kernel_ns[at] for each in sequences for at in each),
        executions=len(windows) or len({key[1:] for key in replays}),
        replayed=bool(replays),
        waits=waits,
    )


def longest_gaps(table: OpTable, gaps: Gaps) -> tuple[Evidence, ...]:
    """Return before which ops the devices waited most."""
    waits = map(table.op, gaps.waits)
    return worst_ops(waits, lambda op: max(op.gap_ns or 0.0, 0.0), of=gaps.whole_ns)


def _gap(table: OpTable, at: int) -> float:
    """Return a gap; one below zero is an artefact of the profiler's clocks."""
    return max(table.columns.gap_ns[at] or 0.0, 0.0)


def _replays(table: OpTable) -> dict[tuple[int, int, int], Sequence]:
    """Return the ops of each replay of each trace on each device."""
    found: dict[tuple[int, int, int], Sequence] = {}
    columns = table.columns
    rows = zip(columns.device, columns.trace, columns.replay, strict=True)
    for at, (device, trace, replay) in enumerate(rows):
        if trace is not None and replay is not None and not columns.host[at]:
            found.setdefault((device, trace, replay), []).append(at)
    return found


def _in_windows(table: OpTable, windows: list[Window]) -> list[Sequence]:
    found: dict[tuple[Window, int], Sequence] = {}
    for window in windows:
        for at in range(window.start, window.stop):
            if not table.columns.host[at]:
                found.setdefault((window, table.columns.device[at]), []).append(at)
    return list(found.values())
