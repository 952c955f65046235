"""Where activations are, which one op makes and another reads; L1, DRAM and host transfers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.captures.report_calls import device_tensor
from pytest_ttnn_perf.analysis.checklist.op_times import (
    device_ops,
    has_operands,
    kernel_ns,
    op_name,
    signature_numbers,
)
from pytest_ttnn_perf.analysis.checklist.operands import (
    Operand,
    shape_text,
    used_signatures,
)
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, board_of, rooflines, size_of
from pytest_ttnn_perf.records.ttnn_report import BufferType, Reshard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Op, OpTable, Tensor
    from pytest_ttnn_perf.records.ttnn_report import Edge, Operation, Report


#: Why rules about activations say nothing of a program in which no op reads what another made.
NO_ACTIVATIONS: Final = "no op reads what another one made"
_SHARDING: Final = re.compile(r"(HEIGHT|WIDTH|BLOCK|ND)_SHARDED")
_CACHE: Final = re.compile(r"cache", re.IGNORECASE)


class Reads(NamedTuple):
    """Ops of one signature, and those of their inputs that ops before them made."""

    ops: Sequence[Op]
    activations: tuple[Tensor, ...]


@once_per_table
def activation_reads(table: OpTable) -> Sequence[Reads]:
    """Return the ops of devices with the activations that they read.

    A capture does not name tensors: one that has the shape, dtype and memory of an earlier output
    of the same device is taken for it. Weights are never an output. Caches, which ops write in
    place and which stay where they are, do not count.
    """
    caches = {
        _kind(tensor)
        for signature, _ in used_signatures(table)
        if _CACHE.search(signature.op)
        for tensor in signature.outputs
    }
    made: dict[int, set[tuple[object, ...]]] = defaultdict(set)
    found: dict[tuple[int, int, int], tuple[Tensor, ...]] = {}
    ops: dict[tuple[int, int, int], list[Op]] = defaultdict(list)
    for op, number in zip(device_ops(table), signature_numbers(table), strict=True):
        cwd = made[op.device]
        # What was made only grows: as long as it is as much, a signature reads the same of it.
        key = (op.device, number, len(cwd))
        if key not in found:
            inputs, outputs = op.signature.inputs, op.signature.outputs
            found[key] = tuple(tensor for tensor in inputs if _kind(tensor) in cwd)
            cwd.update(set(map(_kind, outputs)) - caches)
        ops[key].append(op)
    return tuple(Reads(ops[key], activations) for key, activations in found.items())


def activation_operands(subject: Subject, *, with_producer: bool = False) -> Iterator[Operand]:
    """Yield the activations that ops read, by what people call these ops.

    They are those of the op table or, without one, of the report, which also tells what made them.
    """
    if subject.ops is not None:
        for ops, activations in activation_reads(subject.ops):
            name = op_name(ops[0])
            yield from (Operand(name, tensor, len(ops), given=False) for tensor in activations)
    elif subject.report is not None:
        names = {operation.id: operation.name for operation in subject.report.operations}
        for edge, tensor in activation_edges(subject.report):
            producer = f"{names[edge.producer]} → " if with_producer else ""
            shape = shape_text(tensor.logical or tensor.padded)
            yield Operand(f"{producer}{names[edge.consumer]} {shape}", tensor, 1, given=False)


def _kind(tensor: Tensor) -> tuple[object, ...]:
    return (tensor.padded, tensor.dtype, tensor.memory)


def activation_edges(report: Report) -> Iterator[tuple[Edge, Tensor]]:
    """Yield the tensors of a report that one operation computed and another one computes with."""
    computing = {operation.id for operation in report.completed if operation.device_operations}
    for edge in report.edges:
        tensor = device_tensor(report.tensors.get(edge.tensor))
        if tensor is not None and {edge.producer, edge.consumer} <= computing:
            yield edge, tensor


#: Of the L1 of all cores, what one tensor may take: others, and circular buffers, need room too.
ROOM: Final = 0.1


def l1_bytes(report: Report) -> int | None:
    """Return how much L1 a device has; None where that is not told."""
    sizes = (device.total_l1_bytes for device in report.devices if device.total_l1_bytes)
    return min(sizes, default=None)


def is_fetched(operand: Operand, l1_bytes: int) -> bool:
    """Tell whether an activation is read from DRAM although it would fit into L1."""
    return operand.tensor.memory.startswith("DRAM") and operand.size <= l1_bytes * ROOM


#: Operations that only convert or move what they are given.
_MOVES: Final = re.compile(
    r"tilize|to_?layout|to_?memory_?config|reshard|interleaved_?to|sharded_?to|copy|move|clone",
    re.IGNORECASE,
)


class RoundTrip(NamedTuple):
    """Two operations that only convert or move, the second right what the first gave.

    ``before``, ``there`` and ``after`` are the tensor on its way; nobody else reads it there.
    """

    out: Operation
    back: Operation
    before: Tensor
    there: Tensor
    after: Tensor

    def told(self, stations: tuple[str, str, str]) -> str:
        """Name both operations, the tensor, and where it was on its way."""
        ids = f"operations {self.out.id} and {self.back.id}"
        shape = shape_text(self.there.logical or self.there.padded)
        return f"{self.out.name} → {self.back.name} ({ids}) {shape}, {' → '.join(stations)}"


def round_trips(report: Report) -> Iterator[RoundTrip]:
    """Yield the tensors that one operation moves and the next one moves on."""
    operations = {operation.id: operation for operation in report.completed}
    readers = Counter(edge.tensor for edge in report.edges)
    for edge in report.edges:
        out, back = operations.get(edge.producer), operations.get(edge.consumer)
        if out is None or back is None or readers[edge.tensor] != 1:
            continue
        if not (_only_moves(out) and _only_moves(back)):
            continue
        numbers = (*out.inputs[:1], edge.tensor, *back.outputs[:1])
        tensors = [device_tensor(report.tensors.get(number)) for number in numbers]
        if len(tensors) == 3 and None not in tensors:
            yield RoundTrip(out, back, *filter(None, tensors))


def _only_moves(operation: Operation) -> bool:
    names = operation.device_operations or (operation.name.rpartition(".")[2],)
    return all(map(_MOVES.search, names))


def is_interleaved(tensor: Tensor) -> bool:
    """Tell whether a tensor is spread over all banks, page by page."""
    return "INTERLEAVED" in tensor.memory


def sharding_in(memory: str | None) -> str | None:
    """Return how a memory layout cuts tensors; None where it does not.

    >>> sharding_in("L1_HEIGHT_SHARDED"), sharding_in("DRAM_INTERLEAVED")
    ('HEIGHT', None)
    """
    found = _SHARDING.search(memory or "")
    return None if found is None else found[1]


def reshards(report: Report, operation: Operation) -> bool:
    """Tell whether an operation moves a tensor from one sharding to another, also on its way."""
    if operation.reshard is not Reshard.UNKNOWN:
        return operation.reshard is not Reshard.NONE
    before, after = first_shards(report, operation.inputs), first_shards(report, operation.outputs)
    return "memory_config" in operation.name and bool(before and after) and before != after


def first_shards(report: Report, numbers: tuple[int, ...]) -> tuple[object, ...]:
    """Return how the first of some tensors is cut; nothing if it is not."""
    tensor = report.tensors.get(numbers[0]) if numbers else None
    sharding = sharding_in(tensor.memory) if tensor else None
    return (sharding, tensor.shard) if tensor and sharding else ()


#: Why rules about what runs inside operations cannot tell, without their graphs.
NO_GRAPHS: Final = "the report does not say what ran inside its operations"


def operation_name(report: Report, operation: Operation) -> str:
    """Return an operation as people call it: its name, its number and the shape of its input."""
    tensors = (report.tensors.get(number) for number in operation.inputs)
    shapes = [shape_text(tensor.shape) for tensor in tensors if tensor and tensor.shape]
    return " ".join([f"{operation.name} (operation {operation.id})", *shapes[:1]])


def has_graphs(report: Report) -> bool:
    """Tell whether a report says of any operation what ran inside it."""
    return any(operation.device_operations for operation in report.completed)


def budget_bytes(report: Report) -> int | None:
    """Return what a core has for tensors and circular buffers together; None where not told.

    A bank is smaller than that limit where a part of L1 was set aside when the device was opened.
    """
    sizes = [
        size
        for device in report.devices
        if device.cb_limit_bytes
        for size in (device.cb_limit_bytes, device.l1_bank_bytes)
        if size
    ]
    return min(sizes, default=None)


def used_bytes(operation: Operation) -> int:
    """Return what was alive in L1 at an operation, per core; a lower bound, as not all tell."""
    return operation.bytes_per_bank.get(BufferType.L1, 0) + (operation.cb_bytes_per_core or 0)


_TO_HOST: Final = frozenset({"to_torch", "from_device", "cpu", "copy_device_to_host_tensor"})
_TO_DEVICE: Final = frozenset({"from_torch", "to_device", "copy_host_to_device_tensor"})
_LAST_NAME: Final = re.compile(r"\w+$")
_NUMBER: Final = re.compile(r"\d+")
#: How releases call the argument that names a command queue.
_QUEUES: Final = ("cq_id", "queue_id")


class Crossing(NamedTuple):
    """A tensor on its way. ``queue`` is None where the call names no command queue."""

    operation: str
    tensor: Tensor
    outward: bool
    queue: int | None

    def __str__(self) -> str:
        return f"{self.operation} {shape_text(self.tensor.logical or self.tensor.padded)}"

    @property
    def sent(self) -> float:
        """The bytes that cross."""
        return size_of(self.tensor)

    @property
    def padding(self) -> float:
        """The bytes of them that are no data."""
        return self.sent * (1 - prod(self.tensor.logical or ()) / prod(self.tensor.padded))


def crossings(report: Report) -> list[Crossing]:
    """Return the tensors that cross, in the order of the calls; one of unknown size is left out."""
    return [
        Crossing(operation.name, tensor, _name(operation) in _TO_HOST, _queue(operation))
        for operation in report.completed
        for tensor in _tensors(operation, report)
        if tensor.dtype in BYTES and all(tensor.padded)
    ]


def is_transfer(operation: Operation) -> bool:
    """Tell whether an operation only brings a tensor to the host or to the device."""
    return _name(operation) in _TO_HOST | _TO_DEVICE


def _tensors(operation: Operation, report: Report) -> Iterator[Tensor]:
    """Yield what a transfer takes from a device or leaves there; nothing of another operation."""
    if not is_transfer(operation):
        return
    name = _name(operation)
    # A copy has both of its ends among its inputs.
    ids = operation.inputs if name in _TO_HOST or not operation.outputs else operation.outputs
    for tensor in map(device_tensor, map(report.tensors.get, dict.fromkeys(ids))):
        if tensor is not None:
            yield tensor


def _name(operation: Operation) -> str:
    found = _LAST_NAME.search(operation.name)
    return found[0] if found else ""


def _queue(operation: Operation) -> int | None:
    matches = (_NUMBER.search(operation.arguments.get(name, "")) for name in _QUEUES)
    return next((int(found[0]) for found in matches if found), None)


def dram_use(table: OpTable) -> float | None:
    """Return the share of the bandwidth that ops use, weighted by their time; None if unknown.

    An op that reads an unknown part of its operands counts as none of it, and so does one whose
    shapes are not its own.
    """
    time = kernel_ns(table)
    if board_of(table) is None or not time or not has_operands(table):
        return None
    return sum(line.kernel_ns * (line.dram_fraction or 0.0) for line in rooflines(table)) / time
