"""Activations in wider formats than they may need."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import size
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands
from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_OPERANDS,
    look_of,
    stale_signatures,
    weights_by_row,
)
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
#: Ops that write into a tensor that stays.
_COPIES: Final = re.compile(r"copy|cache|assign", re.IGNORECASE)


@rule("TTP104", "activations-not-bfloat8", Severity.INFO, Input.OPS)
def activations_not_bfloat8(
    step: OpTable, ops: OpTable, *, share: Limit = Limit(0.02, "of a step", WORTH)
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
    Residual streams, norms and softmax, whose PCC needs bfloat16. Recurrent states do as well, and
    do not count: what a step reads from before it, and copies back in the same shape.

    ## Where it looks
    The operands, DEVICE ARCH and the kernel time of the op table, on the slowest device. Weights
    are left to TTP101, float32 to TTP102. Ops with shapes that are not their own (TTP012), in any
    step of the region, do not count.
    """
    board = board_of(step)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    lines, weights = rooflines(step), weights_by_row(step)
    stale, states = stale_signatures(ops), _states(step)
    less = {
        row: sum(
            _saved_bytes(tensor)
            for tensor in _activations(op, weights.get(row))
            if _shape(tensor) not in states
        )
        for row, op in critical_ops(step)
        if lines[row].bound in _BY_DRAM and op.signature not in stale
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


def _states(step: OpTable) -> frozenset[tuple[int, ...]]:
    """Return the shapes of what a step takes from before it and copies back."""
    made: set[tuple[object, ...]] = set()
    taken: set[tuple[int, ...]] = set()
    copied: set[tuple[int, ...]] = set()
    for _, op in critical_ops(step):
        taken.update(_shape(each) for each in op.signature.inputs if look_of(each) not in made)
        if _COPIES.search(op.signature.op):
            copied.update(map(_shape, op.signature.outputs))
        made.update(map(look_of, op.signature.outputs))
    return frozenset(taken & copied)


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tensor.logical or tensor.padded


def _saved_bytes(tensor: Tensor) -> float:
    return prod(tensor.padded) * (BYTES["BFLOAT16"] - BYTES["BFLOAT8_B"])
