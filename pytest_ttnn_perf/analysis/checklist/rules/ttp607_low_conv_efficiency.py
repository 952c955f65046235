"""Convolutions that take much longer than the device allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import is_convolution
from pytest_ttnn_perf.analysis.checklist.op_times import check_efficiency, kernel_ns, ops_like
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP607", "low-conv-efficiency", Severity.WARNING, Input.OPS)
def low_conv_efficiency(
    ops: OpTable,
    *,
    efficiency: Limit = Limit(
        0.5, "of the ideal", "ttnn-visualizer-cli calls less low; real: 9 and 68 %"
    ),
) -> Answer:
    """Convolutions take much longer than they have to.

    ## What it finds
    The ideal time of all convolutions as a share of the time that they took. The ideal is the
    profiler's: the longer of computing and of moving the operands, at full speed.

    ## Why it matters
    Convolutions are most of the work of a vision model. What they fall short of can be gained.

    ## What to do
    Begin with the convolutions that are named, which lose most time: larger `act_block_h_override`,
    double buffering, weights in bfloat8_b, a lower math fidelity where the accuracy allows it.

    ## When it is no problem
    A first convolution with few channels pads them to a tile and cannot come near its ideal.

    ## Where it looks
    `PM IDEAL [ns]` and the kernel time of the op table. An ideal of 1 ns means that the profiler
    has no model, and does not count. A convolution that is faster than its model counts as ideal.
    """
    convolving = ops_like(ops, is_convolution)
    return check_efficiency(convolving, efficiency, named="convolution", of=kernel_ns(ops))
