"""When the ops of a capture ran and how long: many rows at once, or one with care."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.capture.ops_cells import CellError, in_column, number, whole
from pytest_ttnn_perf.capture.ops_columns import PER_CORE, START_CYCLE
from pytest_ttnn_perf.model.metric import LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.capture.ops_columns import Layout
    from pytest_ttnn_perf.capture.ops_records import Rows

NO_KERNEL_TIME: Final = "no kernel duration"
NEGATIVE_TIME: Final = "negative kernel duration"
#: A kernel begins and ends in different cycles: one that took no time was not measured.
ZERO_TIME: Final = "kernel duration of 0"
IMPOSSIBLE_GAP: Final = "impossible gap"

#: A gap this far below zero, and longer than half the op, comes of a clock that was misread.
_LOWEST_GAP_NS: Final = -1e6


class TimeCells(NamedTuple):
    """The cells of some rows, column by column; none where a capture has no such column."""

    kernel: Sequence[bytes]
    fw: Sequence[bytes]
    gap: Sequence[bytes]
    start_cycle: Sequence[bytes]
    core_min: Sequence[bytes]
    core_max: Sequence[bytes]


class Times(NamedTuple):
    """What the cells of some rows say, column by column; None for a column that is not there."""

    kernel_ns: list[float]
    fw_ns: list[float] | list[None]
    gap_ns: list[float] | list[None]
    start_cycle: list[int] | list[None]
    core_min_ns: list[float] | list[None]
    core_max_ns: list[float] | list[None]


def time_cells(rows: Rows, layout: Layout) -> TimeCells:
    """Return the cells of the rows that tell their times."""
    cycle = () if layout.start_cycle is None else (layout.start_cycle,)
    per_core = ((at,) for at in layout.per_core) if layout.per_core else ((), ())
    columns = (layout.kernel, layout.fw, layout.gap, cycle, *per_core)
    return TimeCells(*(_longest_of(rows, column) for column in columns))


def _longest_of(rows: Rows, columns: tuple[int, ...]) -> list[bytes]:
    if not columns:
        return []
    if len(columns) == 1:
        (only,) = columns
        return [row[only] for row in rows]
    return [_longest([row[at] for at in columns]) for row in rows]


def _longest(cells: list[bytes]) -> bytes:
    """Return the cell with the largest number, or one that is no number, for its reader to find."""
    largest, value = b"", -LARGEST
    for cell in cells:
        try:
            own = number(cell)
        except CellError:
            return cell
        if own is not None and own > value:
            largest, value = cell, own
    return largest


def usual_times(cells: TimeCells) -> Times | None:
    """Return the times of rows without a blank or odd one among them; None for other rows."""
    try:
        kernel_ns = _floats(cells.kernel)
        fw_ns = _floats(cells.fw)
        gap_ns = _floats(cells.gap)
        start_cycle = list(map(int, cells.start_cycle))
        core_min_ns, core_max_ns = _floats_or_none(cells.core_min), _floats_or_none(cells.core_max)
    except ValueError:
        return None
    if min(kernel_ns) <= 0 or min(fw_ns, default=0) < 0 or min(gap_ns, default=0) < _LOWEST_GAP_NS:
        return None
    # A sum shows also the NaN that min() does not.
    columns = (kernel_ns, fw_ns, gap_ns, start_cycle, core_min_ns, core_max_ns)
    if not all(abs(sum(values)) <= LARGEST for values in columns):
        return None
    missing = [None] * len(kernel_ns)
    return Times(kernel_ns, *(values or missing for values in columns[1:]))  # type: ignore[arg-type]


def _floats_or_none(cells: Sequence[bytes]) -> list[float]:
    """Return the times of a column that may be there and empty."""
    return _floats(cells) if any(cells) else []


def _floats(cells: Sequence[bytes]) -> list[float]:
    try:
        # Most times are whole numbers, and by way of int these take half as long.
        return list(map(float, map(int, cells)))
    except (ValueError, OverflowError):
        return list(map(float, cells))


def one_by_one(cells: TimeCells) -> Iterator[tuple[bytes, ...]]:
    """Yield the cells row by row; blank for a column that is not there."""
    blank = [b""] * len(cells.kernel)
    return zip(*(column or blank for column in cells), strict=True)


class TimesOfOne(NamedTuple):
    """What the cells of one row say; None for a blank."""

    kernel_ns: float | None
    fw_ns: float | None = None
    gap_ns: float | None = None
    start_cycle: int | None = None
    core_min_ns: float | None = None
    core_max_ns: float | None = None


#: Of an op that ran on no device.
NO_TIMES: Final = TimesOfOne(0.0)


def times_of(layout: Layout, cells: Sequence[bytes]) -> TimesOfOne:
    """Return the times of one row.

    Raises:
        CellError: not a number; with the column.
    """
    kernel, fw, gap, cycle, *per_core = cells

    def time_ns(columns: tuple[int, ...], cell: bytes) -> float | None:
        return in_column(layout.names[columns[0]], number, cell) if columns else None

    return TimesOfOne(
        time_ns(layout.kernel, kernel),
        time_ns(layout.fw, fw),
        time_ns(layout.gap, gap),
        in_column(START_CYCLE, whole, cycle),
        *(in_column(name, number, cell) for name, cell in zip(PER_CORE, per_core, strict=True)),
    )


def unless_blank(times_ns: Sequence[float | None]) -> Sequence[float | None]:
    """Return a column; an empty one where it tells nothing of any op."""
    return () if times_ns.count(None) == len(times_ns) else times_ns


def reason_to_drop(times: TimesOfOne) -> str | None:
    """Return why an op cannot be counted with its times; None where it can."""
    if times.kernel_ns is None:
        return NO_KERNEL_TIME
    if times.kernel_ns <= 0:
        return NEGATIVE_TIME if times.kernel_ns < 0 else ZERO_TIME
    gap_ns = times.gap_ns
    if gap_ns is not None and gap_ns < _LOWEST_GAP_NS and -gap_ns > times.kernel_ns / 2:
        return IMPOSSIBLE_GAP
    return None
