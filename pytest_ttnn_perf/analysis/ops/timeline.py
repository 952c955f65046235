"""Start and end of each op of a capture, by device."""

from __future__ import annotations

from enum import Enum
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.core.ops import Category, category_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.regions import Step
    from pytest_ttnn_perf.core.ops import OpTable


# Devices count cycles by clocks of their own, which began seconds apart. Collectives align them: no
# device leaves one much before the others.


class Clock(Enum):
    """Sources of starts, in words after "starts are"."""

    CYCLES = "those that the devices counted"
    GAPS = "reckoned from the gaps between ops: the capture has no start cycles"
    NONE = "not known: ops are shown one right after the other"


class Alignment(Enum):
    """Ways to align devices, in words after "devices are put"."""

    ALONE = "nowhere: there is one"
    COLLECTIVES = "side by side by the ends of their collectives"
    FIRST = "side by side by their first ops: nothing tells which of them began earlier"


class Span(NamedTuple):
    """An op on a device; ``start_ns`` is from the first start.

    The first ``waits_ns`` of it went into waiting for other devices.
    """

    row: int
    start_ns: float
    kernel_ns: float
    waits_ns: float = 0.0

    @property
    def end_ns(self) -> float:
        return self.start_ns + self.kernel_ns


class Timeline(Struct, frozen=True):
    """Ops of devices in order of starts, and their reliability."""

    lanes: Mapping[int, Sequence[Span]]
    clock: Clock
    alignment: Alignment


def timeline_of(table: OpTable, step: Step) -> Timeline:
    clock = _clock(table, step)
    own = {device: _starts_ns(table, rows, clock) for device, rows in sorted(step.items())}
    alignment, later_ns = _aligned(table, step, own)
    waits_ns = _waits_ns(table, step)
    kernel_ns = table.columns.kernel_ns
    lanes = {
        device: sorted(
            (
                Span(row, start + later_ns[device], kernel_ns[row], waits_ns.get(row, 0.0))
                for row, start in zip(step[device], starts, strict=True)
            ),
            key=lambda span: span.start_ns,
        )
        for device, starts in own.items()
    }
    return Timeline(lanes, clock, alignment)


def _clock(table: OpTable, step: Step) -> Clock:
    columns = table.columns
    if table.clock_mhz and all(
        columns.start_cycle[row] is not None for rows in step.values() for row in rows
    ):
        return Clock.CYCLES
    gaps = [columns.gap_ns[row] for rows in step.values() for row in rows[1:]]
    return Clock.GAPS if gaps and None not in gaps else Clock.NONE


def _starts_ns(table: OpTable, rows: Sequence[int], clock: Clock) -> list[float]:
    """Return the starts of a device's ops, from its first."""
    columns = table.columns
    if clock is Clock.CYCLES and table.clock_mhz:
        cycles = [columns.start_cycle[row] or 0 for row in rows]
        first = min(cycles, default=0)
        return [(cycle - first) * 1000 / table.clock_mhz for cycle in cycles]
    starts: list[float] = []
    now_ns = 0.0
    for row in rows:
        if starts and clock is Clock.GAPS:  # one below zero is an artefact of clocks
            now_ns += max(columns.gap_ns[row] or 0.0, 0.0)
        starts.append(now_ns)
        now_ns += columns.kernel_ns[row]
    return starts


def _aligned(
    table: OpTable, step: Step, own: Mapping[int, Sequence[float]]
) -> tuple[Alignment, dict[int, float]]:
    """Return how much later each device began, and the evidence."""
    later_ns = dict.fromkeys(own, 0.0)
    if len(own) < 2:
        return Alignment.ALONE, later_ns
    ends = {device: _collective_ends(table, step[device], own[device]) for device in own}
    codes = {tuple(code for code, _ in each) for each in ends.values()}
    if len(codes) > 1 or codes == {()}:
        return Alignment.FIRST, later_ns
    reference = next(iter(ends.values()))
    for device, each in ends.items():
        apart = (mine - other for (_, other), (_, mine) in zip(each, reference, strict=True))
        later_ns[device] = median(apart)
    earliest_ns = min(later_ns.values())
    return Alignment.COLLECTIVES, {device: ns - earliest_ns for device, ns in later_ns.items()}


def _collective_ends(
    table: OpTable, rows: Sequence[int], starts: Sequence[float]
) -> list[tuple[str, float]]:
    """Return the codes of a device's collectives, and when each ended."""
    columns = table.columns
    return [
        (signature.op, start + columns.kernel_ns[row])
        for row, start in zip(rows, starts, strict=True)
        if (signature := table.signatures[columns.signature[row]]).category is Category.COLLECTIVE
    ]


def _waits_ns(table: OpTable, step: Step) -> dict[int, float]:
    """Return how long each collective waits, beyond the fastest device.

    Nothing is known of devices that ran different ops.
    """
    columns = table.columns
    devices = list(step.values())
    codes = [[table.signatures[columns.signature[row]].op for row in rows] for rows in devices]
    if len(devices) < 2 or any(each != codes[0] for each in codes):
        return {}
    waits: dict[int, float] = {}
    for code, rows in zip(codes[0], zip(*devices, strict=True), strict=True):
        if category_of(code) is Category.COLLECTIVE:
            least = min(columns.kernel_ns[row] for row in rows)
            waits |= {row: columns.kernel_ns[row] - least for row in rows}
    return waits
