"""Activation functions that run as ops of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import setting
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.removals import advice_for, gaps_text, launch_gaps_ns
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.conversions import neighbours
from pytest_ttnn_perf.analysis.ops.roofline import rooflines
from pytest_ttnn_perf.analysis.ops.settings import function_in
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of, short_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import OpTable

#: What matmuls, convolutions and multiplies can compute on their way.
_FUSABLE: Final = frozenset({"GELU", "SILU", "RELU", "RELU6", "SIGMOID", "TANH"})
_UNARY: Final = re.compile(r"^Unary")
_MULTIPLY: Final = re.compile(r"^Binary")
_IN_MULTIPLY: Final = (
    "compute the activation in the multiply behind it: "
    "`ttnn.mul(..., input_tensor_a_activations=[ttnn.UnaryOpType.{function}])`"
)
_IN_PRODUCT: Final = "compute the activation in the {producer}: {setting}"


@rule("TTP310", "unfused-activations", Severity.WARNING, Input.OPS)
def unfused_activations(step: OpTable, *, share: Limit = Limit(0.02, "of a step", WORTH)) -> Answer:
    """Activation functions run as ops of their own, beside ops that could compute them.

    ## What it finds
    GELU, SILU, RELU, sigmoid and tanh right behind the matmul or the convolution whose result they
    take, or right before the multiply that takes theirs.

    ## Why it matters
    Such an op reads a whole tensor and writes it again, to compute what the op beside it could on
    its way.

    ## What to do
    Compute the activation in the op beside it: `fused_activation` in the program config of a
    matmul, `activation` of a convolution, `input_tensor_a_activations` of a multiply.

    ## What it saves
    At most the time of the activation and, inside a replay, the gap before it. The op that computes
    it takes a little longer.

    ## When it is no problem
    Where the result is needed without the activation as well. A matmul that is bound by computing
    may lose as much as is gained: measure both.

    ## Where it looks
    OP CODE, the function in ATTRIBUTES, operands and the kernel time of the op table, in their
    order on the slowest device.
    """
    ops, lines = critical_ops(step), rooflines(step)
    advice = {
        row: text
        for at, (row, op) in enumerate(ops)
        if _UNARY.search(short_code(op.signature.op)) and not lines[row].stale
        if (text := _advice(ops, at))
    }
    saved = {row: op.kernel_ns for row, op in ops if row in advice}
    took, gaps = sum(saved.values()), launch_gaps_ns(step, saved)
    time = percent(took / (step_ns(step) or 1.0))
    activations = counted(len(saved), "activation")
    beside = gaps_text(gaps, len(saved))
    arithmetic = f"at most the time of {activations}: {microseconds(took)}{beside}"
    return (
        check_savings(
            step,
            saved,
            share,
            sentence=f"{time} of a step goes into {activations} that the op beside could compute",
            arithmetic=arithmetic,
            name=lambda placed: op_name(placed.op),
        )
        .saving(saved, arithmetic, waiting_ns=gaps)
        .with_fix(advice_for((advice[row], ns) for row, ns in saved.items()))
    )


def _advice(ops: Sequence[Placed], at: int) -> str:
    """Return which op beside an activation could compute it, and how; "" if none."""
    function = function_in(ops[at].op.attributes)
    if function not in _FUSABLE:
        return ""
    before, after = neighbours(at, len(ops), lambda place: ops[place].op.signature)
    if after is not None and after - at <= 2:
        consumer = ops[after].op
        if _MULTIPLY.search(short_code(consumer.signature.op)) and "MUL" in function_in(
            consumer.attributes
        ):
            return _IN_MULTIPLY.format(function=function)
    if before is None or at - before > 2:
        return ""
    producer = ops[before].op
    if setting(producer.attributes, "fused_activation"):
        return ""
    match category_of(producer.signature.op):
        case Category.MATMUL:
            return _IN_PRODUCT.format(
                producer="matmul", setting="`fused_activation` of its program config"
            )
        case Category.CONV:
            return _IN_PRODUCT.format(
                producer="convolution", setting="`activation` of `Conv2dConfig`"
            )
    return ""
