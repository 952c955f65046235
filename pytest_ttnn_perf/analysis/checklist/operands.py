"""Tensors that ops take and give: weights, activations, shards, L1 and DRAM."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.savings import (
    device_ops,
    has_operands,
    kernel_ns,
    op_name,
    signature_numbers,
)
from pytest_ttnn_perf.analysis.ops.names import shape_text
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.analysis.ops.roofline import board_of, in_dram, rooflines, size_of
from pytest_ttnn_perf.analysis.readers.report_db import (
    BufferType,
    Reshard,
    device_tensor,
    in_tiles,
)
from pytest_ttnn_perf.core.finding import TOO_SMALL, Answer, Evidence, Limit, RuleOutcome
from pytest_ttnn_perf.core.ops import Category, Tensor, category_of
from pytest_ttnn_perf.core.text import size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.readers.report_db import Edge, Operation, Report
    from pytest_ttnn_perf.core.finding import Subject
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature


#: Why rules about tensors cannot tell, with a capture that names none.
NO_OPERANDS: Final = "the capture says nothing about the tensors that ops take and give"
#: What a report, which tells no times, must name to be worth advice.
WORTH_BYTES: Final = Limit(
    576_000, "B", "the DRAM of a Wormhole moves them in 2 µs, as long as launching an op takes"
)


def if_worth(answer: Answer, moved: float, worth: Limit, *, where: str = "DRAM") -> Answer:
    """Return a finding on that many bytes, or a clean answer."""
    if answer.outcome is not RuleOutcome.FOUND or moved >= worth.value:
        return answer
    reason = f"{TOO_SMALL}: saves {size(moved)} in {where}"
    return Answer.clean(answer.value, limit=answer.limit, unit=answer.unit, reason=reason)


#: Calls that only bring a tensor to the host, or to the device.
TO_HOST: Final = frozenset({"to_torch", "from_device", "cpu", "copy_device_to_host_tensor"})
TO_DEVICE: Final = frozenset({"from_torch", "to_device", "copy_host_to_device_tensor"})


def last_name(operation: Operation) -> str:
    """Return the name of an operation without its namespaces."""
    return re.split(r"\W", operation.name)[-1]


class Operand(NamedTuple):
    """A tensor that ``times`` ops take or, if ``given``, give."""

    op: str
    tensor: Tensor
    times: int
    given: bool
    number: int | None = None

    @property
    def size(self) -> float:
        """The bytes of all of them, with padding; 0 if unknown."""
        return self.times * size_of(self.tensor)


def operands_of(subject: Subject) -> Sequence[Operand]:
    """Return the operands of the op table, or else of the report."""
    found = _in_table(subject.ops) if subject.ops is not None else ()
    return found or (tuple(_in_report(subject.report)) if subject.report is not None else ())


@once_per_table
def used_signatures(table: OpTable) -> Sequence[tuple[Signature, int]]:
    """Return the signatures of device ops with their counts."""
    counts = Counter(signature_numbers(table))
    return tuple((table.signatures[number], count) for number, count in counts.items())


def by_weight(
    weights: Iterable[tuple[str, float]], *, unit: str, of: float | None = None
) -> Iterator[Evidence]:
    """Yield evidence by text with summed weights, heaviest first."""
    totals: dict[str, float] = defaultdict(float)
    for text, weight in weights:
        totals[text] += weight
    for text in sorted(totals, key=lambda text: (-totals[text], text)):
        yield Evidence(text, totals[text], unit, totals[text] / of if of else None)


@once_per_table
def _in_table(table: OpTable) -> Sequence[Operand]:
    return tuple(
        Operand(signature.code, tensor, count, given)
        for signature, count in used_signatures(table)
        for tensors, given in ((signature.inputs, False), (signature.outputs, True))
        for tensor in tensors
    )


def _in_report(report: Report) -> Iterator[Operand]:
    for call in report.completed:
        for ids, given in ((call.inputs, False), (call.outputs, True)):
            for number in ids:
                tensor = device_tensor(report.tensors.get(number))
                if tensor is not None:
                    yield Operand(call.name, tensor, 1, given, number)


@once_per_table
def stale_signatures(table: OpTable) -> frozenset[Signature]:
    """Return the signatures of ops that are too fast for their shapes."""
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
    """A weight; ``key`` is its id in a report, else its look."""

    key: object
    tensor: Tensor


#: Ops that leave the values of their operand as they are: what they make of a weight is a weight.
_CONVERTS: Final = re.compile(
    r"tilize|to_?layout|to_memory_config|to_dtype|typecast|copy|move|clone|interleaved_?to|"
    r"sharded_?to|reshard|permute|transpose|reshape|view|pad|slice|split|concat|repeat|squeeze",
    re.IGNORECASE,
)


@once_per_table
def weights_by_row(table: OpTable) -> Mapping[int, Tensor]:
    """Return the weights that products read from DRAM, by row.

    A capture does not name tensors. The second operand of a convolution is always a weight, that
    of a matmul unless it looks like what an op before it computed on the same device, as in
    attention, or has a matrix for each head of each user, as a state. What ops make of a tensor
    that none of them computed, by tilizing, converting or moving it, was not computed either: that
    is how weights are loaded.
    """
    columns = table.columns
    computed: dict[int, set[tuple[object, ...]]] = defaultdict(set)
    found: dict[int, Tensor] = {}
    for row, (number, device) in enumerate(zip(columns.signature, columns.device, strict=True)):
        if columns.host[row]:
            continue
        signature, known = table.signatures[number], computed[device]
        category = signature.category
        if category in PRODUCTS and len(signature.inputs) > 1:
            second = signature.inputs[1]
            given = prod(second.padded[:-3]) == 1 and look_of(second) not in known
            if in_dram(second) and (category is Category.CONV or given):
                found[row] = second
        # Weights are loaded to DRAM: what lies in L1 at the beginning is an activation.
        loads = _CONVERTS.search(signature.op) is not None and all(
            in_dram(tensor) and look_of(tensor) not in known for tensor in signature.inputs
        )
        if category in PRODUCTS or not loads:
            known.update(map(look_of, signature.outputs))
    return found


def look_of(tensor: Tensor) -> tuple[object, ...]:
    """Return the look of a tensor: shape, format and memory."""
    return (tensor.padded, tensor.dtype, tensor.memory)


def weights_in_table(table: OpTable) -> frozenset[Weight]:
    """Return the weights; alike ones count once."""
    return frozenset(Weight(tensor, tensor) for tensor in set(weights_by_row(table).values()))


def computed_in_report(report: Report) -> frozenset[int]:
    """Return the ids of computed tensors, without weights."""
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
    """Count the operands of each matmul and convolution."""
    calls = subject.report.completed if subject.report is not None else ()
    used = used_signatures(subject.ops) if subject.ops is not None else ()
    return [
        *(len(call.inputs) for call in calls if runs_product(call)),
        *(len(one.inputs) for one, _ in used if is_product(one)),
    ]


def is_product(signature: Signature) -> bool:
    """Return whether an op is a matmul or a convolution."""
    return signature.category in PRODUCTS


def runs_product(operation: Operation) -> bool:
    """Return whether an operation runs a matmul or a convolution."""
    names = (operation.name, *operation.device_operations)
    return any(category_of(name.rpartition(".")[2]) in PRODUCTS for name in names)


def _of_convolution(operation: Operation) -> Iterator[Weight]:
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


@once_per_table
def activation_reads(table: OpTable) -> Sequence[tuple[Op, tuple[Tensor, ...]]]:
    """Return device ops with the inputs that earlier ops made.

    A capture does not name tensors: one that looks like an earlier output of the same device is
    taken for it. Weights are never an output. Caches, which ops write in place and which stay where
    they are, do not count.
    """
    caches = {
        look_of(tensor)
        for signature, _ in used_signatures(table)
        if _CACHE.search(signature.op)
        for tensor in signature.outputs
    }
    made: dict[int, set[tuple[object, ...]]] = defaultdict(set)
    found = []
    for op in device_ops(table):
        on_device = made[op.device]
        inputs, outputs = op.signature.inputs, op.signature.outputs
        found.append((op, tuple(each for each in inputs if look_of(each) in on_device)))
        on_device.update(set(map(look_of, outputs)) - caches)
    return tuple(found)


def activation_operands(subject: Subject) -> Iterator[Operand]:
    """Yield the activations that ops of a table, or report, read."""
    if subject.ops is not None:
        for op, activations in activation_reads(subject.ops):
            yield from (Operand(op_name(op), tensor, 1, given=False) for tensor in activations)
    elif subject.report is not None:
        names = {operation.id: operation.name for operation in subject.report.operations}
        for edge, tensor in activation_edges(subject.report):
            ends = f"{names[edge.producer]} → {names[edge.consumer]}"
            yield Operand(f"{ends} {shape_text(tensor.shape)}", tensor, 1, given=False)


def activation_edges(report: Report) -> Iterator[tuple[Edge, Tensor]]:
    """Yield the tensors that pass from one operation to another."""
    computing = {operation.id for operation in report.completed if operation.device_operations}
    for edge in report.edges:
        tensor = device_tensor(report.tensors.get(edge.tensor))
        if tensor is not None and {edge.producer, edge.consumer} <= computing:
            yield edge, tensor


def sharding_in(memory: str | None) -> str | None:
    """Return how a memory layout cuts tensors; None where it does not.

    >>> sharding_in("L1_HEIGHT_SHARDED"), sharding_in("DRAM_INTERLEAVED")
    ('HEIGHT', None)
    """
    found = _SHARDING.search(memory or "")
    return None if found is None else found[1]


def reshards(report: Report, operation: Operation) -> bool:
    """Return whether an operation changes the sharding of a tensor."""
    if operation.reshard is not Reshard.UNKNOWN:
        return operation.reshard is not Reshard.NONE
    before, after = first_shards(report, operation.inputs), first_shards(report, operation.outputs)
    return "memory_config" in operation.name and bool(before and after) and before != after


def first_shards(report: Report, numbers: tuple[int, ...]) -> tuple[object, ...]:
    """Return the shards of the first tensor; empty if interleaved."""
    tensor = report.tensors.get(numbers[0]) if numbers else None
    sharding = sharding_in(tensor.memory) if tensor else None
    return (sharding, tensor.shard) if tensor and sharding else ()


#: Why rules about what runs inside operations cannot tell, without their graphs.
NO_GRAPHS: Final = "the report does not say what ran inside its operations"


def operation_name(report: Report, operation: Operation) -> str:
    """Return the name, number and first shape of an operation."""
    tensors = (report.tensors.get(number) for number in operation.inputs)
    shapes = [shape_text(tensor.shape) for tensor in tensors if tensor and tensor.shape]
    return " ".join([f"{operation.name} (operation {operation.id})", *shapes[:1]])


def budget_bytes(report: Report) -> int | None:
    """L1 of a core for tensors and circular buffers; None if unknown.

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


def l1_of_operations(report: Report) -> list[tuple[Operation, int]]:
    """Return the bytes in L1 of a core, by operation that ran."""
    return [
        (each, each.bytes_per_bank.get(BufferType.L1, 0) + (each.cb_bytes_per_core or 0))
        for each in report.operations
        if each.device_operations
    ]


def dram_use(table: OpTable) -> float | None:
    """Share of the DRAM bandwidth in use; None if unknown."""
    time = kernel_ns(table)
    if board_of(table) is None or not time or not has_operands(table):
        return None
    return sum(line.kernel_ns * (line.dram_fraction or 0.0) for line in rooflines(table)) / time
