"""The rows of an ops CSV: their times, operands and shared values, in the order of replays."""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from pytest_ttnn_perf.analysis.captures import ops_cells as column
from pytest_ttnn_perf.analysis.captures.ops_cells import (
    PER_CORE,
    START_CYCLE,
    CellError,
    Decoded,
    Interned,
    count,
    extent,
    fields,
    in_column,
    number,
    text,
    whole,
)
from pytest_ttnn_perf.analysis.ops.windows import count_replays, replays_in
from pytest_ttnn_perf.records.json_value import LARGEST
from pytest_ttnn_perf.records.ops import Columns, Signature, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.captures.ops_cells import Layout
    from pytest_ttnn_perf.analysis.captures.ops_csv import Rows
    from pytest_ttnn_perf.records.ops import TraceReplays


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
        return Signature(
            in_column(column.OP_CODE, text, cells[0]), _up_to_last(inputs), _up_to_last(outputs)
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
