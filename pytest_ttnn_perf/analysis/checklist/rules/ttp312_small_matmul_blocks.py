"""Matmuls that work in blocks of a single tile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_MATMULS,
)
from pytest_ttnn_perf.analysis.checklist.parallelism import few_cores
from pytest_ttnn_perf.analysis.checklist.products import (
    best_known,
    gains_from_dram_sharding,
    has_small_blocks,
    inner_block,
    matmuls_of,
    no_roofline,
    output_subblock,
    shortfall_ns,
)
from pytest_ttnn_perf.analysis.checklist.removals import advice_for
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, check_savings, microseconds
from pytest_ttnn_perf.analysis.ops.roofline import board_of
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report


@rule("TTP312", "small-matmul-blocks", Severity.WARNING, Input.OPS)
def small_matmul_blocks(
    step: OpTable,
    report: Report | None,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    inner: Limit = Limit(2, "tiles", "tt-perf-report 1.4: in0_block_w below 2"),
    subblock: Limit = Limit(2, "tiles", "tt-perf-report 1.4: out_subblock below 2"),
    efficiency: Limit = Limit(0.5, "of the roofline", "see TTP314"),
) -> Answer:
    """Matmuls work in very small blocks.

    ## What it finds
    Matmuls far from what the device allows, whose inner block, `in0_block_w`, or output subblock,
    `out_subblock_h` times `out_subblock_w`, is smaller than two tiles although they have more tiles
    to put there.

    ## Why it matters
    Every block costs a round of waiting for data and of setting up the engine. With one tile at a
    time, most of the time goes there.

    ## What to do
    Raise `in0_block_w` to a larger divisor of the inner dimension in tiles, and the subblock to up
    to eight tiles, or four with `fp32_dest_acc_en`.

    ## What it saves
    The time of the matmul, less twice what moving its operands or computing takes at full
    speed.

    ## When it is no problem
    A sharded first input limits `in0_block_w` to a divisor of its shard's width, and blocks have to
    fit into L1. Matmuls that gain from DRAM-sharded weights are left
    to TTP311, those on few cores to TTP305.

    ## Where it looks
    The program config in ATTRIBUTES, the operands and the kernel time of the op table, on the
    slowest device.
    """
    matmuls, board, on_few = matmuls_of(step), board_of(step), few_cores(step, report)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    if all(inner_block(each.op) is None and output_subblock(each.op) is None for each in matmuls):
        return Answer.not_measured("the attributes of matmuls do not give the sizes of blocks")
    if all(each.least_ns is None for each in matmuls):
        return Answer.not_measured(no_roofline(step, "matmul"))
    small = [
        each
        for each in matmuls
        if has_small_blocks(each.op, inner.value, subblock.value)
        and each.row not in on_few
        and not gains_from_dram_sharding(each, board)
        and shortfall_ns(each, efficiency.value)
    ]
    took = sum(each.op.kernel_ns for each in small)
    saved = {each.row: shortfall_ns(each, efficiency.value) for each in small}
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{counted(len(small), 'matmul')} with very small blocks, "
        f"{microseconds(took)} of a step",
        arithmetic=f"{microseconds(took)} − {microseconds(took - sum(saved.values()))} at "
        f"{percent(efficiency.value)} of {best_known(step)}",
    ).with_fix(advice_for((each.reads_again or _LARGER, saved[each.row]) for each in small))


_LARGER: Final = (
    "raise `in0_block_w` to a larger divisor of the inner dimension in tiles, and the subblock to "
    "up to eight tiles, or four with `fp32_dest_acc_en`"
)
