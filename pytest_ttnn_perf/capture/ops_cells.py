"""The cells of an ops CSV: still quoted bytes on the way in, values on the way out.

A profiler writes ``str()`` of whatever it has: nothing is an empty cell, ``None`` or ``nan``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from pytest_ttnn_perf.model.metric import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

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
