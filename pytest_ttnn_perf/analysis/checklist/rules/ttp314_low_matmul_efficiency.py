"""Matmuls that take much longer than the device allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import is_dense_matmul
from pytest_ttnn_perf.analysis.checklist.op_times import check_efficiency, kernel_ns, ops_like
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP314", "low-matmul-efficiency", Severity.WARNING, Input.OPS)
def low_matmul_efficiency(
    ops: OpTable,
    *,
    efficiency: Limit = Limit(
        0.5, "of the ideal", "ttnn-visualizer-cli calls less low; real models: 2 to 98 %"
    ),
) -> Answer:
    """Matmuls take much longer than they have to.

    ## What it finds
    The ideal time of all matmuls as a share of the time that they took. The ideal is the
    profiler's: the longer of computing and of moving the operands, at full speed.

    ## Why it matters
    Matmuls are most of the work of a transformer. What they fall short of is what can be gained.

    ## What to do
    Begin with the matmuls that are named, which lose most time: use more cores, larger blocks, a
    lower math fidelity where the accuracy allows it, inputs in L1, DRAM-sharded weights.

    ## When it is no problem
    Small matmuls end before the device is up to speed.

    ## Where it looks
    `PM IDEAL [ns]` and the kernel time of the op table. An ideal of 1 ns means that the profiler
    has no model, and does not count. Sparse matmuls are left out: their model counts what they
    skip. A matmul that is faster than its model counts as ideal.
    """
    matmuls = ops_like(ops, is_dense_matmul)
    return check_efficiency(matmuls, efficiency, named="matmul", of=kernel_ns(ops))
