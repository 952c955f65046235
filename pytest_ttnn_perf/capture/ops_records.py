"""The rows of an ops CSV, some at a time, each with the line it begins on.

Faster than the csv module on what a profiler writes, wide rows of which a reader wants a part:
cells stay bytes as they stand in the file, and only wanted ones are decoded.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Final

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.capture.ops_cells import CellError, fields, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_ttnn_perf.capture.ops_columns import Layout

Rows = list[list[bytes]]

#: No header or record is longer: what is, is not a CSV file.
LONGEST_HEADER: Final = 2**20
LONGEST_RECORD: Final = 2**26
#: Lines are long: with the usual buffer, most of them would be pieced together.
READ_AT_ONCE: Final = 2**18
#: Few enough rows that their cells stay in the processor's cache until they are decoded.
_ROWS_AT_ONCE: Final = 64
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
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
