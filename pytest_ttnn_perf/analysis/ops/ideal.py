"""The least time that a step can take on its chip: below it only less work gets.

Of every matmul, convolution and attention: its weights are read from DRAM once, in bfloat8_b unless
they are narrower, or all cores of the chip compute its products at LoFi, whichever takes longer.
All else may be fused, stay in L1, or go, and counts nothing. So do weights of several matrices,
as experts have them, of which not all need be computed.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.ops.roofline import (
    BYTES,
    board_of,
    board_of_arch,
    in_dram,
    rooflines,
    work_of,
)
from pytest_ttnn_perf.records.ops import Category, category_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.records.ops import OpGroups, OpTable, Signature, Tensor

_NARROW: Final = BYTES["BFLOAT8_B"]
_WITH_WEIGHTS: Final = frozenset({Category.MATMUL, Category.CONV})
_LOWEST: Final = "LoFi"


def ideal_of_step(step: OpTable) -> float | None:
    """Return the least time of a step in ns; None where nothing tells it.

    Its work is spread evenly over its devices.
    """
    board, columns = board_of(step), step.columns
    if board is None or not step.devices:
        return None
    seen = [cores for cores in columns.cores if cores is not None]
    cores = max([*seen, step.available_cores or 0])
    known: dict[int, float] = {}
    whole = 0.0
    for row, line in enumerate(rooflines(step)):
        if columns.host[row] or line.stale:
            continue
        number = columns.signature[row]
        if number not in known:
            known[number] = _ideal_ns(board, step.signatures[number], cores)
        whole += min(known[number], columns.kernel_ns[row])
    return whole / len(step.devices) or None


def ideal_of_groups(groups: OpGroups, arch: str | None) -> float | None:
    """Return the same of what a run record keeps of a step."""
    board = board_of_arch(arch)
    if board is None:
        return None
    cores = max((group.cores or 0 for group in groups.groups), default=0)
    times = (
        min(_ideal_ns(board, group.signature, cores) * group.count, group.total_ns)
        for group in groups.groups
    )
    return sum(times) or None


def _ideal_ns(board: Board, signature: Signature, cores: int) -> float:
    category = category_of(signature.op)
    if category not in {*_WITH_WEIGHTS, Category.ATTENTION} or len(signature.inputs) < 2:
        return 0.0
    weights = signature.inputs[1]
    if category is Category.MATMUL and prod(_shape(weights)[:-2]) > 1:
        return 0.0
    reading = 0.0
    if category in _WITH_WEIGHTS and in_dram(weights) and "sparse" not in signature.op.lower():
        element = min(BYTES.get(weights.dtype, 0.0), _NARROW)
        reading = prod(_shape(weights)) * element / board.dram_gb_s
    flops = (work_of(signature).flops or 0.0) * _without_padding(signature)
    return max(reading, flops / (board.tflops[_LOWEST] * 1000 * cores) if cores else 0.0)


def _without_padding(signature: Signature) -> float:
    """Return the part of the products that is no padding of rows."""
    of = (signature.outputs or signature.inputs)[0]
    padded = prod(of.padded)
    return min(1.0, prod(_shape(of)) / padded) if padded else 0.0


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tensor.logical or tensor.padded
