"""Activations in wider formats than they may need."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import size
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS, weights_by_row
from pytest_ttnn_perf.analysis.checklist.products import (
    unknown_chip,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
)
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, Bound, board_of, in_dram, rooflines
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Op, OpTable, Tensor

#: What ops that read and write DRAM as fast as they can are bound by.
_BY_DRAM: Final = frozenset({Bound.DRAM, Bound.BOTH})


@rule("TTP104", "activations-not-bfloat8", Severity.INFO, Input.OPS)
def activations_not_bfloat8(
    step: OpTable, *, share: Limit = Limit(0.02, "of a step", WORTH)
) -> Answer:
    """Ops that are bound by DRAM move activations in bfloat16.

    ## What it finds
    Ops that use most of the bandwidth of DRAM, and take or give activations in bfloat16 there: in
    long prompts and large images, mostly.

    ## Why it matters
    Such an op takes as long as moving its operands. As bfloat8_b they are 1.88 times smaller.

    ## What to do
    Ask ops for `dtype=ttnn.bfloat8_b` where the next op bears it: feed-forward layers, and
    convolutions between activations. Then check PCC again. Activations that fit into L1 are better
    kept there.

    ## What it saves
    The bytes saved, by the peak bandwidth of DRAM.

    ## When it is no problem
    Residual streams, recurrent states, norms and softmax, whose PCC needs bfloat16.

    ## Where it looks
    The operands, DEVICE ARCH and the kernel time of the op table, on the slowest device. Weights
    are left to TTP101, float32 to TTP102.
    """
    board = board_of(step)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    lines, weights = rooflines(step), weights_by_row(step)
    less = {
        row: sum(map(_saved_bytes, _activations(op, weights.get(row))))
        for row, op in critical_ops(step)
        if lines[row].bound in _BY_DRAM
    }
    saved = {row: each / board.dram_gb_s for row, each in less.items() if each}
    told = size(sum(less.values()))
    return check_savings(
        step,
        saved,
        share,
        sentence=f"as bfloat8_b, activations of ops that are bound by DRAM take {told} less",
        arithmetic=f"{told} ÷ {board.dram_gb_s:g} GB/s: {microseconds(sum(saved.values()))}",
    )


def _activations(op: Op, weights: Tensor | None) -> list[Tensor]:
    operands = (*op.signature.inputs, *op.signature.outputs)
    return [
        tensor
        for place, tensor in enumerate(operands)
        if in_dram(tensor) and tensor.dtype == "BFLOAT16" and not (place == 1 and weights)
    ]


def _saved_bytes(tensor: Tensor) -> float:
    return prod(tensor.padded) * (BYTES["BFLOAT16"] - BYTES["BFLOAT8_B"])
