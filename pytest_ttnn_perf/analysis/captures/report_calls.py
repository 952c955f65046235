"""The calls of a report: their tensors as an op table has them, what was there before, their list.

A report is a database or a captured graph.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.ops.roofline import BYTES
from pytest_ttnn_perf.records.ops import CALLS, OpGroup, OpGroups, Signature, Tensor
from pytest_ttnn_perf.records.ttnn_report import BufferType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.records.ttnn_report import Operation, Report, TensorRecord


#: Rows and columns of a tile.
TILE: Final = 32


def in_tiles(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with its last two extents rounded up to whole tiles.

    >>> in_tiles((1, 1, 50, 100)), in_tiles((7,))
    ((1, 1, 64, 128), (32, 32))
    """
    *outer, rows, columns = (*(1,) * (2 - len(shape)), *shape)
    return (*outer, -(-rows // TILE) * TILE, -(-columns // TILE) * TILE)


def device_tensor(record: TensorRecord | None) -> Tensor | None:
    """Return a tensor of a report as an op table would have it; None for one on the host.

    A report tells no padding: tiles are taken to be of 32 by 32.
    """
    if record is None or record.shape is None or record.memory is None:
        return None
    layout = record.layout or ""
    padded = in_tiles(record.shape) if layout == "TILE" else record.shape
    return Tensor(padded, record.shape, layout, record.dtype or "", record.memory)


def allocated_bytes(record: TensorRecord) -> float:
    """Return what a tensor takes on one device, padding included; 0 where that is not known.

    A sharded tensor takes a whole shard on each of its cores.
    """
    tensor = device_tensor(record)
    if tensor is None:
        return 0.0
    elements = prod(tensor.padded)
    if record.shard is not None and record.shard.shape and record.shard.grid:
        cores = sum((r.x1 - r.x0 + 1) * (r.y1 - r.y0 + 1) for r in record.shard.grid)
        elements = max(elements, prod(record.shard.shape) * cores)
    return elements * BYTES.get(tensor.dtype, 0.0)


def tensors_from_before(report: Report) -> Iterator[TensorRecord]:
    """Yield what lay on the device before the calls and is read by one: weights and inputs.

    Each once: tensors at one address are one. What no call gave, but lies where one put its output,
    is a view of that.
    """
    made: set[object] = set()
    seen: set[object] = set()
    for operation in report.operations:
        for number in operation.inputs:
            record = report.tensors.get(number)
            if record is None or record.address is None or device_tensor(record) is None:
                continue
            place = _place(record)
            if place not in made and place not in seen:
                seen.add(place)
                yield record
        outputs = filter(None, map(report.tensors.get, operation.outputs))
        made.update(_place(record) for record in outputs)


def _place(record: TensorRecord) -> object:
    return record.device, (record.memory or "").partition("_")[0], record.address


def resident_bytes(report: Report) -> Mapping[BufferType, float]:
    """Return what weights and inputs take on one device, in DRAM and in L1.

    Nothing where no call tells what it reads.
    """
    if not any(operation.inputs for operation in report.operations):
        return {}
    sizes = dict.fromkeys((BufferType.DRAM, BufferType.L1), 0.0)
    for record in tensors_from_before(report):
        kind = BufferType.DRAM if (record.memory or "").startswith("DRAM") else BufferType.L1
        sizes[kind] += allocated_bytes(record)
    return sizes


def group_calls(report: Report) -> OpGroups:
    """Return the calls as the list of ops beside a baseline has them: counts without times."""
    counts = Counter(_signature(report, operation) for operation in report.operations)
    groups = (
        OpGroup(signature, None, None, "", count, total_ns=0.0, median_ns=0.0)
        for signature, count in counts.items()
    )
    return OpGroups(CALLS, tuple(sorted(groups, key=lambda g: (g.signature.op, repr(g)))))


def _signature(report: Report, operation: Operation) -> Signature:
    inputs, outputs = (
        tuple(filter(None, (device_tensor(report.tensors.get(number)) for number in numbers)))
        for numbers in (operation.inputs, operation.outputs)
    )
    return Signature(operation.name, inputs, outputs)
