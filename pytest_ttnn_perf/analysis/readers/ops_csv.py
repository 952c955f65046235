"""Reader of the profiler's ``ops_perf_results*.csv``, every version of it.

Every release of the profiler added or renamed columns, so columns are found by name, in any order.
An empty cell, ``None`` and ``nan`` mean nothing: the profiler writes ``str()`` of its values.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from contextlib import contextmanager
from enum import Enum
from functools import lru_cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TextIO, TypeVar

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.regions import count_replays, replays_in
from pytest_ttnn_perf.core.codec import LARGEST
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.files import reading, unpacked
from pytest_ttnn_perf.core.ops import (
    HOST,
    Columns,
    OpTable,
    Signature,
    Signpost,
    Tensor,
    Unread,
    Utilisation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.ops import TraceReplays

K = TypeVar("K", bound="Hashable")
V = TypeVar("V", bound="Hashable")
T = TypeVar("T")

OP_CODE: Final = "OP CODE"
OP_TYPE: Final = "OP TYPE"
CALL: Final = "GLOBAL CALL COUNT"
DEVICE: Final = "DEVICE ID"
ARCH: Final = "DEVICE ARCH"
CORES: Final = "CORE COUNT"
AVAILABLE_CORES: Final = "AVAILABLE WORKER CORE COUNT"
TRACE: Final = "METAL TRACE ID"
REPLAY: Final = "METAL TRACE REPLAY SESSION ID"
START_CYCLE: Final = "DEVICE FW START CYCLE"
FW_TIME: Final = "DEVICE FW DURATION [ns]"
KERNEL_TIME: Final = "DEVICE KERNEL DURATION [ns]"
GAP: Final = "OP TO OP LATENCY [ns]"
_ATTRIBUTES: Final = "ATTRIBUTES"
#: What was measured beside the times, in percent, in the order of the fields of ``Utilisation``.
_MEASURED: Final = (
    "DRAM BW UTIL (%)", "NOC UTIL (%)", "MULTICAST NOC UTIL (%)", "ETH BW UTIL (%)",
    "NPE CONG IMPACT (%)", "Avg FPU util on full grid (%)", "Avg SFPU util on full grid (%)",
)  # fmt: skip
#: Columns whose values many rows share, in the order of the fields of ``_Kind``.
_OF_KIND: Final = (
    OP_TYPE, DEVICE, ARCH, "MATH FIDELITY", CORES, AVAILABLE_CORES, "PM IDEAL [ns]", TRACE,
    "SUB DEVICE ID", *_MEASURED,
)  # fmt: skip
#: Where the time of an op may stand, best first. Quasar reports it per type of processor; these run
#: side by side, so the op takes as long as the slower of them, not as both together.
_KERNEL_TIMES: Final = (
    (KERNEL_TIME,),
    ("DEVICE QUASAR_DM KERNEL DURATION [ns]", "DEVICE QUASAR_NEO_TRISC KERNEL DURATION [ns]"),
    ("DEVICE DM FW DURATION [ns]", "DEVICE TRISC FW DURATION [ns]"),
)
#: The times of single processors: every op has at least one of them.
_PROCESSORS: Final = tuple(
    f"DEVICE {name} KERNEL DURATION [ns]"
    for name in ("BRISC", "NCRISC", "TRISC0", "TRISC1", "TRISC2", "ERISC")
)
_HOST_TIME: Final = "HOST DURATION [ns]"
#: The clocks of chips, of which captures without a DEVICE ARCH have one.
_CLOCKS_MHZ: Final = {1000.0: "wormhole_b0", 1350.0: "blackhole"}
_OPERAND: Final = re.compile(r"(INPUT|OUTPUT)_([0-9]{1,4})_(?:([WZYX])(_PAD\[LOGICAL\])?|[A-Z]+)")
_DIMENSIONS: Final = ("W", "Z", "Y", "X")
_FORMATS: Final = ("LAYOUT", "DATATYPE", "MEMORY")
#: A whole number, padded[logical] or padded alone; the first files wrote it as 384.0.
_EXTENT: Final = re.compile(r"([0-9]{1,18})(?:\.0*)?(?:\[([0-9]{1,18})\])?")
#: How a memory names the mesh device it is of; not the DEVICE ID of the row.
_MESH_DEVICE: Final = re.compile(r"^DEV_[0-9]+_")
_NOTHING: Final = frozenset({"", "none", "nan"})
_NO_TEXT: Final = ("", "None")
#: The name of no column: names are stripped.
_ABSENT: Final = "\n"
_MOST_SHOWN: Final = 40

NO_KERNEL_TIME: Final = "no kernel duration"
NEGATIVE_TIME: Final = "negative kernel duration"
#: A kernel begins and ends in different cycles: one that took no time was not measured.
ZERO_TIME: Final = "kernel duration of 0"
IMPOSSIBLE_GAP: Final = "impossible gap"
NO_DEVICE: Final = "no device"
#: A gap this far below zero, and longer than half the op, comes of a clock that was misread.
_LOWEST_GAP_NS: Final = -1e6
#: What the profiler writes for an op that it has no model of.
_NO_MODEL_NS: Final = 1
#: A nanosecond more or less is a MHz then.
_SHORTEST_FOR_CLOCK_NS: Final = 1000.0
#: The clock is read off the longest of so many rows.
_ROWS_FOR_CLOCK: Final = 64
#: No header or line is longer: a longer one is not of a CSV file.
_LONGEST_HEADER: Final = 2**20
_LONGEST_LINE: Final = 2**26


def is_ops_csv(head: str) -> bool:
    return {OP_CODE, OP_TYPE} <= {*header_names(head.partition("\n")[0])}


def header_names(line: str) -> list[str]:
    try:
        rows = list(csv.reader([line.removeprefix("\ufeff")], skipinitialspace=True))
    except csv.Error:
        return []
    return [name.strip() for name in rows[0]] if rows else []


def read_ops_csv(file: Path) -> OpTable:
    """Read a capture.

    Where the profiler has a column for the time of an op but never filled it, as for Quasar, the
    next best one is taken; the table's ``kernel_time`` names it.
    """
    with open_lines(file) as lines:
        rows = CsvRows(file, lines)
        columns = _checked_columns(file, rows.names)
        times = [choice for choice in _KERNEL_TIMES if not columns.keys().isdisjoint(choice)]
        first = _read(rows, _Layout(columns, times[0]))
    for choice in () if first.devices else times[1:]:
        with open_lines(file) as lines:
            table = _read(CsvRows(file, lines), _Layout(columns, choice))
        if table.devices:
            return table
    return first


# Device times without anything from the host: ``cpp_device_perf_report.csv`` of the profiler, and
# the operations of the streaming profiler, which counts the executions of each call from 0.

_OP_NAME: Final = "OP NAME"
_EXECUTION: Final = "EXECUTION"
_KERNEL_START: Final = "DEVICE KERNEL START CYCLE"


def is_cpp_report(head: str) -> bool:
    return _is_report(header_names(head.partition("\n")[0]))


def _is_report(names: list[str]) -> bool:
    # An ops CSV has most of these columns too, and a code instead of a name.
    found = {*names}
    named = _OP_NAME in found or {_EXECUTION, _KERNEL_START} <= found
    return {CALL, DEVICE, KERNEL_TIME} <= found and named and OP_CODE not in found


def read_cpp_report(file: Path) -> OpTable:
    """Read a report as an ops CSV without operands and attributes."""
    with open_lines(file) as lines:
        rows = CsvRows(file, lines)
        if not _is_report(rows.names):
            expected = ", ".join((CALL, DEVICE, _OP_NAME, KERNEL_TIME))
            problem = f"expected a header with {expected}: no device perf report"
            raise InputError(file, problem, line=1)
        ours = {_OP_NAME: OP_CODE}
        if START_CYCLE not in rows.names:
            ours[_KERNEL_START] = START_CYCLE
        columns = {ours.get(name, name): at for at, name in enumerate(rows.names)}
        streamed = _EXECUTION in columns
        if streamed:
            columns |= {OP_CODE: columns[CALL], REPLAY: columns[_EXECUTION]}
        table = _read(rows, _Layout(columns, (KERNEL_TIME,)))
    return _as_it_ran(table) if streamed else replace(table, format="cpp device report")


def _as_it_ran(table: OpTable) -> OpTable:
    """Order streamed calls; one that ran again is of a trace."""
    columns = table.columns
    calls = list(zip(columns.device, columns.call, strict=True))
    times = Counter(calls)
    traced = [times[call] > 1 for call in calls]
    columns = replace(
        columns,
        trace=[0 if again else None for again in traced],
        replay=[n if again else None for n, again in zip(columns.replay, traced, strict=True)],
    )
    order = sorted(range(len(calls)), key=lambda at: columns.start_cycle[at] or 0)
    columns, traces = _in_replay_order(columns.at(order))
    names = [each._replace(op=f"call {each.op}") for each in table.signatures]
    form = "streaming profiler: no names of ops, nor operands; an ops_perf_results CSV has them"
    return replace(table, format=form, columns=columns, traces=traces, signatures=names)


def _checked_columns(file: Path, names: list[str]) -> dict[str, int]:
    columns = {name: at for at, name in enumerate(names)}
    problem = None
    if not {OP_CODE, OP_TYPE} <= columns.keys():
        problem = f"not an ops CSV: expected columns {OP_CODE!r} and {OP_TYPE!r} in the first line"
        if CALL in columns and OP_CODE not in columns:
            # A profiler that leaves the host out writes this.
            problem = "a report of the device alone, without op names: profile with the host's data"
    elif len(columns) < len(names):
        twice = next(name for at, name in enumerate(names) if columns[name] != at)
        problem = f"the column {twice!r} appears twice in the header"
    elif DEVICE not in columns:
        problem = f"expected a column {DEVICE!r} in the header"
    elif columns.keys().isdisjoint(name for choice in _KERNEL_TIMES for name in choice):
        problem = f"expected a column {KERNEL_TIME!r} in the header, found no time at all"
    if problem is not None:
        raise InputError(file, problem, line=1)
    return columns


def _read(rows: CsvRows, layout: _Layout) -> OpTable:
    collector = _Collector(layout)
    try:
        for line, row in rows:
            collector.add(line, row)
    except CellError as cause:
        raise InputError(rows.file, str(cause), line=rows.line) from cause
    if rows.last_cell_may_be_cut and layout.last_is_used:
        problem = "the last line has no line end, so its last value may be cut off"
        raise InputError(rows.file, problem, line=rows.line)
    return collector.table()


@contextmanager
def open_lines(file: Path) -> Iterator[TextIO]:
    """Open a text, packed or not; failures are InputErrors."""
    # Bytes that are not UTF-8 are refused with their column: see ``text``.
    as_text = partial(io.TextIOWrapper, encoding="utf-8", errors="surrogateescape", newline="")
    with reading(file), unpacked(file) as stream, as_text(stream) as lines:
        yield lines


class CsvRows:
    """The rows of a CSV file below its header, with line numbers.

    Empty lines are skipped. ``last_cell_may_be_cut`` is known at the end: no line end follows it.
    ``line`` is that of the row.
    """

    def __init__(self, file: Path, stream: TextIO) -> None:
        self.file = file
        self.line = 1
        self.last_cell_may_be_cut = False
        self._stream = stream
        header = stream.readline(_LONGEST_HEADER)
        problem = None
        if not header:
            problem = "the file is empty"
        elif not header.strip() or len(header) >= _LONGEST_HEADER or "\0" in header:
            problem = "not a CSV file: no line of column names"
        if problem is not None:
            raise InputError(file, problem, line=1)
        try:
            self.names = header_names(text(header))
        except CellError as cause:
            raise InputError(file, str(cause), line=1) from cause

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(self._lines(), strict=True)
        header, before, width = self.line, 0, len(self.names)
        found = False
        try:
            for row in reader:
                self.line, before = header + before + 1, reader.line_num
                if len(row) == width:
                    found = True
                    yield self.line, row
                elif row:
                    raise InputError(self.file, self._wrong_width(len(row)), line=self.line)
        except csv.Error as cause:
            self.line = header + before + 1
            problem = f"not a CSV file: {cause}"
            if reader.line_num > before + 1 or "end of data" in str(cause):
                problem = "a quote opens here and is never closed: the file is cut or damaged"
            raise InputError(self.file, problem, line=self.line) from cause
        if not found:
            raise InputError(self.file, "no rows below the header: nothing was captured")

    def _lines(self) -> Iterator[str]:
        for line in iter(partial(self._stream.readline, _LONGEST_LINE), ""):
            self.last_cell_may_be_cut = not line.endswith(("\n", "\r"))
            yield line

    def _wrong_width(self, values: int) -> str:
        if self.last_cell_may_be_cut:
            return f"the file is cut: its last line has {values} of {len(self.names)} values"
        return f"expected {len(self.names)} values as in the header, found {values}"


class CellError(ValueError):
    """A cell with an unexpected value."""


def text(cell: str) -> str:
    """Return a cell; bytes that are not UTF-8 are refused."""
    if not cell.isascii():
        try:
            cell.encode("utf-8", "surrogateescape").decode("utf-8")
        except UnicodeDecodeError as cause:
            message = f"expected UTF-8 text, found other bytes: {cause.reason}"
            raise CellError(message) from cause
    return cell


def number(cell: str) -> float | None:
    """Return a number; None for a cell that says nothing."""
    if not cell:
        return None
    try:
        value = float(cell)
    except ValueError:
        value = LARGEST * 10
    if -LARGEST <= value <= LARGEST:
        return value
    content = text(cell).strip()
    if content.lower() in _NOTHING:
        return None
    message = f"expected a number, found {_shortened(content)}"
    raise CellError(message)


def whole(cell: str) -> int | None:
    """Return a whole number, however long; None for an empty cell."""
    if not cell:
        return None
    try:
        value = int(cell)
        if -LARGEST <= value <= LARGEST:
            return value
    except ValueError:
        pass  # blank, or such as 384.0
    found = number(cell)
    if found is None or found.is_integer():
        return None if found is None else int(found)
    message = f"expected a whole number, found {_shortened(cell)}"
    raise CellError(message)


def count(cell: str) -> int | None:
    """Return a number from 0; None for an empty cell."""
    value = whole(cell)
    if value is not None and value < 0:
        message = f"expected a number from 0, found {value}"
        raise CellError(message)
    return value


def _extent(cell: str) -> tuple[int, int | None]:
    """Return padded and logical extent; None if only one is written."""
    content = text(cell).strip()
    found = _EXTENT.fullmatch(content)
    if found is None:
        message = f"expected an extent such as 448[147], found {_shortened(content)}"
        raise CellError(message)
    padded, logical = found.groups()
    return int(padded), None if logical is None else int(logical)


def in_column(name: str, read: Callable[[K], V], cell: K) -> V:
    """Read a cell; an error names its column."""
    try:
        return read(cell)
    except CellError as cause:
        message = f"{name}: {cause}"
        raise CellError(message) from cause


def _shortened(content: str) -> str:
    return repr(content if len(content) <= _MOST_SHOWN else content[:_MOST_SHOWN] + "…")


#: The name of an operand, and its dimensions and formats as positions in a signature's cells.
_Operand = tuple[str, tuple[int, ...], tuple[int, ...]]


class _Layout:
    """Positions of columns; a missing one is behind the last."""

    def __init__(self, columns: dict[str, int], kernel_times: tuple[str, ...]) -> None:
        behind = max(columns.values()) + 1

        def place(name: str) -> int:
            return columns.get(name, behind)

        def first_present(*choices: tuple[str, ...]) -> list[str]:
            present = [[name for name in names if name in columns] for names in choices]
            return next(filter(None, present), [_ABSENT])

        kernel = first_present(kernel_times)
        fw = first_present((FW_TIME,), _KERNEL_TIMES[2])
        gap = first_present((GAP,), ("OP TO OP DM LATENCY [ns]",))
        self.kernel_time = kernel[0]
        if len(kernel) > 1:
            self.kernel_time = f"the longer of {' and '.join(kernel)}"
        #: Columns of which the largest number counts, in the place of the first.
        self.merged = [
            (names[0], list(map(place, names))) for names in (kernel, fw) if len(names) > 1
        ]
        #: Numbers that every op has for itself, in the order of the columns of ``_Collector``.
        self.values: list[tuple[str, int, Callable[[str], float | None]]] = [
            (kernel[0], place(kernel[0]), number),
            (fw[0], place(fw[0]), number),
            (gap[0], place(gap[0]), number),
            (REPLAY, place(REPLAY), whole),
            (START_CYCLE, place(START_CYCLE), whole),
            (CALL, place(CALL), whole),
            (_HOST_TIME, place(_HOST_TIME), number),
        ]
        self.kernel, self.start_cycle = place(kernel[0]), place(START_CYCLE)
        self.format = _format(columns)
        self.operands, of_operands = _operands(columns)
        self.signature = (columns[OP_CODE], *map(place, of_operands))
        self.kind = tuple(map(place, _OF_KIND))
        self.attributes, self.call = place(_ATTRIBUTES), place(CALL)
        self.processors = [columns[name] for name in _PROCESSORS if name in columns]
        of_clock = (START_CYCLE, "DEVICE FW END CYCLE", FW_TIME)
        self.clock = tuple(map(place, of_clock)) if columns.keys() >= {*of_clock} else ()
        used = {*self.signature, *self.kind, self.attributes, self.call}
        used.update(at for _, at, _ in self.values)
        used.update(at for _, places in self.merged for at in places)
        self.last_is_used = behind - 1 in used


def _format(columns: dict[str, int]) -> str:
    shapes = [found for found in map(_OPERAND.fullmatch, columns) if found and found[3]]
    if ARCH in columns or AVAILABLE_CORES in columns:
        version = "v2.1"
    elif any(found[4] for found in shapes):
        version = "v2"
    else:
        version = "v1" if shapes else "without tensors"
    quasar = any(name in columns for choice in _KERNEL_TIMES[1:] for name in choice)
    return f"{version}, Quasar" if quasar else version


def _operands(columns: dict[str, int]) -> tuple[list[_Operand], list[str]]:
    found = [match for match in map(_OPERAND.fullmatch, columns) if match]
    operands: list[_Operand] = []
    names: list[str] = []
    for _, _, prefix in sorted({(m[1], int(m[2]), f"{m[1]}_{m[2]}") for m in found}):
        places: dict[str, int] = {}
        for part in (*_DIMENSIONS, *_FORMATS):
            # The newer name first: a file that has both says more there.
            for name in (f"{prefix}_{part}_PAD[LOGICAL]", f"{prefix}_{part}"):
                if name in columns and part not in places:
                    names.append(name)
                    places[part] = len(names)  # the op's code comes first
        if places:
            dimensions = tuple(places[part] for part in _DIMENSIONS if part in places)
            formats = tuple(places.get(part, 0) for part in _FORMATS)
            operands.append((prefix, dimensions, formats))
    return operands, names


class _Role(Enum):
    """Kinds of rows; NOWHERE lacks the device it should name."""

    DEVICE = "device"
    HOST = "host"
    SIGNPOST = "signpost"
    NOWHERE = "nowhere"
    UNKNOWN = "unknown"


class _Kind(NamedTuple):
    """Values that many rows share; None for empty cells."""

    role: _Role
    device: int | None
    arch: str | None
    fidelity: str
    cores: int | None
    available_cores: int | None
    ideal_ns: float | None
    trace: int | None
    sub_device: int | None
    measured: Utilisation | None


def _kind(cells: tuple[str, ...]) -> _Kind:
    readers = (text, count, text, text, count, count, number, whole, whole, *[number] * 7)
    values: list[Any] = [
        in_column(name, read, cell)
        for name, read, cell in zip(_OF_KIND, readers, cells, strict=True)
    ]
    op_type, device, arch, fidelity, cores, available, ideal_ns, trace, sub_device = values[:9]
    percents = [None if value is None else value / 100 for value in values[9:]]
    measured = None if percents.count(None) == len(percents) else Utilisation(*percents)
    role = _Role.UNKNOWN
    if op_type == "signpost":
        role = _Role.SIGNPOST
    elif op_type in {"python_fallback", "tt_dnn_cpu"}:
        role = _Role.HOST
    elif device is not None:
        role = _Role.DEVICE
    elif op_type == "tt_dnn_device":
        role = _Role.NOWHERE
    if ideal_ns is not None and ideal_ns <= _NO_MODEL_NS:
        ideal_ns = None
    setup = (arch.lower() or None, fidelity, cores, available, ideal_ns, trace, sub_device)
    return _Kind(role, device, *setup, measured)


def _signature(operands: Sequence[_Operand], cells: tuple[str, ...]) -> Signature:
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []
    for name, dimensions, formats in operands:
        shape = tuple([cells[at] for at in dimensions])
        formatted = tuple([cells[at] if at else "" for at in formats])
        tensor = in_column(name, _tensor, (shape, formatted))
        (inputs if name.startswith("INPUT") else outputs).append(tensor)
    for tensors in (inputs, outputs):
        while tensors and tensors[-1] == _NO_TENSOR:  # one in between keeps its place
            tensors.pop()
    return Signature(in_column(OP_CODE, text, cells[0]), tuple(inputs), tuple(outputs))


_NO_TENSOR: Final = Tensor((), None, "", "", "")


@lru_cache(maxsize=2**16)  # the output of one op is the input of another
def _tensor(cells: tuple[tuple[str, ...], tuple[str, ...]]) -> Tensor:
    shape, formats = cells
    extents = list(map(_extent, shape)) if any(shape) else []
    logical = tuple([inner for _, inner in extents if inner is not None])
    layout, dtype, memory = map(text, formats)
    return Tensor(
        tuple([padded for padded, _ in extents]),
        logical if extents and len(logical) == len(extents) else None,
        layout,
        dtype,
        _MESH_DEVICE.sub("", memory),
    )


class _InternTable(dict[K, int], Generic[K, V]):
    """Numbers of repeated values, by their cells."""

    def __init__(self, decode: Callable[[K], V]) -> None:
        super().__init__()
        self.known: list[V] = []
        self._decode = decode
        self._numbers: dict[V, int] = {}

    def __missing__(self, cells: K) -> int:
        value = self._decode(cells)
        found = self[cells] = self._numbers.setdefault(value, len(self.known))
        if found == len(self.known):
            self.known.append(value)
        return found


class _Collector:
    """Collects ops from rows."""

    def __init__(self, layout: _Layout) -> None:
        self._layout = layout
        # itemgetter returns no tuple for a single column.
        self._signature_cells = itemgetter(*layout.signature, *layout.signature[:1])
        self._kind_cells = itemgetter(*layout.kind)
        self._signatures: _InternTable[tuple[str, ...], Signature] = _InternTable(
            partial(_signature, layout.operands)
        )
        self._kinds = _InternTable(_kind)
        self._attributes: _InternTable[str, str] = _InternTable(
            partial(in_column, _ATTRIBUTES, text)
        )
        self._attributes.update(dict.fromkeys(_NO_TEXT, -1))
        self._rows = 0
        self._dropped: Counter[str] = Counter()
        self._unread: list[Unread] = []
        #: Calls without a time, which the replays of a trace may have run later.
        self._blank: list[tuple[Hashable, Unread]] = []
        self._replayed: set[Hashable] = set()
        self._signposts: list[Signpost] = []
        #: Number of the signature, kind, number of the attributes, line, the values of the layout.
        self._ops: list[tuple[Any, ...]] = []
        self._processors = False if layout.processors else None
        self._clock: tuple[float, float | None] = (_SHORTEST_FOR_CLOCK_NS, None)

    def add(self, line: int, row: list[str]) -> None:
        layout = self._layout
        row.append("")  # stands for every column that is missing
        for name, places in layout.merged:
            found = [in_column(name, number, row[at]) for at in places]
            row[places[0]] = str(max((value for value in found if value is not None), default=""))
        self._note_device(row)
        self._rows += 1
        signature = self._signatures[self._signature_cells(row)]
        kind = self._kinds.known[self._kinds[self._kind_cells(row)]]
        attributes = self._attributes[row[layout.attributes]]
        call = (kind.device, signature, row[layout.call])
        if kind.trace is not None:
            self._replayed.add(call)
        if kind.role is _Role.DEVICE and row[layout.kernel]:
            values = self._values(row)
            reason = _reason_to_drop(values[0], values[2])
        elif kind.role is _Role.HOST:
            values, reason = [0.0, *[None] * (len(layout.values) - 1)], None
        elif kind.role is _Role.SIGNPOST:
            name = self._signatures.known[signature].op
            self._signposts.append(Signpost(name, len(self._ops)))
            return
        else:
            reason = NO_DEVICE if row[layout.kernel] else NO_KERNEL_TIME
        if reason is None:
            self._ops.append((signature, kind, attributes, line, *values))
            return
        self._dropped[reason] += 1
        unread = Unread(line, reason, len(self._signposts))
        # An op that began on its device has run, and should have a time.
        began = reason != NO_KERNEL_TIME or row[layout.start_cycle]
        if kind.role is _Role.UNKNOWN and reason == NO_KERNEL_TIME:
            return
        if began or kind.trace is not None:
            self._unread.append(unread)
        else:
            self._blank.append((call, unread))

    def _values(self, row: list[str]) -> list[float | None]:
        try:
            return [read(row[at]) for _, at, read in self._layout.values]
        except CellError:
            for name, at, read in self._layout.values:
                in_column(name, read, row[at])
            raise

    def _note_device(self, row: list[str]) -> None:
        """Look for times of processors, and for the clock."""
        if self._processors is False:
            cells = [row[at].strip() for at in self._layout.processors]
            self._processors = any(cell not in _NO_TEXT for cell in cells)
        longest_ns, clock_mhz = self._clock
        if self._layout.clock and (clock_mhz is None or self._rows < _ROWS_FOR_CLOCK):
            try:
                start, end, time_ns = (float(row[at]) for at in self._layout.clock)
            except ValueError:
                return  # blank; wrong values are refused elsewhere
            if longest_ns < time_ns < LARGEST and end > start:
                self._clock = (time_ns, float(round((end - start) / time_ns * 1000)))

    def table(self) -> OpTable:
        fields = [[op[at] for op in self._ops] for at in range(4 + len(self._layout.values))]
        numbers, kinds, texts, lines, kernel_ns, fw_ns, gap_ns, replay, start_cycle, *more = fields
        calls, host_ns = map(_unless_blank, more)
        signatures, signature = _only_used(self._signatures.known, numbers)
        attribute_texts, attributes = _only_used(self._attributes.known, texts)
        known = self._kinds.known
        fidelities = list(dict.fromkeys(k.fidelity for k in known if k.fidelity not in _NO_TEXT))
        fidelity = {name: at for at, name in enumerate(fidelities)}
        columns, traces = _in_replay_order(
            Columns(
                signature=signature,
                device=[HOST if k.role is _Role.HOST else k.device for k in kinds],
                kernel_ns=kernel_ns,
                fw_ns=fw_ns,
                gap_ns=gap_ns,
                ideal_ns=[k.ideal_ns for k in kinds],
                cores=[k.cores for k in kinds],
                fidelity=[fidelity.get(k.fidelity, -1) for k in kinds],
                attributes=attributes,
                trace=[k.trace for k in kinds],
                replay=replay,
                start_cycle=start_cycle,
                host=[k.role is _Role.HOST for k in kinds],
                line=lines,
                call=calls,
                host_ns=host_ns,
                measured=_unless_blank([k.measured for k in kinds]),
                sub_device=_unless_blank([k.sub_device for k in kinds]),
            )
        )
        blank = [unread for call, unread in self._blank if call not in self._replayed]
        named = {k.arch for k in known if k.arch}
        arch = _only_one(named) if named else _CLOCKS_MHZ.get(self._clock[1] or 0.0)
        return OpTable(
            format=self._layout.format,
            rows=self._rows,
            columns=columns,
            signatures=signatures,
            fidelities=fidelities,
            attribute_texts=attribute_texts,
            signposts=tuple(self._signposts),
            traces=traces,
            dropped=dict(self._dropped),
            unread=tuple(sorted([*self._unread, *blank])),
            arch=arch,
            available_cores=_only_one(k.available_cores for k in known),
            kernel_time=self._layout.kernel_time,
            processors=self._processors,
            clock_mhz=self._clock[1],
        )


def _reason_to_drop(kernel_ns: float | None, gap_ns: float | None) -> str | None:
    if kernel_ns is None:
        return NO_KERNEL_TIME
    if kernel_ns <= 0:
        return NEGATIVE_TIME if kernel_ns < 0 else ZERO_TIME
    if gap_ns is not None and gap_ns < _LOWEST_GAP_NS and -gap_ns > kernel_ns / 2:
        return IMPOSSIBLE_GAP
    return None


def _unless_blank(values: Sequence[T | None]) -> Sequence[T | None]:
    """Return a column, or an empty one if it says nothing."""
    return () if values.count(None) == len(values) else values


def _in_replay_order(columns: Columns) -> tuple[Columns, tuple[TraceReplays, ...]]:
    """Sort the ops of each replay by start; return replays, too.

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


def _only_used(values: Sequence[T], numbers: list[int]) -> tuple[list[T], list[int]]:
    """Drop unused values and renumber the others; -1 stays."""
    used = [at for at in dict.fromkeys(numbers) if at >= 0]
    anew = {-1: -1, **{at: position for position, at in enumerate(used)}}
    return [values[at] for at in used], list(map(anew.__getitem__, numbers))


def _only_one(values: Iterable[T | None]) -> T | None:
    """Return the only value; None if they differ."""
    known = {value for value in values if value is not None}
    return known.pop() if len(known) == 1 else None
