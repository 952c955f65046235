"""Where activations are, which one op makes and another reads; L1, DRAM and host transfers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.op_times import (
    device_ops,
    has_operands,
    kernel_ns,
    op_name,
    signature_numbers,
)
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.analysis.ops.roofline import board_of, in_dram, rooflines, size_of
from pytest_ttnn_perf.analysis.readers.report_db import BufferType, Reshard, device_tensor, in_tiles
from pytest_ttnn_perf.core.finding import Answer, Evidence, Limit, RuleOutcome
from pytest_ttnn_perf.core.ops import Category, Tensor, category_of
from pytest_ttnn_perf.core.text import size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.readers.report_db import Edge, Operation, Report
    from pytest_ttnn_perf.core.finding import Subject
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature


# The tensors that ops take and give, from an op table or from a report, and what they weigh.

#: Why rules about tensors cannot tell, with a capture that names none.
NO_OPERANDS: Final = "the capture says nothing about the tensors that ops take and give"
#: What a report, which tells no times, must name to be worth advice.
WORTH_BYTES: Final = Limit(
    576_000, "B", "the DRAM of a Wormhole moves them in 2 µs, as long as launching an op takes"
)


def if_worth(answer: Answer, moved: float, worth: Limit, *, where: str = "DRAM") -> Answer:
    """Return a finding only where that many bytes are worth advice: else it is clean."""
    if answer.outcome is not RuleOutcome.FOUND or moved >= worth.value:
        return answer
    reason = f"{size(moved)} in all: too little to matter in {where}"
    return Answer.clean(answer.value, limit=answer.limit, unit=answer.unit, reason=reason)


#: Calls that only bring a tensor to the host, or to the device.
TO_HOST: Final = frozenset({"to_torch", "from_device", "cpu", "copy_device_to_host_tensor"})
TO_DEVICE: Final = frozenset({"from_torch", "to_device", "copy_host_to_device_tensor"})


def last_name(operation: Operation) -> str:
    """Return the name of an operation without its namespaces."""
    return re.split(r"\W", operation.name)[-1]


class Operand(NamedTuple):
    """A tensor that an op takes or, if ``given``, gives; ``times`` ops do so alike.

    ``number`` is its id in a report; an op table does not tell tensors apart.
    """

    op: str
    tensor: Tensor
    times: int
    given: bool
    number: int | None = None

    @property
    def size(self) -> float:
        """The bytes of all of them, padding included; 0 for a format of unknown size."""
        return self.times * size_of(self.tensor)


def operands_of(subject: Subject) -> Sequence[Operand]:
    """Return the operands that the op table tells, or else the report."""
    found = _in_table(subject.ops) if subject.ops is not None else ()
    return found or (tuple(_in_report(subject.report)) if subject.report is not None else ())


@once_per_table
def used_signatures(table: OpTable) -> Sequence[tuple[Signature, int]]:
    """Return the signatures of the ops that ran on a device, and how many have each."""
    counts = Counter(signature_numbers(table))
    return tuple((table.signatures[number], count) for number, count in counts.items())


def by_weight(
    weights: Iterable[tuple[str, float]], *, unit: str, of: float | None = None
) -> Iterator[Evidence]:
    """Yield evidence with the weights of the same text added up, the heaviest first.

    They are shares ``of`` a whole, where one is given.
    """
    totals: dict[str, float] = defaultdict(float)
    for text, weight in weights:
        totals[text] += weight
    for text in sorted(totals, key=lambda text: (-totals[text], text)):
        yield Evidence(text, totals[text], unit, totals[text] / of if of else None)


def shape_text(shape: Iterable[int]) -> str:
    """Return a shape as people write it.

    >>> shape_text((1, 1, 32, 64))
    '1x1x32x64'
    """
    return "x".join(map(str, shape))


@once_per_table
def _in_table(table: OpTable) -> Sequence[Operand]:
    return tuple(
        Operand(signature.code, tensor, count, given)
        for signature, count in used_signatures(table)
        for tensors, given in ((signature.inputs, False), (signature.outputs, True))
        for tensor in tensors
    )


def _in_report(report: Report) -> Iterator[Operand]:
    for operation in report.completed:
        for ids, given in ((operation.inputs, False), (operation.outputs, True)):
            for number in ids:
                tensor = device_tensor(report.tensors.get(number))
                if tensor is not None:
                    yield Operand(operation.name, tensor, 1, given, number)


@once_per_table
def stale_signatures(table: OpTable) -> frozenset[Signature]:
    """Return the signatures of ops that are too fast for their shapes, in any step of a table."""
    lines = rooflines(table)
    numbers = {table.columns.signature[row] for row, line in enumerate(lines) if line.stale}
    return frozenset(table.signatures[number] for number in numbers)


#: Ops that multiply with weights.
PRODUCTS: Final = frozenset({Category.MATMUL, Category.CONV})
#: Operations of a report that bring a tensor onto the device, or fill one, and compute nothing.
_LOADS: Final = re.compile(r"from_|as_tensor|load|to_device|ones|zeros|full|empty|rand|prepare")
#: The weights of a convolution, as an argument of it in a report.
_HOST_WEIGHTS: Final = re.compile(r"shape=Shape\(\[(\d+), (\d+), (\d+), (\d+)\]\)")
_OPERANDS_NUMBER: Final = re.compile(r"tensor_id=(\d+)")


class Weight(NamedTuple):
    """A weight. ``key`` tells it from others: its id in a report, else only what it looks like."""

    key: object
    tensor: Tensor


#: Ops that leave the values of their operand as they are: what they make of a weight is a weight.
_CONVERTS: Final = re.compile(
    r"tilize|to_?layout|to_memory_config|to_dtype|typecast|copy|move|clone|interleaved_?to|"
    r"sharded_?to|reshard|permute|transpose|reshape|view|pad|slice|split|concat|repeat|squeeze",
    re.IGNORECASE,
)


def weights_by_row(table: OpTable) -> Mapping[int, Tensor]:
    """Return the weights that matmuls and convolutions read from DRAM, by the row of these.

    A capture does not name tensors. The second operand of a convolution is always a weight, that
    of a matmul unless it looks like what an op before it computed on the same device, as in
    attention, or has a matrix for each head of each user, as a state. What ops make of a tensor
    that none of them computed, by tilizing, converting or moving it, was not computed either: that
    is how weights are loaded.
    """
    return _followed(table).weights


def loading_rows(table: OpTable) -> frozenset[int]:
    """Return the rows that only convert or move what no op before them computed, as weights."""
    return _followed(table).loading


class _Followed(NamedTuple):
    weights: Mapping[int, Tensor]
    loading: frozenset[int]


@once_per_table
def _followed(table: OpTable) -> _Followed:
    columns = table.columns
    computed: dict[int, set[tuple[object, ...]]] = defaultdict(set)
    found: dict[int, Tensor] = {}
    loading: set[int] = set()
    for row, (number, device) in enumerate(zip(columns.signature, columns.device, strict=True)):
        if columns.host[row]:
            continue
        signature, known = table.signatures[number], computed[device]
        category = signature.category
        if category in PRODUCTS and len(signature.inputs) > 1:
            second = signature.inputs[1]
            if in_dram(second) and (category is Category.CONV or _is_weight(second, known)):
                found[row] = second
        if category not in PRODUCTS and _only_converts(signature, known):
            loading.add(row)
        else:
            known.update(map(look_of, signature.outputs))
    return _Followed(found, frozenset(loading))


def _is_weight(second: Tensor, computed: set[tuple[object, ...]]) -> bool:
    return prod(second.padded[:-3]) == 1 and look_of(second) not in computed


def look_of(tensor: Tensor) -> tuple[object, ...]:
    """Return what a capture tells tensors apart by; views of one may have other logical shapes."""
    return (tensor.padded, tensor.dtype, tensor.memory)


def _only_converts(signature: Signature, computed: set[tuple[object, ...]]) -> bool:
    # Weights are loaded to DRAM: what lies in L1 at the beginning is an activation.
    return _CONVERTS.search(signature.op) is not None and all(
        in_dram(tensor) and look_of(tensor) not in computed for tensor in signature.inputs
    )


def weights_in_table(table: OpTable) -> frozenset[Weight]:
    """Return the weights, those that look the same as one: a table does not tell them apart."""
    return frozenset(Weight(tensor, tensor) for tensor in set(weights_by_row(table).values()))


def computed_in_report(report: Report) -> frozenset[int]:
    """Return the tensors that operations computed: no weights, and nothing made of these alone."""
    computed: set[int] = set()
    for operation in report.completed:
        name = operation.name.rpartition(".")[2]
        loaded = _LOADS.search(name) is not None or (
            _CONVERTS.search(name) is not None and computed.isdisjoint(operation.inputs)
        )
        if not loaded:
            computed.update(operation.outputs)
    return frozenset(computed)


def weights_in_report(report: Report) -> frozenset[Weight]:
    """Return the weights, each once."""
    computed = computed_in_report(report)
    found: set[Weight] = set()
    for operation in report.completed:
        if operation.conv is not None:
            found.update(_of_convolution(operation))
        elif runs_product(operation) and len(operation.inputs) > 1:
            number = operation.inputs[1]
            tensor = device_tensor(report.tensors.get(number))
            if tensor is not None and in_dram(tensor) and number not in computed:
                found.add(Weight(number, tensor))
    return frozenset(found)


def operands_of_products(subject: Subject) -> list[int]:
    """Return how many operands are told of each matmul and convolution."""
    calls = subject.report.completed if subject.report is not None else ()
    used = used_signatures(subject.ops) if subject.ops is not None else ()
    return [
        *(len(call.inputs) for call in calls if runs_product(call)),
        *(len(one.inputs) for one, _ in used if is_product(one)),
    ]


def is_product(signature: Signature) -> bool:
    """Tell whether an op is a matmul or a convolution."""
    return signature.category in PRODUCTS


def runs_product(operation: Operation) -> bool:
    """Tell whether an operation of a report runs a matmul or a convolution."""
    names = (operation.name, *operation.device_operations)
    return any(category_of(name.rpartition(".")[2]) in PRODUCTS for name in names)


def _of_convolution(operation: Operation) -> Iterator[Weight]:
    """Yield the weights that a convolution lays out on the device, in the format asked for."""
    text = operation.arguments.get("weight_tensor", "")
    shape, number = _HOST_WEIGHTS.search(text), _OPERANDS_NUMBER.search(text)
    if shape is not None and operation.conv is not None and operation.conv.weights_dtype:
        outputs, inputs, height, width = map(int, shape.groups())
        logical = (1, 1, inputs * height * width, outputs)
        dtype = operation.conv.weights_dtype
        tensor = Tensor(in_tiles(logical), logical, "TILE", dtype, "DRAM_INTERLEAVED")
        yield Weight(number[1] if number else operation.id, tensor)


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
            shape = shape_text(tensor.shape)
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
        shape = shape_text(self.there.shape)
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


def dram_use(table: OpTable) -> float | None:
    """Return the share of the bandwidth that ops use, weighted by their time; None if unknown.

    An op that reads an unknown part of its operands counts as none of it, and so does one whose
    shapes are not its own.
    """
    time = kernel_ns(table)
    if board_of(table) is None or not time or not has_operands(table):
        return None
    return sum(line.kernel_ns * (line.dram_fraction or 0.0) for line in rooflines(table)) / time
