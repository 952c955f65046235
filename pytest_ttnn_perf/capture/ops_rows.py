"""What many rows of an ops CSV have in common: operands, and where and how an op ran."""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from pytest_ttnn_perf.capture import ops_columns as column
from pytest_ttnn_perf.capture.ops_cells import (
    CellError,
    Decoded,
    count,
    extent,
    fields,
    in_column,
    number,
    text,
    whole,
)
from pytest_ttnn_perf.model.ops import Signature, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ttnn_perf.capture.ops_cells import Interned
    from pytest_ttnn_perf.capture.ops_columns import Layout

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
