"""Matmuls that wait for weights from DRAM and do not read them bank by bank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    is_dense_matmul,
    is_dram_sharded,
    is_matmul,
)
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands, share_of, worst_ops
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS, size_of, used_signatures
from pytest_ttnn_perf.analysis.checklist.residency import activation_reads, in_dram
from pytest_ttnn_perf.analysis.checklist.rule import (
    Rule,
    clean,
    found,
    limit,
    not_applicable,
    not_measured,
)
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Op, OpTable


@dataclass(frozen=True, slots=True)
class MatmulNotDramSharded(Rule):
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

    code: ClassVar[str] = "TTP311"
    name: ClassVar[str] = "matmul-not-dram-sharded"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS,)

    share: float = limit(0.05, unit="of kernel time", source="a judgement: less is not worth it")
    bound: float = limit(0.65, unit="of DRAM bandwidth", source="tt-perf-report 1.4: DRAM-bound")
    wormhole_gb_s: float = limit(288, unit="GB/s", source="tt-perf-report 1.4: Wormhole")
    blackhole_gb_s: float = limit(512, unit="GB/s", source="tt-perf-report 1.4: P150; P100: 448")

    def check(self, subject: Subject) -> Answer:
        """Compare the share of DRAM-bound matmuls with the limit."""
        assert subject.ops is not None
        if not has_operands(subject.ops):
            return not_measured(NO_OPERANDS)
        matmuls = [used for used, _ in used_signatures(subject.ops) if is_matmul(used)]
        if matmuls and all(len(matmul.inputs) < 2 for matmul in matmuls):
            return not_measured("the capture does not tell the second operands of matmuls")
        streaming = list(_streaming(subject.ops))
        if not streaming:
            return not_applicable("no matmul reads weights from DRAM")
        peak = self._gb_s(subject.ops.arch)
        if peak is None:
            known = subject.ops.arch or "an unnamed architecture"
            return not_measured(f"the DRAM bandwidth of {known} is not known")
        bound = [op for op, size in streaming if size >= self.bound * peak * op.kernel_ns]
        share = share_of(subject.ops, [op for op in bound if not is_dram_sharded(op)])
        if share.fraction <= self.share:
            return clean(share.fraction, limit=self.share, unit="of kernel time")
        return found(
            f"{share.told('DRAM-bound matmul')} without a DRAM-sharded program config",
            value=share.fraction,
            limit=self.share,
            unit="of kernel time",
            evidence=worst_ops(share.ops, of=share.total_ns),
        )

    def _gb_s(self, arch: str | None) -> float | None:
        known = {"wormhole": self.wormhole_gb_s, "blackhole": self.blackhole_gb_s}
        return known.get((arch or "").lower().partition("_")[0])


def _streaming(table: OpTable) -> Iterator[tuple[Op, float]]:
    """Yield the matmuls with weights in DRAM, and the bytes of these."""
    for ops, activations in activation_reads(table):
        signature = ops[0].signature
        weights = signature.inputs[1:2] if is_dense_matmul(signature) else ()
        if weights and in_dram(weights[0]) and weights[0] not in activations:
            size = size_of(weights[0])
            yield from ((op, size) for op in ops if op.kernel_ns > 0)
