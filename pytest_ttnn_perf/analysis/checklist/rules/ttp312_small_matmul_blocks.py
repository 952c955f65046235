"""Matmuls that work in blocks of a single tile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.captures.report_calls import TILE
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import NO_MATMULS, is_matmul, whole
from pytest_ttnn_perf.analysis.checklist.op_times import ops_like, share_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Op, OpTable


@rule("TTP312", "small-matmul-blocks", Severity.WARNING, Input.OPS)
def small_matmul_blocks(
    ops: OpTable,
    *,
    share: Limit = Limit(0.05, "of kernel time", "a judgement: less is not worth it"),
    inner: Limit = Limit(2, "tiles", "tt-perf-report 1.4: in0_block_w below 2"),
    subblock: Limit = Limit(2, "tiles", "tt-perf-report 1.4: out_subblock below 2"),
) -> Answer:
    """Matmuls work in very small blocks.

    ## What it finds
    The share of the kernel time in matmuls whose inner block, `in0_block_w`, or output subblock,
    `out_subblock_h` times `out_subblock_w`, is smaller than two tiles although the matmul has more
    tiles to put there.

    ## Why it matters
    Every block costs a round of waiting for data and of setting up the engine. With one tile at a
    time, most of the time goes there.

    ## What to do
    Raise `in0_block_w` to a larger divisor of the inner dimension in tiles, and the subblock to up
    to eight tiles, or four with `fp32_dest_acc_en`.

    ## When it is no problem
    A sharded first input limits `in0_block_w` to a divisor of its shard's width, and blocks have to
    fit into L1.

    ## Where it looks
    The program config in ATTRIBUTES, the shape of the first input, and the kernel time of the op
    table.
    """
    matmuls = ops_like(ops, is_matmul)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    if all(_inner(op) is None and _subblock(op) is None for op in matmuls):
        return Answer.not_measured("the attributes of matmuls do not tell the sizes of blocks")
    small = [
        op
        for op in matmuls
        if _is_narrow(op, inner.value) or _has_small_subblocks(op, subblock.value)
    ]
    part = share_of(ops, small)
    return part.at_most(share, f"{part.sentence('matmul')} with very small blocks")


def _is_narrow(op: Op, least: float) -> bool:
    inner = _inner(op)
    shape = op.signature.inputs[0].padded if op.signature.inputs else ()
    can_be_wide = not shape or shape[-1] > TILE
    return inner is not None and inner < least and can_be_wide


def _has_small_subblocks(op: Op, least: float) -> bool:
    subblock = _subblock(op)
    outputs = [whole(op.attributes, key) for key in ("per_core_M", "per_core_N")]
    can_be_large = outputs != [1, 1]
    return subblock is not None and subblock < least and can_be_large


def _inner(op: Op) -> int | None:
    return whole(op.attributes, "in0_block_w", "K_block_size")


def _subblock(op: Op) -> int | None:
    height = whole(op.attributes, "out_subblock_h", "subblock_h")
    width = whole(op.attributes, "out_subblock_w", "subblock_w")
    return None if height is None or width is None else height * width
