"""What many rows of an ops CSV have in common: operands, and where and how an op ran."""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf.analysis.captures import ops_header as column
from pytest_ttnn_perf.analysis.captures.ops_cells import (
    NO_KERNEL_TIME,
    NO_TEXT,
    NO_TIMES,
    CellError,
    Decoded,
    Interned,
    TimeCells,
    Times,
    TimesOfOne,
    count,
    extent,
    fields,
    in_column,
    number,
    one_by_one,
    reason_to_drop,
    text,
    time_cells,
    times_of,
    unless_blank,
    usual_times,
    whole,
)
from pytest_ttnn_perf.analysis.captures.ops_header import ATTRIBUTES, REPLAY
from pytest_ttnn_perf.records.ops import (
    HOST,
    Columns,
    OpTable,
    Signature,
    Signpost,
    Tensor,
    TraceReplays,
    Unread,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.analysis.captures.ops_csv import Rows
    from pytest_ttnn_perf.analysis.captures.ops_header import Layout


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

    of_type, types = read(column.OP_TYPE, text)
    of_device, devices = read(column.DEVICE, count)
    of_arch, arches = read(column.ARCH, text)
    of_fidelity, fidelity_numbers = read(column.FIDELITY, fidelities.__getitem__)
    of_cores, cores = read(column.CORES, count)
    of_available, available = read(column.AVAILABLE_CORES, count)
    of_ideal, ideals_ns = read(column.IDEAL, _ideal_ns)
    of_trace, traces = read(column.TRACE, whole)

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
        return Signature(in_column(column.OP_CODE, text, cells[0]), _given(inputs), _given(outputs))

    return decode


def _cells_at(places: tuple[int, ...]) -> Callable[[list[bytes]], tuple[bytes, ...]]:
    if len(places) == 1:  # itemgetter alone gives no tuple for one
        return lambda cells: (cells[places[0]],)
    return itemgetter(*places)


def _given(tensors: list[Tensor | None]) -> tuple[Tensor, ...]:
    """Return the operands up to the last one; a hole keeps its place."""
    while tensors and tensors[-1] is None:
        tensors.pop()
    return tuple([tensor or _NO_TENSOR for tensor in tensors])


_NO_TENSOR: Final = Tensor((), None, "", "", "")


class _Tensors(dict[tuple[bytes, ...], Tensor | None]):
    """Operands by their cells; None for one that is not there."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        super().__init__()
        self._dimensions = [at for at, part in enumerate(parts) if part in column.DIMENSIONS]
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


Replay = tuple[int, int, int]  # device, trace, replay


def in_replay_order(columns: Columns) -> tuple[Columns, tuple[TraceReplays, ...]]:
    """Return the ops with those of each replay in the order the device began them; the replays.

    A replay has one host time for all its ops, so a file may have them in any order. Each replay
    keeps the places that it has: what ran between signposts still stands between them.
    """
    replays = _replays(columns)
    moved: dict[int, int] = {}
    for places in replays.values():
        known = [cycle for at in places if (cycle := columns.start_cycle[at]) is not None]
        if len(known) == len(places) and known != sorted(known):
            by_cycle = sorted(zip(known, places, strict=True))
            moved.update(zip(places, (at for _, at in by_cycle), strict=True))
    if moved:
        columns = columns.at([moved.get(at, at) for at in range(len(columns.device))])
    return columns, _counted(columns, replays)


def trace_replays(columns: Columns) -> tuple[TraceReplays, ...]:
    """Count the executions of each trace on each device; complete if all have the same ops.

    A trace whose executions the capture does not tell apart is left out.
    """
    return _counted(columns, _replays(columns))


def _counted(columns: Columns, replays: dict[Replay, list[int]]) -> tuple[TraceReplays, ...]:
    sequences: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for (device, trace, _), places in replays.items():
        ran = tuple([columns.signature[at] for at in places])
        sequences.setdefault((device, trace), []).append(ran)
    return tuple(
        TraceReplays(device, trace, len(ran), complete=len(set(ran)) == 1)
        for (device, trace), ran in sorted(sequences.items())
    )


def _replays(columns: Columns) -> dict[Replay, list[int]]:
    """Return the places of the ops of each replay."""
    found: dict[Replay, list[int]] = {}
    traced = zip(columns.device, columns.trace, columns.replay, strict=True)
    for at, (device, trace, replay) in enumerate(traced):
        if trace is not None and replay is not None:
            found.setdefault((device, trace, replay), []).append(at)
    return found


Cell = TypeVar("Cell")
NO_DEVICE: Final = "no device"
#: Of some rows: the numbers of their signature, shared values, attributes and replay.
_Numbers = tuple[list[int], list[int], list[int], list[int]]
#: The line of a row, and the cell that numbers the host's call.
_Place = tuple[int, bytes]
#: An op of a call of the host: device, signature, call.
_Call = tuple[int | None, int, bytes]


class Collector:
    """The ops so far. ``rows`` counts all rows, whatever became of them."""

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

    def add(self, rows: Rows, lines: list[int]) -> None:
        """Take in rows of the header's width, with the lines they begin on."""
        self.rows += len(rows)
        if self._last_cell_is_used:
            for row in rows:
                row[-1] = row[-1].rstrip(b"\r\n")
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
        """Return what was gathered."""
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
        )


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
    said = {value for value in values if value is not None}
    return said.pop() if len(said) == 1 else None
