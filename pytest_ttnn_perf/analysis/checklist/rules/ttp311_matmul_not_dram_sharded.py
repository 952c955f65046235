"""Matmuls of a few rows that read their weights far below the bandwidth of DRAM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_MATMULS,
)
from pytest_ttnn_perf.analysis.checklist.parallelism import (
    USED,
    available_cores,
    few_cores,
    ops_on_cores,
)
from pytest_ttnn_perf.analysis.checklist.products import (
    COMPUTE_AT,
    READ_AT,
    dram_sharded_ns,
    gains_from_dram_sharding,
    matmuls_of,
    unknown_chip,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, check_savings, microseconds
from pytest_ttnn_perf.analysis.ops.roofline import board_of, in_dram, size_of
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.products import Product
    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report


@rule("TTP311", "matmul-not-dram-sharded", Severity.WARNING, Input.OPS)
def matmul_not_dram_sharded(
    step: OpTable, report: Report | None, *, share: Limit = Limit(0.02, "of a step", WORTH)
) -> Answer:
    """Matmuls of a few rows read their weights far below the bandwidth of DRAM.

    ## What it finds
    Matmuls of up to 32 rows, as a decode step has them, whose weights lie in DRAM, and that take
    longer than reading these with a DRAM-sharded program config would.

    ## Why it matters
    A matmul of a few rows takes as long as reading its weights. Cut to the banks of DRAM, each bank
    feeds a core next to it, and most of the bandwidth is used.

    ## What to do
    Store the weights `DRAM_WIDTH_SHARDED`, keep the input in L1, and use
    `MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig`; with bfloat8_b and bfloat4_b, HiFi2, or
    LoFi where these cores compute longer than they read at HiFi2: one for each bank computes.

    ## What it saves
    The time of the matmul, less what it takes with DRAM-sharded weights: reading these at 90 % of
    the peak bandwidth, or computing at 80 % of the peak of one core for each bank, whichever is
    longer, and 5 µs. It computes at LoFi with weights of a block format, else at the fidelity that
    it has. These figures were fitted to real ones on Blackhole, and not tried on Wormhole.

    ## When it is no problem
    A matmul that already reads its weights at 75 % of the bandwidth is not named: smaller formats
    help it more (TTP101). Where more cores alone are clearly faster, TTP305 names it. On Blackhole
    the eight cores of a DRAM-sharded matmul do not keep up with bfloat4_b.

    ## Where it looks
    The operands of matmuls, `program_config`, the kernel time and DEVICE ARCH of the op table, on
    the slowest device. Sparse matmuls are left out: their operands are larger than what they read.
    """
    matmuls, board = matmuls_of(step), board_of(step)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    if all(len(each.op.signature.inputs) < 2 for each in matmuls):
        return Answer.not_measured("the capture does not give the second operands of matmuls")
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    left_to_others = few_cores(step, report)
    slow = [
        each
        for each in matmuls
        if gains_from_dram_sharding(each, board) and each.row not in left_to_others
    ]
    took = sum(each.op.kernel_ns for each in slow)
    least = sum(dram_sharded_ns(each, board) or 0.0 for each in slow)
    read = sum(size_of(each.weights) for each in slow if each.weights is not None)
    rate = read / took / board.dram_gb_s if took else 0.0
    return check_savings(
        step,
        {each.row: gains_from_dram_sharding(each, board) for each in slow},
        share,
        sentence=f"{counted(len(slow), 'matmul')} of up to 32 rows "
        f"{'reads' if len(slow) == 1 else 'read'} weights at {percent(rate)} of the DRAM "
        "bandwidth, without a DRAM-sharded program config",
        arithmetic=f"{microseconds(took)} − {microseconds(least)}: {percent(READ_AT)} of "
        f"{board.dram_gb_s:g} GB/s or {percent(COMPUTE_AT)} of {board.dram_banks} cores, and 5 µs",
    ).with_fix(_advice(slow, board, on_few=_on_few(step, report, slow)))


def _on_few(step: OpTable, report: Report | None, slow: Sequence[Product]) -> bool:
    """Tell whether most of these matmuls run on few cores: more of them are the second best."""
    cores = ops_on_cores(step, available_cores(step, report), shortest_us=0.0)
    few = {each.row for each in cores if each.part < USED}
    return sum(each.row in few for each in slow) * 2 > len(slow)


def _advice(slow: Sequence[Product], board: Board, *, on_few: bool) -> str:
    """Return what is missing: the weights in place, a program config, an input in L1, a fidelity.

    Of fidelities it is the highest with which computing takes no longer than reading.
    """
    weights = [each.weights for each in slow if each.weights is not None]
    placed = [each for each in weights if "SHARDED" in each.memory]
    faster = [(each.op.fidelity, _fast_enough(each, board)) for each in slow]
    lower = {wanted for own, wanted in faster if wanted not in {None, own}}
    words = []
    if len(placed) < len(weights):
        words.append("store the weights `DRAM_WIDTH_SHARDED`")
    if any(in_dram(each.first) for each in slow if each.first is not None):
        words.append("keep the input in L1")
    words.append("use `MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig`")
    text = ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + words[-1]
    if lower:
        wanted = "LoFi" if "LoFi" in lower else "HiFi2"
        text += f", with {wanted} instead of the fidelity they have"
    if placed and len(placed) == len(weights):
        text += ": the weights are sharded for it already"
    if on_few:
        text += "; more cores alone (TTP305) gain nearly as much"
    return f"{text[0].upper()}{text[1:]}."


#: Tried where its own computes longer than reading takes, the more exact one first.
_FIDELITIES: Final = ("HiFi2", "LoFi")


def _fast_enough(matmul: Product, board: Board) -> str | None:
    """Return the fidelity for weights of a block format; None where it stays as it is."""
    weights, flops = matmul.weights, matmul.line.work.flops
    if weights is None or not flops or not weights.dtype.endswith("_B"):
        return None
    reading_ns = size_of(weights) / board.dram_gb_s / READ_AT
    for fidelity in dict.fromkeys((matmul.op.fidelity or "", *_FIDELITIES)):
        tflops = board.tflops.get(fidelity, 0.0) * board.dram_banks
        if tflops and flops / (tflops * 1000) / COMPUTE_AT <= reading_ns:
            return fidelity
    return "LoFi"
