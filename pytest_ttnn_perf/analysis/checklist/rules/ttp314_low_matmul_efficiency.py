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
    whole,
)
from pytest_ttnn_perf.analysis.checklist.operands import shape_text
from pytest_ttnn_perf.analysis.checklist.parallelism import (
    available_cores,
    config_grid,
    evenly,
    few_cores,
    grid_rows,
)
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
from pytest_ttnn_perf.analysis.ops.roofline import board_of, in_dram, is_dram_sharded
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
    the weights are read once for each. Output blocks of fewer rows than a core has (`out_block_h`
    below `per_core_M`) read all weights once for each row of blocks: raise it.
    `MatmulMultiCoreProgramConfig` reuses no operands: pass another. Both inputs with a batch: use
    `MatmulMultiCoreReuseProgramConfig`, which spreads it over the cores. A tall output of few
    columns: keep a 1D program config (`mcast_in0=False`), and shard the first input and the output
    by height in L1. Others with a 1D program config: a 2D one, if it uses more cores. An input in
    DRAM: L1. Else a larger grid, `in0_block_w` or output subblocks, where these can be larger.

    ## What it saves
    The time of the matmul, less twice the longer of two: what its operands take at the full
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
        arithmetic=f"{microseconds(took)} − {microseconds(took - sum(saved.values()))} at "
        f"{percent(efficiency.value)} of {best_known(step)}",
    ).with_fix(_advice_for(slow, saved, available_cores(step, report)))


def _has_reason(matmul: Product, board: Board | None) -> bool:
    return (
        gains_from_dram_sharding(matmul, board) > 0
        or has_small_blocks(matmul.op)
        or program_config(matmul.op) == ""
    )


def _advice_for(slow: Sequence[Product], saved: Mapping[int, float], available: int) -> str:
    """Return what the attributes and operands of matmuls show, with the worst as an example."""
    batched = [each for each in slow if _batch(each) > 1]
    worst = max(batched, key=lambda each: saved[each.row], default=None)
    no_batch = "" if worst is None else _without_batch(worst)
    return advice_for(
        (no_batch if _batch(each) > 1 else _advice(each, available), saved[each.row])
        for each in slow
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


_NO_REUSE: Final = (
    "`MatmulMultiCoreProgramConfig` does not reuse operands: pass a `program_config` that does"
)
_SPREAD_BATCH: Final = (
    "spread the batch over the cores (`MatmulMultiCoreReuseProgramConfig`), as both inputs have one"
)
_ONE_D: Final = "a 1D program config (`mcast_in0=True`): few rows leave rows of a 2D grid idle"
_TALL: Final = (
    "keep the 1D program config (`mcast_in0=False`), and height-shard the first input and the "
    "output in L1"
)
#: From so many times as many rows of tiles as columns on, cores in one dimension are enough.
_IS_TALL: Final = 4
#: Fewer cores more are no reason for another program config.
_MORE_CORES: Final = 1.1
#: The most tiles of an output subblock, and with sums in float32.
_SUBBLOCK, _SUBBLOCK_FLOAT32 = 8, 4


def _advice(matmul: Product, available: int) -> str:
    if matmul.reads_again:
        return matmul.reads_again
    op, config = matmul.op, program_config(matmul.op) or ""
    if config == "MatmulMultiCoreProgramConfig":
        return _NO_REUSE
    inputs = op.signature.inputs
    if len(inputs) > 1 and prod(inputs[1].padded[:-2]) > 1:
        return _SPREAD_BATCH
    rows, columns = _output_tiles(matmul)
    if 0 < rows < grid_rows(op):
        return _ONE_D
    width, height = config_grid(op)
    if "1D" in config and rows >= _IS_TALL * columns > 0 and columns < width:
        return f"{_TALL}, and raise `in0_block_w`" if _can_be_wider(matmul) else _TALL
    in_2d = evenly(columns, width) * evenly(rows, height)
    if "1D" in config and in_2d > _MORE_CORES * (op.cores or 0):
        return f"a 2D program config instead of a 1D one: {in_2d} cores instead of {op.cores}"
    return _larger(matmul, available)


def _larger(matmul: Product, available: int) -> str:
    """Return what of a matmul can be larger; "" where nothing can."""
    op = matmul.op
    parts: list[str] = []
    if _possible_cores(matmul, available) > _MORE_CORES * (op.cores or 0):
        parts.append("a larger grid")
    if _can_be_wider(matmul):
        parts.append("larger `in0_block_w`")
    area, of_core = output_subblock(op), [whole(op.attributes, key) or 1 for key in _PER_CORE]
    most = _SUBBLOCK_FLOAT32 if flag(op.attributes, "fp32_dest_acc_en") else _SUBBLOCK
    if area is not None and area < min(most, prod(of_core)):
        parts.append("larger output subblocks")
    told = [f"try {', '.join(parts)}"] if parts else []
    if matmul.first is not None and in_dram(matmul.first):
        told.append("give the first input an L1 memory config")
    return ", and ".join(told)


def _possible_cores(matmul: Product, available: int) -> int:
    """Return how many cores a matmul can keep busy as it is cut; 0 where banks of DRAM decide."""
    op, (rows, columns), (width, height) = matmul.op, _output_tiles(matmul), config_grid(matmul.op)
    if is_dram_sharded(op.attributes):
        return 0
    if "1D" in (program_config(op) or ""):
        return evenly(columns if flag(op.attributes, "mcast_in0") else rows, available)
    if width * height >= available:
        return evenly(columns, width) * evenly(rows, height)
    return evenly(rows * columns, available)


_PER_CORE: Final = ("per_core_M", "per_core_N")


def _output_tiles(matmul: Product) -> tuple[int, int]:
    """Return how many rows and columns of tiles a matmul gives; 0 where that is not told."""
    if not matmul.op.signature.outputs:
        return 0, 0
    *rows, columns = matmul.op.signature.outputs[0].padded
    return prod(rows) // TILE_ROWS, columns // TILE_ROWS


def _can_be_wider(matmul: Product) -> bool:
    wide = inner_block(matmul.op)
    return (
        wide is not None
        and matmul.first is not None
        and (wide < matmul.first.padded[-1] // TILE_ROWS)
    )
