"""Times of ops: kernel time, gaps between ops, repeated executions."""

from __future__ import annotations

from collections import defaultdict
from itertools import compress
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.ops import names
from pytest_ttnn_perf.analysis.ops.regions import (
    COMPILING_NS,
    measured_calls,
    once_per_table,
    signpost_windows,
)
from pytest_ttnn_perf.core.finding import Evidence, Input
from pytest_ttnn_perf.core.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_ttnn_perf.core.finding import Subject
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature

#: Evidence names so many ops by their numbers: enough to find them, and to see what they share.
MOST_NUMBERS: Final = 8


@once_per_table
def device_ops(table: OpTable) -> Sequence[Op]:
    """Return the ops that ran on a device."""
    return tuple(op for op in table if not op.host)


@once_per_table
def signature_numbers(table: OpTable) -> Sequence[int]:
    """Return the signature index of each op on a device."""
    rows = zip(table.columns.signature, table.columns.host, strict=True)
    return tuple(number for number, host in rows if not host)


def ops_like(table: OpTable, chosen: Callable[[Signature], bool]) -> Sequence[Op]:
    """Return the ops of a device with some signatures, in their order."""
    numbers = signature_numbers(table)
    # Each signature is asked once: most ops of a table differ only in their numbers.
    wanted = {number for number in set(numbers) if chosen(table.signatures[number])}
    if not wanted:
        return ()  # before an object is made of every row
    return tuple(compress(device_ops(table), map(wanted.__contains__, numbers)))


@once_per_table
def kernel_ns(table: OpTable) -> float:
    """Return the kernel time of all ops of devices."""
    return sum(table.columns.kernel_ns)


def worst_ops(
    ops: Iterable[Op],
    weight: Callable[[Op], float] = lambda op: op.kernel_ns,
    *,
    of: float | None,
    unit: str = "ns",
) -> Iterator[Evidence]:
    """Yield evidence of ops, those of one signature together, the heaviest first."""
    return heaviest(((op_name(op), weight(op), op.number) for op in ops), of=of, unit=unit)


def heaviest(
    weighed: Iterable[tuple[str, float, int]],
    *,
    of: float | None,
    unit: str = "ns",
    least: float = 0.0,
) -> Iterator[Evidence]:
    """Yield evidence by text, heaviest first, from a share of all on.

    Each of ``weighed`` is a text, a weight and the number of an op.
    """
    weights: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for text, weight, number in weighed:
        weights[text].append((weight, number))
    totals = {text: sum(each for each, _ in listed) for text, listed in weights.items()}
    worth = least * sum(totals.values())
    for text in sorted(totals, key=lambda text: (-totals[text], text)):
        if totals[text] < worth:
            break
        listed = weights[text]
        times = f"{len(listed)} x {text}" if len(listed) > 1 else text
        share = totals[text] / of if of else None
        yield Evidence(times, totals[text], unit, share, heaviest_numbers(listed))


def heaviest_numbers(weighed: Iterable[tuple[float, int]]) -> tuple[int, ...]:
    """Return the numbers of the heaviest ops; 0 is no number."""
    ordered = sorted(weighed, key=lambda each: (-each[0], each[1]))
    return tuple(number for _, number in ordered[:MOST_NUMBERS] if number)


def op_name(op: Op) -> str:
    """Return an op as people call it: function and operands."""
    return names.op_name(op.signature, op.attributes)


def has_operands(table: OpTable) -> bool:
    """Return whether a capture has operands; device reports lack them."""
    return any(signature.inputs or signature.outputs for signature in table.signatures)


_NEITHER: Final = (
    "the capture has neither replays of a trace nor a window of signposts (NAME … NAME_END): gaps "
    "of a whole capture are compilation and idle time"
)
#: A host that sends op after op takes less for each, though some gaps may be longer.
_COLD_NS: Final = 2e5
_NO_GAPS: Final = "the capture does not give the gaps between ops"
_INFLATED: Final = "outside a replay the profiler itself makes gaps longer"


class Gaps(NamedTuple):
    """Waiting and working time inside ``executions`` replays, or windows.

    ``waits`` are the rows that were waited for.
    """

    waited_ns: float
    worked_ns: float
    executions: int
    replayed: bool
    waits: tuple[int, ...]

    @property
    def share(self) -> float:
        """The part of the time in which devices waited."""
        whole_ns = self.waited_ns + self.worked_ns
        return self.waited_ns / whole_ns if whole_ns else 0.0

    @property
    def place(self) -> str:
        """Where the gaps were counted, in words."""
        return counted(self.executions, "replay" if self.replayed else "window")

    @property
    def caveat(self) -> str | None:
        """A remark on the number."""
        return None if self.replayed else _INFLATED


def gaps_of(subject: Subject) -> Gaps | str:
    """Return the gaps of a subject, or why they are not known.

    Between phases of a program lie compilation and idle time, so that the gaps of a whole capture
    are nearly all of its time. Counted are gaps inside replays of traces, else inside windows; the
    gap before the first op of each is not inside. A window in which programs were compiled tells
    nothing of a later call.
    """
    return subject.why_absent(Input.OPS) if subject.ops is None else _gaps(subject.ops)


@once_per_table
def _gaps(table: OpTable) -> Gaps | str:
    replays = _replays(table)
    windows = [] if replays else measured_calls(table)
    sequences = list(replays.values())
    for window in windows:
        by_device: dict[int, list[int]] = defaultdict(list)
        for at in range(window.start, window.stop):
            if not table.columns.host[at]:
                by_device[table.columns.device[at]].append(at)
        sequences += by_device.values()
    if not sequences:
        return _NEITHER
    gaps = table.columns.gap_ns
    waits = tuple(at for sequence in sequences for at in sequence[1:] if gaps[at] is not None)
    if not waits and any(len(sequence) > 1 for sequence in sequences):
        return _NO_GAPS
    # A gap below zero is an artefact of the profiler's clocks.
    waited = [max(gaps[at] or 0.0, 0.0) for at in waits]
    compiled = [gap for gap in waited if gap >= COMPILING_NS]
    if not replays and waited and sum(compiled) > sum(waited) / 2:
        return (
            f"{len(compiled)} of {counted(len(waited), 'gap')} are of 1 ms or more: programs were "
            "compiled inside the window; measure a later call"
        )
    if not replays and waited and median(waited) >= _COLD_NS:
        return (
            f"half of {counted(len(waited), 'gap')} are of {median(waited) / 1000:.0f} µs or more: "
            "the window is of a first call; measure a later one"
        )
    return Gaps(
        waited_ns=sum(waited),
        worked_ns=sum(table.columns.kernel_ns[at] for each in sequences for at in each),
        executions=len(windows) or len({key[1:] for key in replays}),
        replayed=bool(replays),
        waits=waits,
    )


def _replays(table: OpTable) -> dict[tuple[int, int, int], list[int]]:
    """Return the rows of replays by device, trace and execution."""
    found: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    columns = table.columns
    rows = zip(columns.device, columns.trace, columns.replay, strict=True)
    for at, (device, trace, replay) in enumerate(rows):
        if trace is not None and replay is not None and not columns.host[at]:
            found[device, trace, replay].append(at)
    return found


class Difference(NamedTuple):
    """An execution unlike the first of its kind, and where it differs."""

    what: str
    number: int
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.what} {self.number}: {self.found} instead of {self.expected}"


def executions(table: OpTable) -> dict[str, list[list[int]]]:
    """Return the rows of traces and windows that ran at least twice."""
    found: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    columns = table.columns
    for (device, trace, replay), places in _replays(table).items():
        found[f"trace {trace} on device {device}, replay"][replay] = places
    windows = measured_calls(table) if table.calls else signpost_windows(table)
    for number, window in enumerate(windows):
        for at in range(window.start, window.stop):
            if not columns.host[at] and columns.trace[at] is None:
                found[f"{window.name} on device {columns.device[at]}, call"][number].append(at)
    return {what: list(runs.values()) for what, runs in found.items() if len(runs) > 1}


def differences(table: OpTable) -> Iterator[Difference]:
    """Yield the executions that differ from the first of their kind."""
    signature = table.columns.signature
    for what, (first, *others) in executions(table).items():
        expected = [signature[at] for at in first]
        for number, other in enumerate(others, start=2):
            if [signature[at] for at in other] != expected:
                pairs = zip(map(table.op, first), map(table.op, other), strict=False)
                unlike = (pair for pair in pairs if pair[0].signature != pair[1].signature)
                names = next((tuple(map(op_name, pair)) for pair in unlike), None)
                yield Difference(
                    what, number, *(names or (counted(len(run), "op") for run in (first, other)))
                )
