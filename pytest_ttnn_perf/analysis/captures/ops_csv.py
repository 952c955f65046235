"""The profiler's ``ops_perf_results*.csv``: every release of it, read into an op table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Final

from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf.analysis.captures.ops_cells import CellError, fields, text
from pytest_ttnn_perf.analysis.captures.ops_header import is_header, layouts_of
from pytest_ttnn_perf.analysis.captures.ops_rows import Collector, trace_replays
from pytest_ttnn_perf.records.ops import Signpost, Unread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.analysis.captures.ops_header import Layout
    from pytest_ttnn_perf.records.ops import OpTable


OUTSIDE: Final = "outside the window"
#: By convention, what NAME begins ends at NAME_END.
_END: Final = "_END"
Span = tuple[int, int]  # positions among a table's signposts; the last may be behind the last


def window(table: OpTable, start: str | None, end: str | None) -> OpTable:
    """Return the ops after each signpost ``start`` and before the next ``end``.

    Without ``end``, that is ``start`` + ``_END`` if there is one, else the end of the capture;
    without ``start``, its beginning. What is left out is counted as dropped.

    Raises:
        UsageError: no such signpost, or a start that no end follows.
    """
    names = [signpost.name for signpost in table.signposts]
    for name in (start, end):
        if name is not None and name not in names:
            known = ", ".join(map(repr, dict.fromkeys(names))) or "none"
            message = f"the capture has no signpost {name!r}; its signposts: {known}"
            raise UsageError(message)
    if end is None and start is not None and start + _END in names:
        end = start + _END
    return _between(table, _spans(names, start, end))


def _spans(names: Sequence[str], start: str | None, end: str | None) -> list[Span]:
    spans: list[Span] = []
    opened = -1 if start is None else None
    for at, name in enumerate(names):
        if opened is not None and name == end:
            spans.append((opened, at))
            opened = None
        elif opened is None and name == start:
            opened = at
    if opened is not None:
        if end is not None:
            message = f"the last signpost {start!r} is not followed by {end!r}"
            raise UsageError(message)
        spans.append((opened, len(names)))
    return spans


def _between(table: OpTable, spans: list[Span]) -> OpTable:
    indices: list[int] = []
    signposts: list[Signpost] = []
    calls: list[int] = []
    unread: list[Unread] = []
    for first, last in spans:
        calls.append(len(indices))
        begin = 0 if first < 0 else table.signposts[first].position
        stop = len(table) if last == len(table.signposts) else table.signposts[last].position
        shift = len(indices) - begin
        unread += [
            each._replace(signposts=each.signposts - first - 1 + len(signposts))
            for each in table.unread
            if first < each.signposts <= last
        ]
        inner = table.signposts[first + 1 : last]
        signposts += [Signpost(post.name, post.position + shift) for post in inner]
        indices += range(begin, stop)
    chosen = table.select(indices)
    outside = len(table) + len(table.signposts) - len(indices) - len(signposts)
    dropped = {**table.dropped, OUTSIDE: table.dropped.get(OUTSIDE, 0) + outside}
    return replace(
        chosen,
        rows=table.rows,
        signposts=tuple(signposts),
        traces=trace_replays(chosen.columns),
        dropped={reason: count for reason, count in dropped.items() if count},
        unread=tuple(unread),
        windowed=True,
        calls=tuple(calls) if len(calls) > 1 else (),
    )


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
    try:
        with file.open("rb", buffering=READ_AT_ONCE) as stream:
            layouts = layouts_of(file, read_header(file, stream))
            first = _read(file, stream, layouts[0])
        if first.devices:
            return first
        others = (_read_again(file, layout) for layout in layouts[1:])
        return next((table for table in others if table.devices), first)
    except IsADirectoryError as cause:
        raise InputError(file, "expected a file, found a folder") from cause
    except OSError as cause:
        raise InputError(file, f"cannot read: {cause.strerror or cause}") from cause


def _read_again(file: Path, layout: Layout) -> OpTable:
    with file.open("rb", buffering=READ_AT_ONCE) as stream:
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
