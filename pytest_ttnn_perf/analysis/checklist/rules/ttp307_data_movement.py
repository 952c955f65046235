"""Time spent on ops that only rearrange data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.removals import advice_for, check_removals, removable
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import critical_ops, step_ns
from pytest_ttnn_perf.analysis.ops.conversions import neighbours
from pytest_ttnn_perf.analysis.ops.roofline import rooflines
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of, short_code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.analysis.checklist.removals import Removal
    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.records.ops import OpTable, Signature

#: Of what moves data, what is not to be avoided by other shapes: reshards are for TTP302, Halo and
#: slices into DRAM belong to convolutions, lookups and sampling do the work of the model.
_OTHER: Final = re.compile(
    r"reshard|interleaved_?to|sharded_?to|copy|clone|halo|padded_?slice|slice_?write|embedding|"
    r"gather|scatter|sample|non_?zero",
    re.IGNORECASE,
)
#: A concat that uses so much of the bandwidth does what has to be done, as fast as it can.
_FULL: Final = 0.5


@rule("TTP307", "data-movement", Severity.WARNING, Input.OPS)
def data_movement(
    step: OpTable,
    *,
    share: Limit = Limit(0.05, "of a step", "some movement stays; decode models: 0 to 3 %"),
) -> Answer:
    """Much of a step only rearranges data.

    ## What it finds
    The part of a step in ops that compute nothing: reshape, slice, concat, transpose, permute, pad,
    fill, repeat, move. Reshards and copies between memories are for TTP302, conversions of the
    layout for TTP203. Halo and the slices of convolutions, embeddings and gathers do not count.

    ## Why it matters
    Each of these reads and writes a whole tensor. In tiles, a reshape that changes the last two
    extents takes every tile apart.

    ## What to do
    Choose shapes that ops take as they come: merge heads and batch with the ops made for that, keep
    the last two extents in a reshape, and transpose weights once when they are loaded instead of
    activations in each step. Drop `ttnn.move`, and set `reallocate_halo_output=False` where memory
    is not that scarce. Split a weight where its product is only cut apart. Concatenate parts that
    are sharded alike, in the memory where they are.

    ## What it saves
    The time of these ops and, inside replays, the gaps before them, if all can go.

    ## When it is no problem
    Models that rearrange by design, such as windows in attention. Count what is left after each
    change. A concat that uses half of the bandwidth of DRAM or more does not count: two tensors
    have to become one. Nor does what rearranges an input from the host, or begins or ends a step,
    unless it takes more than ten times its bytes by the bandwidth of DRAM.

    ## Where it looks
    OP CODE and the kernel time of the op table, on the slowest device.
    """
    ops = critical_ops(step)
    if all(_rearranges(op.signature) for _, op in ops):
        return Answer.not_applicable("a step that does nothing else")
    lines = rooflines(step)
    moves = {
        row: each
        for row, each in removable(step, _rearranges).items()
        if not _fills_the_bandwidth(step, row, lines[row])
    }
    took, count = sum(each.saved_ns for each in moves.values()), counted(len(moves), "op")
    return check_removals(
        step,
        moves,
        share,
        noun="op",
        sentence=f"{percent(took / (step_ns(step) or 1.0))} of a step only rearranges data, in "
        f"{count}",
    ).with_fix(_advice(step, moves))


def _rearranges(signature: Signature) -> bool:
    code = short_code(signature.op)
    return category_of(signature.op) is Category.MOVEMENT and not _OTHER.search(code)


def _fills_the_bandwidth(step: OpTable, row: int, line: Roofline) -> bool:
    """Tell whether an op makes one tensor of several as fast as DRAM allows."""
    code = short_code(step.signatures[step.columns.signature[row]].op)
    return "concat" in code.lower() and (line.dram_fraction or 0.0) >= _FULL


#: What to do about an op, by the beginning of its code.
_ADVICE: Final = {
    "Move": "drop `ttnn.move`, which only makes room",
    "Concat": "concatenate parts that are sharded alike, in the memory where they are",
    "Permute": "keep the order of extents that the next op takes, or permute weights once",
    "Transpose": "let the matmul transpose (`transpose_a`, `transpose_b`), or transpose weights "
    "once",
    "Reshape": "keep the last two extents in a reshape: then it is a view and costs nothing",
    "FillPad": "pad the weights or the input once, so that nothing has to be filled in each step",
    "Fill": "fill tensors once, outside of the step",
    "Full": "fill tensors once, outside of the step",
    "Pad": "pad the input once, outside of the model",
    "Repeat": "let the next op broadcast instead of repeating",
    "Slice": "cut what is sliced before it is computed, or give the next op its part alone",
    "Split": "split the weights, so that a matmul gives each part",
}
_AFTER_MATMUL: Final = "split the weights whose product is cut apart, so that no slice is needed"
_AFTER_HALO: Final = "set `reallocate_halo_output=False` in `Conv2dConfig`, which leaves out moves"
#: Ops that only arrange the heads of a product: what is cut behind them was one.
_OF_PRODUCT: Final = re.compile(r"matmul|linear|heads", re.IGNORECASE)


def _advice(step: OpTable, moves: Mapping[int, Removal]) -> str:
    ops = critical_ops(step)
    signatures = [placed.op.signature for placed in ops]
    weights: list[tuple[str, float]] = []
    for at, (row, op) in enumerate(ops):
        if row in moves:
            code = short_code(op.signature.op)
            advice = next((text for key, text in _ADVICE.items() if code.startswith(key)), "")
            before = neighbours(at, len(ops), signatures.__getitem__)[0]
            producer = "" if before is None else short_code(signatures[before].op)
            if code.startswith("Slice") and _OF_PRODUCT.search(producer):
                advice = _AFTER_MATMUL
            if code.startswith("Move") and producer.startswith("Halo"):
                advice = _AFTER_HALO
            weights.append((advice, moves[row].saved_ns))
    return advice_for(weights)
