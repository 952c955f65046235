"""The profiler's ``ops_perf_results*.csv``: every release of it, read into an op table."""

from __future__ import annotations

from functools import partial
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf._base.files import reading, unpacked
from pytest_ttnn_perf.analysis.captures.ops_cells import (
    ATTRIBUTES,
    NO_TEXT,
    REPLAY,
    CellError,
    Interned,
    fields,
    in_column,
    is_header,
    layouts_of,
    text,
    whole,
)
from pytest_ttnn_perf.analysis.captures.ops_rows import (
    NO_KERNEL_TIME,
    NO_TIMES,
    Role,
    Shared,
    TimeCells,
    Times,
    TimesOfOne,
    in_replay_order,
    one_by_one,
    reason_to_drop,
    shared_decoder,
    signature_decoder,
    time_cells,
    times_of,
    unless_blank,
    usual_times,
)
from pytest_ttnn_perf.records.json_value import LARGEST
from pytest_ttnn_perf.records.ops import HOST, Columns, OpTable, Signpost, Unread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.analysis.captures.ops_cells import Layout


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
