"""Convolutions that could work in larger blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    ActBlock,
    blocks_in_report,
    blocks_in_table,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report


@rule("TTP602", "act-block-h-below-max", Severity.INFO, Input.OPS, Input.REPORT)
def act_block_h_below_max(
    report: Report | None,
    ops: OpTable | None,
    *,
    convolutions: Limit = Limit(0, "convolutions", "each is named with its block"),
    spare: Limit = Limit(0.1, "of L1", "a judgement: room for what is not counted"),
) -> Answer:
    """Convolutions could work in larger blocks.

    ## What it finds
    Convolutions that work on fewer rows at a time than a core has, although L1 has room for more,
    each with the largest `act_block_h_override` that fits.

    ## Why it matters
    A core goes through its rows block by block. Fewer, larger blocks cost less of setting up and
    reading weights again.

    ## What to do
    Set `act_block_h_override` of `Conv2dConfig` to the number that is named. It is a multiple of
    32, divides the rows of a core, and is advice: run the test to see that it fits and is faster.
    Of a width-sharded convolution, a larger `act_block_w_div` makes room in L1.

    ## When it is no problem
    Where double buffering needs the room, which often gains more. The rows of a halo live in L1
    only while the convolution runs, and a report does not count them.

    ## Where it looks
    In a report database `act_block_h_override`, the shards of outputs, the buffers alive and the
    circular buffers of each convolution, which grow at most as the block does. An op table tells
    blocks too, but not what L1 has room for: then the rule is not measured, unless all
    convolutions use the largest block.
    """
    blocks = list(blocks_in_report(report)) if report is not None else []
    if not blocks and ops is not None:
        blocks = list(blocks_in_table(ops))
    if not blocks:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    if not any(block.is_known for block in blocks):
        return Answer.not_measured("the capture does not give the blocks of convolutions")
    larger = [(block, rows) for block in blocks if (rows := block.larger(spare.value))]
    count, unavailable = float(len(larger)), _untold(blocks)
    if count <= convolutions.value and unavailable:
        return Answer.not_measured(unavailable)
    return convolutions.at_most(
        count,
        f"room for a larger act_block_h in {len(larger)} of {counted(len(blocks), 'convolution')}",
        (
            Evidence(f"{block.name}, act_block_h_override {block.rows} → {rows}")
            for block, rows in sorted(larger, key=lambda pair: -pair[1] / (pair[0].rows or 1))
        ),
    )


def _untold(blocks: Sequence[ActBlock]) -> str | None:
    all_blocks = counted(len(blocks), "convolution")
    silent = sum(not block.is_known for block in blocks)
    if silent:
        return f"the block of {silent} of {all_blocks} is unknown"
    small = sum(not block.is_largest and not block.has_sizes for block in blocks)
    if small:
        return (
            f"an act_block_h below the largest in {small} of {all_blocks}; "
            "whether a larger one fits is not known without the L1 of a report database"
        )
    return None
