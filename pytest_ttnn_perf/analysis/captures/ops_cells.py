"""The columns of an ops CSV, found by name in any order, and its cells: bytes that become values.

Every release of the profiler added or renamed columns, so a header is searched, never compared.
Nothing is an empty cell, ``None`` or ``nan``: the profiler writes ``str()`` of what it has.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf.records.json_value import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from pathlib import Path


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


@dataclass(frozen=True, slots=True)
class Operand:
    """The columns of an input or output. ``parts`` names what each holds, e.g. W or LAYOUT.

    ``places`` are positions in the record of an op's code and all its operands.
    """

    name: str
    is_input: bool
    parts: tuple[str, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
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
