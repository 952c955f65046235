"""Matmuls that take much longer than the device allows."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_MATMULS,
    TILE_ROWS,
    flag,
    program_config,
)
from pytest_ttnn_perf.analysis.checklist.operands import shape_text
from pytest_ttnn_perf.analysis.checklist.parallelism import few_cores, grid_rows
from pytest_ttnn_perf.analysis.checklist.products import (
    best_known,
    gains_from_dram_sharding,
    has_small_blocks,
    matmuls_of,
    no_roofline,
    shortfall_ns,
)
from pytest_ttnn_perf.analysis.checklist.removals import advice_for
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, check_savings, microseconds
from pytest_ttnn_perf.analysis.ops.roofline import board_of, in_dram
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.products import Product
    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report


@rule("TTP314", "low-matmul-efficiency", Severity.WARNING, Input.OPS)
def low_matmul_efficiency(
    step: OpTable,
    report: Report | None,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    efficiency: Limit = Limit(
        0.5, "of the roofline", "ttnn-visualizer-cli calls less low; real models: 2 to 89 %"
    ),
) -> Answer:
    """Matmuls take much longer than they have to.

    ## What it finds
    Matmuls that take more than twice what the chip allows for their operands and their cores, and
    for which no other rule has a reason: not few cores (TTP305), the placement of weights (TTP311),
    small blocks (TTP312) or a missing program config (TTP313).

    ## Why it matters
    Matmuls are most of the work of a transformer. What they fall short of is what can be gained.

    ## What to do
    Begin with the matmuls that are named, which lose most time. A batch in the first input that the
    weights do not have (`fuse_batch=False`): reshape it into rows, 1x32x17x5120 to 1x1x544x5120, or
    the weights are read once for each. Many rows with a 1D program config: a 2D one. An input in
    DRAM: L1, sharded. Output blocks of fewer rows than a core has (`out_block_h` below
    `per_core_M`) read all weights once for each row of blocks: raise it. Else other grids and
    blocks.

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
    matmuls, board, on_few = matmuls_of(step), board_of(step), few_cores(step, report)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    known = [each for each in matmuls if each.least_ns is not None]
    if not known:
        return Answer.not_measured(no_roofline(step, "matmul"))
    slow = [
        each
        for each in known
        if shortfall_ns(each, efficiency.value)
        and each.row not in on_few
        and not _has_reason(each, board)
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
    ).with_fix(_advice_for(slow, saved))


def _has_reason(matmul: Product, board: Board | None) -> bool:
    return (
        gains_from_dram_sharding(matmul, board) > 0
        or has_small_blocks(matmul.op)
        or program_config(matmul.op) == ""
    )


#: From so many rows of tiles on, cores in two dimensions share both operands.
_MANY_ROWS: Final = 32


def _advice_for(slow: Sequence[Product], saved: Mapping[int, float]) -> str:
    """Return what the attributes and operands of matmuls show, with the worst as an example."""
    batched = [each for each in slow if _batch(each) > 1]
    worst = max(batched, key=lambda each: saved[each.row], default=None)
    no_batch = "" if worst is None else _without_batch(worst)
    return advice_for(
        (no_batch if _batch(each) > 1 else _advice(each), saved[each.row]) for each in slow
    )


def _batch(matmul: Product) -> int:
    """Return how often weights are read, for a batch of the first input that they do not have."""
    first, inputs = matmul.first, matmul.op.signature.inputs
    if first is None or len(inputs) < 2 or prod(inputs[1].padded[:-2]) > 1:
        return 1
    fused = flag(matmul.op.attributes, "fuse_batch")
    return prod(first.padded[:-2]) if fused is False else 1


def _without_batch(matmul: Product) -> str:
    shape = matmul.op.signature.inputs[0].logical or matmul.op.signature.inputs[0].padded
    folded = (1, 1, prod(shape[:-1]), shape[-1])
    return (
        f"no batch in the first input: reshape it to rows ({shape_text(shape)} → "
        f"{shape_text(folded)}, `fuse_batch=True`), or the weights are read {_batch(matmul)} times"
    )


def _advice(matmul: Product) -> str:
    if matmul.reads_again:
        return matmul.reads_again
    first, config = matmul.first, program_config(matmul.op) or ""
    rows = prod(first.padded[:-1]) if first is not None else 0
    if rows and rows // TILE_ROWS < grid_rows(matmul.op):
        return "a 1D program config (`mcast_in0=True`): few rows leave rows of a 2D grid idle"
    if "1D" in config and rows >= _MANY_ROWS * TILE_ROWS:
        return "a 2D program config instead of a 1D one, for so many rows"
    if first is not None and in_dram(first):
        return f"{_TRY}, and give the first input an L1 memory config"
    return _TRY


_TRY: Final = "try a larger grid, larger `in0_block_w` and larger output blocks"
