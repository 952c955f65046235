"""Matmuls that wait for weights from DRAM and do not read them bank by bank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    is_dense_matmul,
    is_dram_sharded,
    is_matmul,
)
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands, share_of
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS, used_signatures
from pytest_ttnn_perf.analysis.checklist.residency import activation_reads
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.ops.roofline import in_dram, size_of
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.records.ops import Op, OpTable


@rule("TTP311", "matmul-not-dram-sharded", Severity.WARNING, Input.OPS)
def matmul_not_dram_sharded(
    ops: OpTable,
    *,
    share: Limit = Limit(0.05, "of kernel time", "a judgement: less is not worth it"),
    bound: Limit = Limit(0.65, "of DRAM bandwidth", "tt-perf-report 1.4: DRAM-bound"),
    wormhole_gb_s: Limit = Limit(288, "GB/s", "tt-perf-report 1.4: Wormhole"),
    blackhole_gb_s: Limit = Limit(512, "GB/s", "tt-perf-report 1.4: P150; P100: 448"),
) -> Answer:
    """Matmuls are bound by DRAM and do not use DRAM-sharded weights.

    ## What it finds
    The share of the kernel time in matmuls that spend it on fetching weights from DRAM, without a
    DRAM-sharded program config. A matmul counts if the bytes of its weights over its kernel time
    come near the bandwidth of DRAM.

    ## Why it matters
    With weights that are cut to the banks of DRAM, each bank feeds the cores next to it, and more
    of the bandwidth is used.

    ## What to do
    Store the weights `DRAM_WIDTH_SHARDED` and use
    `MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig`.

    ## When it is no problem
    That program config takes only few rows, as a decode step has. A matmul that already reaches
    nearly all of the bandwidth has little to gain; weights in a smaller format help it more.

    ## Where it looks
    The second input of each matmul, its `program_config`, the kernel time and DEVICE ARCH of the op
    table. Sparse matmuls are left out: their operands are larger than what they read.
    """
    if not has_operands(ops):
        return Answer.not_measured(NO_OPERANDS)
    matmuls = [used for used, _ in used_signatures(ops) if is_matmul(used)]
    if matmuls and all(len(matmul.inputs) < 2 for matmul in matmuls):
        return Answer.not_measured("the capture does not tell the second operands of matmuls")
    streaming = list(_streaming(ops))
    if not streaming:
        return Answer.not_applicable("no matmul reads weights from DRAM")
    peaks = {"wormhole": wormhole_gb_s.value, "blackhole": blackhole_gb_s.value}
    peak = peaks.get((ops.arch or "").lower().partition("_")[0])
    if peak is None:
        known = ops.arch or "an unnamed architecture"
        return Answer.not_measured(f"the DRAM bandwidth of {known} is not known")
    waiting = [op for op, size in streaming if size >= bound.value * peak * op.kernel_ns]
    part = share_of(ops, [op for op in waiting if not is_dram_sharded(op)])
    sentence = f"{part.sentence('DRAM-bound matmul')} without a DRAM-sharded program config"
    return part.at_most(share, sentence)


def _streaming(table: OpTable) -> Iterator[tuple[Op, float]]:
    """Yield the matmuls with weights in DRAM, and the bytes of these."""
    for ops, activations in activation_reads(table):
        signature = ops[0].signature
        weights = signature.inputs[1:2] if is_dense_matmul(signature) else ()
        if weights and in_dram(weights[0]) and weights[0] not in activations:
            size = size_of(weights[0])
            yield from ((op, size) for op in ops if op.kernel_ns > 0)
