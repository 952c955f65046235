"""The cells of an ops CSV: still quoted bytes on the way in, values on the way out.

A profiler writes ``str()`` of whatever it has: nothing is an empty cell, ``None`` or ``nan``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from pytest_ttnn_perf.analysis.captures.ops_header import PER_CORE, START_CYCLE
from pytest_ttnn_perf.records.codec import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.captures.ops_csv import Rows
    from pytest_ttnn_perf.analysis.captures.ops_header import Layout


C = TypeVar("C")
V = TypeVar("V")
H = TypeVar("H", bound="Hashable")
_NOTHING: Final = frozenset({"", "none", "nan"})
#: A text that is not there, as it stands in a file.
NO_TEXT: Final = (b"", b"None", b'""', b'"None"')
#: A whole number, padded[logical] or padded alone; the first files wrote it as 384.0.
_EXTENT: Final = re.compile(r"([0-9]{1,18})(?:\.0*)?(?:\[([0-9]{1,18})\])?")
_MOST_SHOWN: Final = 40


class CellError(ValueError):
    """A cell that is not what its column holds. Its text says what was expected and found."""


def fields(record: bytes) -> list[bytes]:
    """Split a record at the commas that are not inside quotes; the quotes stay.

    >>> fields(b'1,"a,b","c"')
    [b'1', b'"a,b"', b'"c"']
    """
    pieces = record.split(b",")
    if b'"' not in record or b"," not in b"".join(record.split(b'"')[1::2]):
        return pieces
    cells: list[bytes] = []
    opened: list[bytes] = []
    quotes = 0
    for piece in pieces:
        opened.append(piece)
        quotes += piece.count(b'"')
        if quotes % 2 == 0:
            cells.append(b",".join(opened))
            opened = []
    return cells if not opened else [*cells, b",".join(opened)]


def text(cell: bytes) -> str:
    """Return what a cell says.

    >>> text(b'"a ""b"" c"')
    'a "b" c'
    """
    if len(cell) > 1 and cell[:1] == cell[-1:] == b'"':
        cell = cell[1:-1].replace(b'""', b'"')
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError as cause:
        message = f"expected UTF-8 text, found other bytes: {cause.reason}"
        raise CellError(message) from cause


def number(cell: bytes) -> float | None:
    """Return a number; None for a cell that says nothing."""
    said = text(cell).strip()
    if said.lower() in _NOTHING:
        return None
    try:
        value = float(said)
    except ValueError:
        value = LARGEST * 10
    if not abs(value) <= LARGEST:
        message = f"expected a number, found {shortened(said)}"
        raise CellError(message)
    return value


def whole(cell: bytes) -> int | None:
    """Return a whole number, however long; None for a cell that says nothing."""
    value = number(cell)
    if value is None:
        return None
    if not value.is_integer():
        message = f"expected a whole number, found {shortened(text(cell))}"
        raise CellError(message)
    try:
        return int(text(cell))
    except ValueError:  # 384.0
        return int(value)


def count(cell: bytes) -> int | None:
    """Return a whole number that is not negative; None for a cell that says nothing."""
    value = whole(cell)
    if value is not None and value < 0:
        message = f"expected a number from 0, found {value}"
        raise CellError(message)
    return value


def extent(cell: bytes) -> tuple[int, int | None]:
    """Return the padded and the logical extent of a dimension; None where only one is written.

    >>> extent(b"448[147]"), extent(b"384.0")
    ((448, 147), (384, None))
    """
    said = text(cell).strip()
    found = _EXTENT.fullmatch(said)
    if found is None:
        message = f"expected an extent such as 448[147], found {shortened(said)}"
        raise CellError(message)
    padded, logical = found.groups()
    return int(padded), None if logical is None else int(logical)


def in_column(name: str, read: Callable[[C], V], cell: C) -> V:
    """Read a cell; what is wrong with it is said with the name of its column."""
    try:
        return read(cell)
    except CellError as cause:
        message = f"{name}: {cause}"
        raise CellError(message) from cause


def shortened(said: str) -> str:
    """Quote a text for a message; a long one only in part."""
    return repr(said if len(said) <= _MOST_SHOWN else said[:_MOST_SHOWN] + "…")


class Decoded(dict[bytes, V]):
    """What cells say, each decoded once, when it is looked up first."""

    def __init__(self, decode: Callable[[bytes], V]) -> None:
        super().__init__()
        self._decode = decode

    def __missing__(self, cell: bytes) -> V:
        value = self[cell] = self._decode(cell)
        return value


class Interned(dict[bytes, int], Generic[H]):
    """Numbers what repeats: looking a cell up gives the place of its value in ``known``.

    Cells that say the same in other words share a number. A cell is decoded once, when it is new.
    """

    def __init__(self, decode: Callable[[bytes], H], *, nothing: tuple[bytes, ...] = ()) -> None:
        """Cells that equal one of ``nothing`` are number -1."""
        super().__init__(dict.fromkeys(nothing, -1))
        self.known: list[H] = []
        self._decode = decode
        self._numbers: dict[H, int] = {}

    def __missing__(self, cell: bytes) -> int:
        value = self._decode(cell)
        found = self._numbers.setdefault(value, len(self.known))
        if found == len(self.known):
            self.known.append(value)
        self[cell] = found
        return found


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
