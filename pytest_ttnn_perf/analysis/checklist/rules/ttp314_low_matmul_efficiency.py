"""Matmuls that take much longer than the device allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_MATMULS,
    program_config,
)
from pytest_ttnn_perf.analysis.checklist.products import (
    best_known,
    gains_from_dram_sharding,
    has_small_blocks,
    matmuls_of,
    no_roofline,
    shortfall_ns,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, check_savings, microseconds
from pytest_ttnn_perf.analysis.ops.roofline import board_of
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.products import (
        Product,
    )
    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP314", "low-matmul-efficiency", Severity.WARNING, Input.OPS)
def low_matmul_efficiency(
    step: OpTable,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    efficiency: Limit = Limit(
        0.5, "of the roofline", "ttnn-visualizer-cli calls less low; real models: 2 to 89 %"
    ),
) -> Answer:
    """Matmuls take much longer than they have to.

    ## What it finds
    Matmuls that take more than twice what the chip allows for their operands and their cores, and
    for which no other rule has a reason: not the placement of weights (TTP311), small blocks
    (TTP312) or a missing program config (TTP313).

    ## Why it matters
    Matmuls are most of the work of a transformer. What they fall short of is what can be gained.

    ## What to do
    Begin with the matmuls that are named, which lose most time: try other grids and blocks, a 2D
    instead of a 1D program config for many rows, inputs in L1, and no batch in the first input.

    ## What it saves
    At most the time of the matmul, less twice the longer of two: what its operands take at the full
    bandwidth of DRAM, by the true size of their elements, and what its products take on the cores
    that it runs on, at its fidelity.

    ## When it is no problem
    Small matmuls end before the device is up to speed.

    ## Where it looks
    Operands, CORE COUNT, MATH FIDELITY, DEVICE ARCH and the kernel time of the op table, on the
    slowest device. With DRAM-sharded weights one core for each bank computes, whatever CORE COUNT
    says. Sparse matmuls are left out: their operands tell what they skip as well. So are ops that
    would be faster than the chip, whose shapes cannot be their own. Where DEVICE ARCH is missing,
    PM IDEAL stands in for the roofline.
    """
    matmuls, board = matmuls_of(step), board_of(step)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    known = [each for each in matmuls if each.least_ns is not None]
    if not known:
        return Answer.not_measured(no_roofline(step, "matmul"))
    slow = [
        each
        for each in known
        if shortfall_ns(each, efficiency.value) and not _has_reason(each, board)
    ]
    took = sum(each.op.kernel_ns for each in slow)
    saved = {each.row: shortfall_ns(each, efficiency.value) for each in slow}
    reached = sum(each.least_ns or 0.0 for each in slow) / took if took else 1.0
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{counted(len(slow), 'matmul')} at {percent(reached)} of {best_known(step)}",
        arithmetic=f"at most {microseconds(took)} − {microseconds(took - sum(saved.values()))} at "
        f"{percent(efficiency.value)} of {best_known(step)}",
    )


def _has_reason(matmul: Product, board: Board | None) -> bool:
    return (
        gains_from_dram_sharding(matmul, board) > 0
        or has_small_blocks(matmul.op)
        or program_config(matmul.op) == ""
    )
