"""Small op tables, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf.analysis.ops.align import attribute, group_ops
from pytest_ttnn_perf.analysis.ops.regions import Basis, Region, middle_lane, rows_by_device
from pytest_ttnn_perf.core.ops import Signature, Tensor
from tests.analysis.rules import tables as rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.analysis.ops.align import Attribution
    from pytest_ttnn_perf.core.ops import Op, OpGroups, OpTable

ACTIVATION = Tensor((1, 1, 32, 4096), (1, 1, 32, 4096), "TILE", "BFLOAT16", "L1_WIDTH_SHARDED")
WEIGHT = Tensor((1, 1, 4096, 1024), (1, 1, 4096, 1024), "TILE", "BFLOAT16", "DRAM_INTERLEAVED")
OUTPUT = ACTIVATION._replace(padded=(1, 1, 32, 1024), logical=(1, 1, 32, 1024))
#: Ops of three codes; the last has the operands of the second.
MATMUL = Signature("MatmulDeviceOperation", (ACTIVATION, WEIGHT), (OUTPUT,))
RESHARD = Signature("ReshardDeviceOperation", (OUTPUT,), (OUTPUT,))
NORM = Signature("LayerNormDeviceOperation", (OUTPUT,), (OUTPUT,))


def op(signature: Signature = MATMUL, kernel_ns: float = 10_000.0, **fields: Any) -> Op:
    """Return a row with a fidelity; ``fields`` as in the tables of rules."""
    fields = {"fidelity": "HiFi4", **fields}
    return rules.op(signature.op, signature.inputs, signature.outputs, ns=kernel_ns, **fields)


def table(ops: Iterable[Op]) -> OpTable:
    """Return the table of these rows, of an unknown board."""
    return rules.table(*ops, arch=None, available_cores=None)


def whole(of: OpTable) -> Region:
    """Return all of a table as one step."""
    return Region("", Basis.WHOLE, (rows_by_device(of, range(len(of))) or {0: ()},))


def changed(before: OpTable, after: OpTable) -> Attribution:
    """Attribute the change between all of two tables."""
    return attribute(before, after, (whole(before), whole(after)))


def grouped(of: OpTable) -> OpGroups:
    """Group all ops of a table."""
    return group_ops(of, middle_lane(of, whole(of)))


def resized(
    signature: Signature, *, padded: tuple[int, ...], logical: tuple[int, ...] | None
) -> Signature:
    """Return an op whose first input and only output have another shape."""
    first, *others = signature.inputs
    first = first._replace(padded=padded, logical=logical)
    return signature._replace(inputs=(first, *others), outputs=(first,))


def retyped(signature: Signature, dtype: str) -> Signature:
    """Return an op whose last input is of another dtype."""
    *others, last = signature.inputs
    return signature._replace(inputs=(*others, last._replace(dtype=dtype)))
