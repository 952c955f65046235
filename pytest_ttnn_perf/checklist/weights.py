"""Which tensors are weights: the second operand of a matmul or convolution, kept in DRAM.

The second operand of an attention's matmul is an activation. An op table has no names of tensors,
so what some op of the table gives is taken for an activation, as is what has a batch of its own.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.checklist.op_times import ops_like
from pytest_ttnn_perf.checklist.operands import device_tensor, in_tiles, used_signatures
from pytest_ttnn_perf.model.category import Category, category_of
from pytest_ttnn_perf.model.ops import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.model.ops import Op, OpTable, Signature
    from pytest_ttnn_perf.model.report import Operation, Report
    from pytest_ttnn_perf.model.subject import Subject

#: Ops that multiply with weights.
PRODUCTS: Final = frozenset({Category.MATMUL, Category.CONV})
#: Operations of a report that bring a tensor onto the device, or fill one, and compute nothing.
_LOADS: Final = re.compile(r"from_|as_tensor|load|to_device|ones|zeros|full|empty|rand|prepare")
#: The weights of a convolution, as an argument of it in a report.
_HOST_WEIGHTS: Final = re.compile(r"shape=Shape\(\[(\d+), (\d+), (\d+), (\d+)\]\)")
_NUMBER: Final = re.compile(r"tensor_id=(\d+)")


class Weight(NamedTuple):
    """A weight. ``key`` tells it from others: its id in a report, else only what it looks like."""

    key: object
    tensor: Tensor


def weights_in_table(table: OpTable) -> frozenset[Weight]:
    """Return the weights, those that look the same as one: a table does not tell them apart."""
    used = [signature for signature, _ in used_signatures(table)]
    given = {tensor for signature in used for tensor in signature.outputs}
    found = set()
    for signature in used:
        category = category_of(signature.op)
        if category not in PRODUCTS or len(signature.inputs) < 2:
            continue
        second = signature.inputs[1]
        activation = second in given or prod(second.padded[:-3]) > 1
        if _in_dram(second) and (category is Category.CONV or not activation):
            found.add(Weight(second, second))
    return frozenset(found)


def weights_in_report(report: Report) -> frozenset[Weight]:
    """Return the weights, each once."""
    operations = {operation.id: operation for operation in report.operations}
    computed = {
        edge.tensor
        for edge in report.edges
        if not _LOADS.search(operations[edge.producer].name.rpartition(".")[2])
    }
    found: set[Weight] = set()
    for operation in report.operations:
        if operation.conv is not None:
            found.update(_of_convolution(operation))
        elif _runs_product(operation) and len(operation.inputs) > 1:
            number = operation.inputs[1]
            tensor = device_tensor(report.tensors.get(number))
            if tensor is not None and _in_dram(tensor) and number not in computed:
                found.add(Weight(number, tensor))
    return frozenset(found)


def products_in(table: OpTable) -> Sequence[Op]:
    """Return the matmuls and convolutions."""
    return ops_like(table, _is_product)


def operands_of_products(subject: Subject) -> list[int]:
    """Return how many operands are told of each matmul and convolution."""
    calls = subject.report.operations if subject.report is not None else ()
    used = used_signatures(subject.ops) if subject.ops is not None else ()
    return [
        *(len(call.inputs) for call in calls if _runs_product(call)),
        *(len(one.inputs) for one, _ in used if _is_product(one)),
    ]


def _is_product(signature: Signature) -> bool:
    return category_of(signature.op) in PRODUCTS


def _runs_product(operation: Operation) -> bool:
    names = (operation.name, *operation.device_operations)
    return any(category_of(name.rpartition(".")[2]) in PRODUCTS for name in names)


def _of_convolution(operation: Operation) -> Iterator[Weight]:
    """Yield the weights that a convolution lays out on the device, in the format asked for."""
    text = operation.arguments.get("weight_tensor", "")
    shape, number = _HOST_WEIGHTS.search(text), _NUMBER.search(text)
    if shape is not None and operation.conv is not None and operation.conv.weights_dtype:
        outputs, inputs, height, width = map(int, shape.groups())
        logical = (1, 1, inputs * height * width, outputs)
        dtype = operation.conv.weights_dtype
        tensor = Tensor(in_tiles(logical), logical, "TILE", dtype, "DRAM_INTERLEAVED")
        yield Weight(number[1] if number else operation.id, tensor)


def _in_dram(tensor: Tensor) -> bool:
    return tensor.memory.startswith("DRAM")
