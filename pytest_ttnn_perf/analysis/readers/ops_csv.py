"""The profiler's ``ops_perf_results*.csv``: every release of it, read into an op table."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Generic, NamedTuple, TypeVar

from msgspec import Struct

from pytest_ttnn_perf.analysis.ops.regions import count_replays, replays_in
from pytest_ttnn_perf.core.codec import LARGEST
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.files import reading, unpacked
from pytest_ttnn_perf.core.ops import HOST, Columns, OpTable, Signature, Signpost, Tensor, Unread

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.ops import TraceReplays


# The columns of an ops CSV, found by name in any order, and its cells: bytes that become values.
#
# Every release of the profiler added or renamed columns, so a header is searched, never compared.
# Nothing is an empty cell, ``None`` or ``nan``: the profiler writes ``str()`` of what it has.

OP_CODE: Final = "OP CODE"
OP_TYPE: Final = "OP TYPE"
CALL: Final = "GLOBAL CALL COUNT"
DEVICE: Final = "DEVICE ID"
ATTRIBUTES: Final = "ATTRIBUTES"
REPLAY: Final = "METAL TRACE REPLAY SESSION ID"
START_CYCLE: Final = "DEVICE FW START CYCLE"
#: Cycles from one to the other, and the time that these take: they tell the clock.
_OF_CLOCK: Final = (START_CYCLE, "DEVICE FW END CYCLE", "DEVICE FW DURATION [ns]")
ARCH: Final = "DEVICE ARCH"
FIDELITY: Final = "MATH FIDELITY"
CORES: Final = "CORE COUNT"
AVAILABLE_CORES: Final = "AVAILABLE WORKER CORE COUNT"
IDEAL: Final = "PM IDEAL [ns]"
TRACE: Final = "METAL TRACE ID"
#: What a row shares with many others, so that it is decoded once for all of them.
_SHARED: Final = (OP_TYPE, DEVICE, ARCH, FIDELITY, CORES, AVAILABLE_CORES, IDEAL, TRACE)
_REQUIRED: Final = (OP_CODE, OP_TYPE, DEVICE)
#: Where the time of an op may stand, best first. Quasar reports it per type of processor; these run
#: side by side, so the op takes as long as the slower of them, not as both together.
_KERNEL_TIMES: Final = (
    ("DEVICE KERNEL DURATION [ns]",),
    ("DEVICE QUASAR_DM KERNEL DURATION [ns]", "DEVICE QUASAR_NEO_TRISC KERNEL DURATION [ns]"),
    ("DEVICE DM FW DURATION [ns]", "DEVICE TRISC FW DURATION [ns]"),
)
_FW_TIMES: Final = (("DEVICE FW DURATION [ns]",), _KERNEL_TIMES[2])
#: The shortest and the longest kernel of a core; columns that most captures leave empty.
PER_CORE: Final = (
    "DEVICE KERNEL DURATION PER CORE MIN [ns]",
    "DEVICE KERNEL DURATION PER CORE MAX [ns]",
)
#: The times of single processors: every op has at least one of them.
_PROCESSORS: Final = tuple(
    f"DEVICE {name} KERNEL DURATION [ns]"
    for name in ("BRISC", "NCRISC", "TRISC0", "TRISC1", "TRISC2", "ERISC")
)
_GAPS: Final = (("OP TO OP LATENCY [ns]",), ("OP TO OP DM LATENCY [ns]",))
_PADDED_AND_LOGICAL: Final = "_PAD[LOGICAL]"
_TENSOR: Final = re.compile(r"(INPUT|OUTPUT)_([0-9]{1,4})_(?:([WZYX])(_PAD\[LOGICAL\])?|[A-Z]+)")
DIMENSIONS: Final = ("W", "Z", "Y", "X")
_TENSOR_PARTS: Final = (*DIMENSIONS, "LAYOUT", "DATATYPE", "MEMORY")


class Operand(Struct, frozen=True):
    """The columns of an input or output. ``parts`` names what each holds, e.g. W or LAYOUT.

    ``places`` are positions in the record of an op's code and all its operands.
    """

    name: str
    is_input: bool
    parts: tuple[str, ...]
    places: tuple[int, ...]


class Layout(Struct, frozen=True):
    """A header, understood. Columns are by position in a split row.

    The operands mostly stand side by side. They are then left together when a row is split: one
    cell, at ``together``, which holds ``operand_columns`` values. ``signature`` are the columns of
    an op's code and its operands, ``shared`` those of what a row has in common with many others. Of
    several columns of times the longest time counts.
    """

    names: tuple[str, ...]
    format: str
    kernel_time: str
    operands: tuple[Operand, ...]
    operand_columns: int
    together: int | None
    signature: tuple[int, ...]
    shared: tuple[int, ...]
    attributes: int | None
    call: int | None
    replay: int | None
    start_cycle: int | None
    kernel: tuple[int, ...]
    fw: tuple[int, ...]
    gap: tuple[int, ...]
    per_core: tuple[int, ...]
    processors: tuple[int, ...]
    clock: tuple[int, ...]

    @property
    def values(self) -> int:
        """How many values a row of the file has."""
        return len(self.names) + (0 if self.together is None else self.operand_columns - 1)

    @property
    def last_is_used(self) -> bool:
        """Whether the cell before a line end is one that is read."""
        single = (self.attributes, self.call, self.replay, self.start_cycle)
        times = (*self.kernel, *self.fw, *self.gap, *self.per_core)
        return len(self.names) - 1 in {*single, *self.signature, *self.shared, *times}


def is_header(names: Sequence[str]) -> bool:
    """Return whether a line of names can only be that of an ops CSV."""
    return OP_CODE in names and OP_TYPE in names


def layouts_of(file: Path, names: Sequence[str]) -> tuple[Layout, ...]:
    """Return the ways to read a file with this header: one per kind of time it has, best first.

    Raises:
        InputError: not an ops CSV, a name twice, or no column of times.
    """
    columns = {name: at for at, name in enumerate(names)}
    if not is_header(names):
        problem = f"not an ops CSV: expected columns {OP_CODE!r} and {OP_TYPE!r} in the first line"
        if CALL in columns and OP_CODE not in columns:
            # What the profiler writes when it was told to leave the host out.
            problem = "a report of the device alone, without op names: profile with the host's data"
        raise InputError(file, problem, line=1)
    if len(columns) < len(names):
        twice = next(name for at, name in enumerate(names) if columns[name] != at)
        raise InputError(file, f"the column {twice!r} appears twice in the header", line=1)
    missing = [name for name in _REQUIRED if name not in columns]
    if missing:
        raise InputError(file, f"expected a column {missing[0]!r} in the header", line=1)
    times = [choice for choice in _KERNEL_TIMES if any(name in columns for name in choice)]
    if not times:
        problem = f"expected a column {_KERNEL_TIMES[0][0]!r} in the header, found no time at all"
        raise InputError(file, problem, line=1)
    return tuple(_layout(columns, choice) for choice in times)


def _layout(columns: dict[str, int], times: tuple[str, ...]) -> Layout:
    names, written = list(columns), _operand_names(columns)
    of_operands = sorted(columns[name] for parts in written.values() for name in parts.values())
    operands = _operands(written, order=[names[at] for at in of_operands])
    together = None
    if len(of_operands) > 1 and of_operands[-1] - of_operands[0] == len(of_operands) - 1:
        together = of_operands[0]
        names[together : of_operands[-1] + 1] = ["operands"]
        of_operands = [together]
    places = {name: at for at, name in enumerate(names)}
    present = [name for name in times if name in places]
    return Layout(
        names=tuple(names),
        format=_format(columns),
        kernel_time=present[0] if len(present) == 1 else f"the longer of {' and '.join(present)}",
        operands=operands,
        operand_columns=sum(len(operand.places) for operand in operands),
        together=together,
        signature=(places[OP_CODE], *of_operands),
        shared=tuple(places[name] for name in _SHARED if name in places),
        attributes=places.get(ATTRIBUTES),
        call=places.get(CALL),
        replay=places.get(REPLAY),
        start_cycle=places.get(START_CYCLE),
        kernel=_first_present(places, (times,)),
        fw=_first_present(places, _FW_TIMES),
        gap=_first_present(places, _GAPS),
        per_core=_all_of(places, PER_CORE),
        processors=tuple(places[name] for name in _PROCESSORS if name in places),
        clock=_all_of(places, _OF_CLOCK),
    )


def _all_of(places: dict[str, int], names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the columns of some names; none if one is not there."""
    return tuple(places[name] for name in names) if places.keys() >= {*names} else ()


def _first_present(places: dict[str, int], choices: tuple[tuple[str, ...], ...]) -> tuple[int, ...]:
    for choice in choices:
        present = tuple(places[name] for name in choice if name in places)
        if present:
            return present
    return ()


def _format(columns: dict[str, int]) -> str:
    quasar = any(name in columns for choice in _KERNEL_TIMES[1:] for name in choice)
    shapes = [found for found in map(_TENSOR.fullmatch, columns) if found and found[3]]
    if ARCH in columns or AVAILABLE_CORES in columns:
        version = "v2.1"
    elif any(found[4] for found in shapes):
        version = "v2"
    else:
        version = "v1" if shapes else "without tensors"
    return f"{version}, Quasar" if quasar else version


def _operand_names(columns: dict[str, int]) -> dict[str, dict[str, str]]:
    """Return the columns of each operand by the part that they hold: inputs first, by number."""
    found = [match for match in map(_TENSOR.fullmatch, columns) if match]
    prefixes = sorted({(match[1], int(match[2]), f"{match[1]}_{match[2]}") for match in found})
    named = {}
    for _, _, prefix in prefixes:
        # Newer name first: where a file has both, it is the one that tells more.
        choices = {
            part: (f"{prefix}_{part}{_PADDED_AND_LOGICAL}", f"{prefix}_{part}")
            for part in _TENSOR_PARTS
        }
        parts = {
            part: next((name for name in names if name in columns), None)
            for part, names in choices.items()
        }
        named[prefix] = {part: name for part, name in parts.items() if name is not None}
    return {prefix: parts for prefix, parts in named.items() if parts}


def _operands(written: dict[str, dict[str, str]], *, order: list[str]) -> tuple[Operand, ...]:
    places = {name: place for place, name in enumerate(order, start=1)}  # behind the op's code
    return tuple(
        Operand(
            name=prefix,
            is_input=prefix.startswith("INPUT"),
            parts=tuple(parts),
            places=tuple(places[name] for name in parts.values()),
        )
        for prefix, parts in written.items()
    )


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
    content = text(cell).strip()
    if content.lower() in _NOTHING:
        return None
    try:
        value = float(content)
    except ValueError:
        value = LARGEST * 10
    if not abs(value) <= LARGEST:
        message = f"expected a number, found {shorten(content)}"
        raise CellError(message)
    return value


def whole(cell: bytes) -> int | None:
    """Return a whole number, however long; None for a cell that says nothing."""
    value = number(cell)
    if value is None:
        return None
    if not value.is_integer():
        message = f"expected a whole number, found {shorten(text(cell))}"
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
    content = text(cell).strip()
    found = _EXTENT.fullmatch(content)
    if found is None:
        message = f"expected an extent such as 448[147], found {shorten(content)}"
        raise CellError(message)
    padded, logical = found.groups()
    return int(padded), None if logical is None else int(logical)


def in_column(name: str, read: Callable[[C], V], cell: C) -> V:
    """Read a cell; an error names its column."""
    try:
        return read(cell)
    except CellError as cause:
        message = f"{name}: {cause}"
        raise CellError(message) from cause


def shorten(content: str) -> str:
    """Quote a text for a message; a long one only in part."""
    return repr(content if len(content) <= _MOST_SHOWN else content[:_MOST_SHOWN] + "…")


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


# The rows of an ops CSV: their times, operands and shared values, in the order of replays.

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


T = TypeVar("T")
_DEVICE_TYPE: Final = "tt_dnn_device"
_HOST_TYPES: Final = frozenset({"python_fallback", "tt_dnn_cpu"})
#: What the profiler writes for an op that it has no model of.
_NO_MODEL_NS: Final = 1
#: How a memory names the mesh device it is of; not the DEVICE ID of the row.
_MESH_DEVICE: Final = "DEV_"


class Role(IntEnum):
    """What a row is. An op of NOWHERE should name a device and does not."""

    DEVICE = 0
    HOST = 1
    SIGNPOST = 2
    NOWHERE = 3
    UNKNOWN = 4


class Shared(NamedTuple):
    """The values a row has in common with many others; None where the capture says nothing."""

    role: Role
    device: int | None
    arch: str | None
    fidelity: int
    cores: int | None
    available_cores: int | None
    ideal_ns: float | None
    trace: int | None


def shared_decoder(layout: Layout, fidelities: Interned[str]) -> Callable[[bytes], Shared]:
    """Return what decodes the shared columns of a row, joined by commas."""
    names = [layout.names[at] for at in layout.shared]

    def read(name: str, decode: Callable[[bytes], T]) -> tuple[int, Decoded[T]]:
        # A column that is missing is the blank cell behind the last.
        place = names.index(name) if name in names else len(names)
        return place, Decoded(partial(in_column, name, decode))

    of_type, types = read(OP_TYPE, text)
    of_device, devices = read(DEVICE, count)
    of_arch, arches = read(ARCH, text)
    of_fidelity, fidelity_numbers = read(FIDELITY, fidelities.__getitem__)
    of_cores, cores = read(CORES, count)
    of_available, available = read(AVAILABLE_CORES, count)
    of_ideal, ideals_ns = read(IDEAL, _ideal_ns)
    of_trace, traces = read(TRACE, whole)

    def decode(record: bytes) -> Shared:
        cells = [*fields(record), b""]
        device = devices[cells[of_device]]
        return Shared(
            _role(types[cells[of_type]], device),
            device,
            arches[cells[of_arch]].lower() or None,
            fidelity_numbers[cells[of_fidelity]],
            cores[cells[of_cores]],
            available[cells[of_available]],
            ideals_ns[cells[of_ideal]],
            traces[cells[of_trace]],
        )

    return decode


def _ideal_ns(cell: bytes) -> float | None:
    value = number(cell)
    return None if value is None or value <= _NO_MODEL_NS else value


def _role(op_type: str, device: int | None) -> Role:
    if op_type == "signpost":
        return Role.SIGNPOST
    if op_type in _HOST_TYPES:
        return Role.HOST
    if device is not None:
        return Role.DEVICE
    return Role.NOWHERE if op_type == _DEVICE_TYPE else Role.UNKNOWN


def signature_decoder(layout: Layout) -> Callable[[bytes], Signature]:
    """Return what decodes the code and the operands of a row, joined by commas."""
    values = layout.operand_columns + 1
    # Operands with the same columns share what was decoded: one's output is another's input.
    decoders = {operand.parts: _Tensors(operand.parts) for operand in layout.operands}
    operands = [
        (operand, _cells_at(operand.places), decoders[operand.parts]) for operand in layout.operands
    ]

    def decode(record: bytes) -> Signature:
        cells = fields(record)
        if len(cells) != values:
            found = layout.values + len(cells) - values
            message = f"expected {layout.values} values as in the header, found {found}"
            raise CellError(message)
        inputs: list[Tensor | None] = []
        outputs: list[Tensor | None] = []
        for operand, own, tensors in operands:
            tensor = in_column(operand.name, tensors.__getitem__, own(cells))
            (inputs if operand.is_input else outputs).append(tensor)
        return Signature(
            in_column(OP_CODE, text, cells[0]), _up_to_last(inputs), _up_to_last(outputs)
        )

    return decode


def _cells_at(places: tuple[int, ...]) -> Callable[[list[bytes]], tuple[bytes, ...]]:
    if len(places) == 1:  # itemgetter alone gives no tuple for one
        return lambda cells: (cells[places[0]],)
    return itemgetter(*places)


def _up_to_last(tensors: list[Tensor | None]) -> tuple[Tensor, ...]:
    """Return the operands up to the last one; a hole keeps its place."""
    while tensors and tensors[-1] is None:
        tensors.pop()
    return tuple([tensor or _NO_TENSOR for tensor in tensors])


_NO_TENSOR: Final = Tensor((), None, "", "", "")


class _Tensors(dict[tuple[bytes, ...], Tensor | None]):
    """Operands by their cells; None for one that is not there."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        super().__init__()
        self._dimensions = [at for at, part in enumerate(parts) if part in DIMENSIONS]
        self._places = {part: at for at, part in enumerate(parts)}
        self._extents = Decoded(extent)
        self._texts = Decoded(text)

    def __missing__(self, cells: tuple[bytes, ...]) -> Tensor | None:
        texts = [self._texts[cell] for cell in cells]
        tensor = self[cells] = self._decode(cells, texts) if any(texts) else None
        return tensor

    def _decode(self, cells: tuple[bytes, ...], texts: list[str]) -> Tensor:
        has_shape = any(texts[at] for at in self._dimensions)
        extents = [self._extents[cells[at]] for at in self._dimensions] if has_shape else []
        logical = tuple([inner for _, inner in extents if inner is not None])
        layout, dtype, memory = (
            texts[self._places[part]] if part in self._places else ""
            for part in ("LAYOUT", "DATATYPE", "MEMORY")
        )
        return Tensor(
            tuple([padded for padded, _ in extents]),
            logical if extents and len(logical) == len(extents) else None,
            layout,
            dtype,
            _without_mesh_device(memory),
        )


def _without_mesh_device(memory: str) -> str:
    number_, _, rest = memory.removeprefix(_MESH_DEVICE).partition("_")
    return rest if memory.startswith(_MESH_DEVICE) and number_.isdecimal() else memory


def in_replay_order(columns: Columns) -> tuple[Columns, tuple[TraceReplays, ...]]:
    """Return the ops with those of each replay in the order the device began them; the replays.

    A replay has one host time for all its ops, so a file may have them in any order. Each replay
    keeps the places that it has: what ran between signposts still stands between them.
    """
    replays = replays_in(columns)
    moved: dict[int, int] = {}
    for places in replays.values():
        known = [cycle for at in places if (cycle := columns.start_cycle[at]) is not None]
        if len(known) == len(places) and known != sorted(known):
            by_cycle = sorted(zip(known, places, strict=True))
            moved.update(zip(places, (at for _, at in by_cycle), strict=True))
    if moved:
        columns = columns.at([moved.get(at, at) for at in range(len(columns.device))])
    return columns, count_replays(columns, replays)


Rows = list[list[bytes]]
#: No header or record is longer: what is, is not a CSV file.
LONGEST_HEADER: Final = 2**20
LONGEST_RECORD: Final = 2**26
#: Lines are long: with the usual buffer, most of them would be pieced together.
READ_AT_ONCE: Final = 2**18
#: Few enough rows that their cells stay in the processor's cache until they are decoded.
_ROWS_AT_ONCE: Final = 64
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
#: A nanosecond more or less is a MHz then.
_SHORTEST_FOR_CLOCK_NS: Final = 1000.0
_LINE_ENDS: Final = (b"\n", b"\r")


def header_names(line: bytes) -> list[str]:
    """Return the names in the first line of a file.

    Raises:
        CellError: it is not text.
    """
    cells = fields(line.removeprefix(_BYTE_ORDER_MARK).rstrip(b"\r\n"))
    return [text(cell.strip()).strip() for cell in cells]


def read_header(file: Path, stream: BinaryIO) -> list[str]:
    """Read the first line; raises InputError where it is none."""
    line = stream.readline(LONGEST_HEADER)
    if not line.strip():
        problem = "the file is empty" if not line else "expected a header, found an empty line"
        raise InputError(file, problem, line=1)
    if len(line) >= LONGEST_HEADER or b"\0" in line:
        raise InputError(file, "not a CSV file: no line of column names", line=1)
    try:
        return header_names(line)
    except CellError as cause:
        raise InputError(file, str(cause), line=1) from cause


class Records:
    """What follows the header: batches of split rows, and the lines they begin on.

    Empty lines are skipped. Operands that are left together are not counted here: their decoder
    does. ``last_cell_may_be_cut`` is known at the end: there is no line end then.
    """

    def __init__(self, file: Path, stream: BinaryIO, layout: Layout) -> None:
        self._file = file
        self._layout = layout
        self._width = len(layout.names)
        self._lines = enumerate(iter(partial(stream.readline, LONGEST_RECORD), b""), start=2)
        self.last_cell_may_be_cut = False

    def batches(self) -> Iterator[tuple[Rows, list[int]]]:
        """Yield rows, the line end still in the last cell, with the line each begins on."""
        split = _splitter(self._layout)
        while True:
            rows: Rows = []
            lines: list[int] = []
            for number, line in islice(self._lines, _ROWS_AT_ONCE):
                if b'"' in line:
                    rows.append(self._quoted(number, line))
                else:
                    rows.append(split(line))
                lines.append(number)
            if not rows:
                return
            self.last_cell_may_be_cut = not rows[-1][-1].endswith(_LINE_ENDS)
            if self.last_cell_may_be_cut or set(map(len, rows)) != {self._width}:
                rows, lines = self._of_right_width(rows, lines)
            if rows:
                yield rows, lines

    def _quoted(self, number: int, line: bytes) -> list[bytes]:
        """Split a record with the lines that its quoted cells go on in."""
        pieces = [line]
        length, quotes = len(line), line.count(b'"')
        while quotes % 2:
            _, line = next(self._lines, (0, b""))
            if not line or length > LONGEST_RECORD:
                problem = "a quote opens here and is never closed: the file is cut or damaged"
                raise InputError(self._file, problem, line=number)
            pieces.append(line)
            length, quotes = length + len(line), quotes + line.count(b'"')
        cells = fields(b"".join(pieces))
        first = self._layout.together
        if first is not None and len(cells) == self._layout.values:
            behind = first + self._layout.operand_columns
            cells[first:behind] = [b",".join(cells[first:behind])]
        return cells

    def _of_right_width(self, rows: Rows, lines: list[int]) -> tuple[Rows, list[int]]:
        pairs = zip(rows, lines, strict=True)
        kept = [(row, line) for row, line in pairs if row not in ([b"\n"], [b"\r\n"])]
        for row, line in kept:
            values = len(fields(b",".join(row)))
            if values != self._layout.values:
                raise InputError(self._file, self._wrong_width(row, values), line=line)
        return [row for row, _ in kept], [line for _, line in kept]

    def _wrong_width(self, row: list[bytes], values: int) -> str:
        if sum(map(len, row)) + len(row) > LONGEST_RECORD:
            return f"a line of more than {LONGEST_RECORD:,} bytes"
        if row[-1].endswith(_LINE_ENDS):
            return f"expected {self._layout.values} values as in the header, found {values}"
        return f"the file is cut: its last line has {values} of {self._layout.values} values"


def _splitter(layout: Layout) -> Callable[[bytes], list[bytes]]:
    """Return what splits a line without quotes."""
    first = layout.together
    if first is None:
        return lambda line: line.split(b",")
    behind = len(layout.names) - first - 1

    def split(line: bytes) -> list[bytes]:
        cells = line.split(b",", first)
        if len(cells) > first:
            cells[first:] = cells[first].rsplit(b",", behind)
        return cells

    return split


Cell = TypeVar("Cell")
NO_DEVICE: Final = "no device"
#: Of some rows: the numbers of their signature, shared values, attributes and replay.
_Numbers = tuple[list[int], list[int], list[int], list[int]]
#: The line of a row, and the cell that numbers the host's call.
_Place = tuple[int, bytes]
#: An op of a call of the host: device, signature, call.
_Call = tuple[int | None, int, bytes]


class Collector:
    """Collects ops from rows. ``rows`` counts all of them, also those that are dropped."""

    def __init__(self, file: Path, layout: Layout) -> None:
        self._file = file
        self._layout = layout
        self._last_cell_is_used = layout.last_is_used
        self._signature_cells = _several(layout.signature)
        self._shared_cells = _several(layout.shared)
        self._fidelities = Interned(text, nothing=NO_TEXT)
        self._signatures = Interned(signature_decoder(layout))
        self._shared = Interned(shared_decoder(layout, self._fidelities))
        self._attributes = Interned(partial(in_column, ATTRIBUTES, text), nothing=NO_TEXT)
        self._replays = Interned(partial(in_column, REPLAY, whole))
        self.rows = 0
        self._dropped: dict[str, int] = {}
        self._unread: list[Unread] = []
        self._blank: list[tuple[_Call, Unread]] = []
        self._replayed: set[_Call] = set()
        self._signposts: list[Signpost] = []
        self._numbers: _Numbers = ([], [], [], [])
        self._times = Times([], [], [], [], [], [])
        self._processors = False if layout.processors else None
        self._clock_mhz: float | None = None

    def add(self, rows: Rows, lines: list[int]) -> None:
        """Take in rows of the header's width, with the lines they begin on."""
        self.rows += len(rows)
        if self._last_cell_is_used:
            for row in rows:
                row[-1] = row[-1].rstrip(b"\r\n")
        if self._processors is False:  # looked for until found: mostly in the first row
            self._processors = self._tells_processors(rows)
        if self._clock_mhz is None and self._layout.clock:
            self._clock_mhz = _clock_mhz(rows, self._layout.clock)
        numbers = self._numbers_of(rows, lines)
        cells = time_cells(rows, self._layout)
        places = list(zip(lines, _column(rows, self._layout.call), strict=True))
        self._note_replayed(numbers, places)
        start = 0
        for at in self._others(numbers[1], cells.kernel):
            self._add_ops(numbers, cells, places, part=slice(start, at))
            self._add_other(numbers, at, cells, places[at])
            start = at + 1
        self._add_ops(numbers, cells, places, part=slice(start, len(rows)))

    def _tells_processors(self, rows: Rows) -> bool:
        places = self._layout.processors
        return any(row[at].strip(b'" \r\n') not in NO_TEXT for row in rows for at in places)

    def _note_replayed(self, numbers: _Numbers, places: list[_Place]) -> None:
        """Remember the calls that a replay of a trace ran."""
        signatures, shared, _, _ = numbers
        known = self._shared.known
        traced = {number for number in set(shared) if known[number].trace is not None}
        if traced:
            self._replayed.update(
                (known[own].device, signature, call)
                for signature, own, (_, call) in zip(signatures, shared, places, strict=True)
                if own in traced
            )

    def _others(self, shared: list[int], kernel: Sequence[bytes]) -> list[int]:
        """Return the places of the rows that are not ops with a time on a device."""
        known, device = self._shared.known, Role.DEVICE
        others = {number for number in set(shared) if known[number].role is not device}
        if not others and b"" not in kernel:
            return []
        pairs = enumerate(zip(shared, kernel, strict=True))
        return [at for at, (number, time) in pairs if not time or number in others]

    def _numbers_of(self, rows: Rows, lines: list[int]) -> _Numbers:
        def numbers(interned: Interned[Any], of: Iterable[bytes]) -> list[int]:
            cells = list(of)
            try:
                return list(map(interned.__getitem__, cells))
            except CellError as cause:
                wrong = next(at for at, cell in enumerate(cells) if cell not in interned)
                raise InputError(self._file, str(cause), line=lines[wrong]) from cause

        join = b",".join
        return (
            numbers(self._signatures, map(join, map(self._signature_cells, rows))),
            numbers(self._shared, map(join, map(self._shared_cells, rows))),
            numbers(self._attributes, _column(rows, self._layout.attributes)),
            numbers(self._replays, _column(rows, self._layout.replay)),
        )

    def _add_other(self, numbers: _Numbers, at: int, cells: TimeCells, place: _Place) -> None:
        """Take in a row that is not an op with a time on a device."""
        own = [column[at] for column in numbers]
        signature, shared, *_ = own
        role = self._shared.known[shared].role
        if role is Role.SIGNPOST:
            name = self._signatures.known[signature].op
            self._signposts.append(Signpost(name, len(self._times.kernel_ns)))
        elif role is Role.HOST:
            self._keep(own, NO_TIMES)
        elif cells.kernel[at].strip(b'"'):
            self._drop(NO_DEVICE, own, place, began=True)
        elif role is Role.UNKNOWN:
            self._count(NO_KERNEL_TIME)
        else:
            began = bool(cells.start_cycle and cells.start_cycle[at].strip(b'"'))
            self._drop(NO_KERNEL_TIME, own, place, began=began)

    def _add_ops(
        self, numbers: _Numbers, cells: TimeCells, places: list[_Place], *, part: slice
    ) -> None:
        """Take in rows of ops on a device: all at once where nothing is odd about them."""
        if part.start == part.stop:
            return
        numbers_of_part = [column[part] for column in numbers]
        cells_of_part = TimeCells(*[column[part] for column in cells])
        times = usual_times(cells_of_part)
        if times is None:
            self._add_one_by_one(numbers_of_part, cells_of_part, places[part])
            return
        columns: tuple[list[Any], ...] = (*self._numbers, *self._times)
        for values, more in zip(columns, (*numbers_of_part, *times), strict=True):
            values.extend(more)

    def _add_one_by_one(
        self, numbers: list[list[int]], cells: TimeCells, places: list[_Place]
    ) -> None:
        rows = zip(places, zip(*numbers, strict=True), one_by_one(cells), strict=True)
        for place, own, times in rows:
            try:
                own_times = times_of(self._layout, times)
            except CellError as cause:
                raise InputError(self._file, str(cause), line=place[0]) from cause
            reason = reason_to_drop(own_times)
            if reason is None:
                self._keep(own, own_times)
            else:
                began = reason != NO_KERNEL_TIME or own_times.start_cycle is not None
                self._drop(reason, own, place, began=began)

    def _keep(self, numbers: Iterable[int], times: TimesOfOne) -> None:
        columns: tuple[list[Any], ...] = (*self._numbers, *self._times)
        for values, value in zip(columns, (*numbers, *times), strict=True):
            values.append(value)

    def _drop(self, reason: str, numbers: Sequence[int], place: _Place, *, began: bool) -> None:
        """Leave out an op of a device; one that ``began`` there has run, and should have a time."""
        self._count(reason)
        signature, shared, *_ = numbers
        kind, (line, call) = self._shared.known[shared], place
        unread = Unread(line, reason, len(self._signposts))
        if began or kind.trace is not None:
            self._unread.append(unread)
        else:
            self._blank.append(((kind.device, signature, call), unread))

    def _count(self, reason: str) -> None:
        self._dropped[reason] = self._dropped.get(reason, 0) + 1

    def table(self) -> OpTable:
        """Return the table of all ops."""
        signatures, shared, attributes, replays = self._numbers
        kinds, times = self._shared.known, self._times
        blank = [unread for call, unread in self._blank if call not in self._replayed]
        used_signatures, signatures = _only_used(self._signatures.known, signatures)
        used_attributes, attributes = _only_used(self._attributes.known, attributes)
        columns, traces = in_replay_order(
            Columns(
                signature=signatures,
                device=_spread([_place(kind) for kind in kinds], shared),
                kernel_ns=times.kernel_ns,
                fw_ns=times.fw_ns,
                gap_ns=times.gap_ns,
                ideal_ns=_spread([kind.ideal_ns for kind in kinds], shared),
                cores=_spread([kind.cores for kind in kinds], shared),
                fidelity=_spread([kind.fidelity for kind in kinds], shared),
                attributes=attributes,
                trace=_spread([kind.trace for kind in kinds], shared),
                replay=_spread(self._replays.known, replays),
                start_cycle=times.start_cycle,
                host=_spread([kind.role is Role.HOST for kind in kinds], shared),
                core_min_ns=unless_blank(times.core_min_ns),
                core_max_ns=unless_blank(times.core_max_ns),
            )
        )
        return OpTable(
            format=self._layout.format,
            rows=self.rows,
            columns=columns,
            signatures=used_signatures,
            fidelities=self._fidelities.known,
            attribute_texts=used_attributes,
            signposts=tuple(self._signposts),
            traces=traces,
            dropped=self._dropped,
            unread=tuple(sorted([*self._unread, *blank])),
            arch=_only_one(kind.arch for kind in kinds),
            available_cores=_only_one(kind.available_cores for kind in kinds),
            kernel_time=self._layout.kernel_time,
            processors=self._processors,
            clock_mhz=self._clock_mhz,
        )


def _clock_mhz(rows: Rows, columns: tuple[int, ...]) -> float | None:
    """Return the clock by the longest op among some rows: its time is in whole nanoseconds."""
    longest, clock = _SHORTEST_FOR_CLOCK_NS, None
    for row in rows:
        try:
            start, end, time_ns = (float(row[at]) for at in columns)
        except ValueError:
            continue  # blank, or nothing that this is the place to complain of
        if longest < time_ns < LARGEST and end > start:
            longest, clock = time_ns, float(round((end - start) / time_ns * 1000))
    return clock


def _place(kind: Shared) -> int:
    return HOST if kind.device is None or kind.role is Role.HOST else kind.device


def _several(columns: tuple[int, ...]) -> Callable[[list[bytes]], Sequence[bytes]]:
    """Return what takes some cells of a row; itemgetter alone gives no sequence for one."""
    if len(columns) == 1:
        return itemgetter(slice(columns[0], columns[0] + 1))
    return itemgetter(*columns)


def _column(rows: Rows, column: int | None) -> list[bytes]:
    return [b""] * len(rows) if column is None else [row[column] for row in rows]


def _spread(values: Sequence[Cell], numbers: list[int]) -> list[Cell]:
    return list(map(values.__getitem__, numbers))


def _only_used(values: Sequence[Cell], numbers: list[int]) -> tuple[list[Cell], list[int]]:
    """Leave out the values that no op of the table has, and number the others anew; -1 stays."""
    used = [at for at in dict.fromkeys(numbers) if at >= 0]
    anew = {-1: -1, **{at: position for position, at in enumerate(used)}}
    return [values[at] for at in used], list(map(anew.__getitem__, numbers))


def _only_one(values: Iterable[Cell | None]) -> Cell | None:
    """Return the value that all agree on; None where they differ or say nothing."""
    known = {value for value in values if value is not None}
    return known.pop() if len(known) == 1 else None


def is_ops_csv(head: str) -> bool:
    """Return whether a text begins as an ops CSV does: by its first line."""
    first_line = head.partition("\n")[0]
    return is_header(header_names(first_line.encode("utf-8", "replace")))


def read_ops_csv(file: Path) -> OpTable:
    """Read a capture.

    Where the profiler has a column for the time of an op but never filled it, as for Quasar, the
    next best one is taken; the table's ``kernel_time`` names it.

    Raises:
        InputError: with file and line; also for a file that is cut, or has no row at all.
    """
    with reading(file):
        with unpacked(file, buffering=READ_AT_ONCE) as stream:
            layouts = layouts_of(file, read_header(file, stream))
            first = _read(file, stream, layouts[0])
        if first.devices:
            return first
        others = (_read_again(file, layout) for layout in layouts[1:])
        return next((table for table in others if table.devices), first)


def _read_again(file: Path, layout: Layout) -> OpTable:
    with unpacked(file, buffering=READ_AT_ONCE) as stream:
        read_header(file, stream)
        return _read(file, stream, layout)


def _read(file: Path, stream: BinaryIO, layout: Layout) -> OpTable:
    records = Records(file, stream, layout)
    collector = Collector(file, layout)
    last_line = 1
    for rows, lines in records.batches():
        collector.add(rows, lines)
        last_line = lines[-1]
    if not collector.rows:
        raise InputError(file, "no rows below the header: nothing was captured")
    if records.last_cell_may_be_cut and layout.last_is_used:
        problem = "the last line has no line end, so its last value may be cut off"
        raise InputError(file, problem, line=last_line)
    return collector.table()
