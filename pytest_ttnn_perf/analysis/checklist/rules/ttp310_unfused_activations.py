"""Activation functions and biases that run as ops of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    is_convolution,
    is_dense_matmul,
    is_matmul,
    setting,
)
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
from pytest_ttnn_perf.records.ops import short_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import Op, OpTable

#: What matmuls, convolutions and multiplies can compute on their way.
_FUSABLE: Final = frozenset({"GELU", "SILU", "RELU", "RELU6", "SIGMOID", "TANH"})
_UNARY: Final = re.compile(r"^Unary")
_BINARY: Final = re.compile(r"^Binary")
#: What an activation or a bias adds to the product that computes it: real ones 2.6 µs.
_IN_PRODUCT_NS: Final = 2_500.0
#: What is left to gain where an elementwise op computes it: real ones take as long together as
#: apart, 1.8 to 1.9 µs for each tile of a core, and fetch the tensor once.
_ELSEWHERE_NS: Final = 1_000.0
#: Elementwise ops compute it while they write, in no time.
_FREE: Final = "RELU"
_ASKED: Final = re.compile(r"user_fused_activation'?\s*[=:]\s*'?[^;]*op_type=UnaryOpType::(\w+)")
_ONE_ROW: Final = re.compile(r"subtile_broadcast_type'?\s*[=:]\s*'?(?:\w+::)?ROW_B\b")
_IN_MULTIPLY: Final = (
    "compute the activation in the multiply that follows: "
    "`ttnn.mul(..., input_tensor_a_activations=[ttnn.UnaryOpType.{function}])`"
)
_IN_BINARY: Final = (
    "compute the activation in the op before it: `activations=[ttnn.UnaryOpType.{function}]`"
)
_IN_MATMUL: Final = "compute the activation in the matmul: `fused_activation` of its program config"
_IN_CONVOLUTION: Final = "compute the activation in the convolution: `activation` of `Conv2dConfig`"
_BIAS: Final = "add the bias in the matmul: `bias` of `ttnn.linear`"


class _Fused(NamedTuple):
    """How another op could compute what an op does, and what that would save."""

    advice: str
    saved_ns: float


@rule("TTP310", "unfused-activations", Severity.WARNING, Input.OPS)
def unfused_activations(step: OpTable, *, share: Limit = Limit(0.02, "of a step", WORTH)) -> Answer:
    """Activations and biases run as ops of their own, beside ops that could compute them.

    ## What it finds
    GELU, SILU, RELU, sigmoid and tanh right behind the matmul, the convolution or the elementwise
    op whose result they take, or right before the multiply that takes theirs. A matmul that was
    asked for an activation but whose program config does not have it, which then runs as the next
    op. An addition of one row right behind a matmul that has no bias.

    ## Why it matters
    Such an op reads a whole tensor and writes it again, to compute what a neighbouring op could on
    its way.

    ## What to do
    Compute the activation in a neighbouring op: `fused_activation` in the program config of a
    matmul, `activation` of a convolution, `activations` of an elementwise op,
    `input_tensor_a_activations` of a multiply. Give a bias to `ttnn.linear`.

    ## What it saves
    In a matmul or a convolution, the time of the op, less 2.5 µs, which the product takes longer.
    So it is with RELU behind an elementwise op. Other activations take as long in an elementwise op
    as alone, and about 1 µs is saved. Inside a replay the gap before the op goes with it.

    ## When it is no problem
    Where the result is needed without the activation as well. A matmul that is bound by computing
    may lose as much as is gained: measure both.

    ## Where it looks
    OP CODE, the function in ATTRIBUTES, operands and the kernel time of the op table, in their
    order on the slowest device.
    """
    ops, lines = critical_ops(step), rooflines(step)
    found: dict[int, _Fused] = {}
    for at, (row, _) in enumerate(ops):
        fused = _next_to_product(ops, at) or (None if lines[row].stale else _activation(ops, at))
        if fused is not None and fused.saved_ns > 0:
            found[row] = fused
    saved = {row: each.saved_ns for row, each in found.items()}
    took = sum(op.kernel_ns for row, op in ops if row in found)
    gaps = launch_gaps_ns(step, saved)
    biases = sum(each.advice == _BIAS for each in found.values())
    counts = {"activation": len(found) - biases, "bias addition": biases}
    kinds = " and ".join(counted(count, noun) for noun, count in counts.items() if count)
    time = percent(took / (step_ns(step) or 1.0))
    arithmetic = (
        f"{microseconds(took)} → {microseconds(took - sum(saved.values()))} in a neighbouring op"
        f"{gaps_text(gaps, len(saved))}"
    )
    return (
        check_savings(
            step,
            saved,
            share,
            sentence=f"{time} of a step goes into {kinds} that a neighbouring op could compute",
            arithmetic=arithmetic,
            name=lambda placed: op_name(placed.op),
        )
        .saving(saved, arithmetic, waiting_ns=gaps)
        .with_fix(advice_for((each.advice, each.saved_ns) for each in found.values()))
    )


def _next_to_product(ops: Sequence[Placed], at: int) -> _Fused | None:
    """Return how a matmul computes what the next op does; shapes need not be their own."""
    if not at or not is_matmul(ops[at - 1].op.signature):
        return None
    own, product = ops[at].op, ops[at - 1].op
    code, function = short_code(own.signature.op), function_in(own.attributes)
    in_product_ns = own.kernel_ns - _IN_PRODUCT_NS
    asked = _ASKED.search(product.attributes)
    if _UNARY.search(code) and asked is not None and asked[1] == function:
        has_it = setting(product.attributes, "fused_activation")
        return None if has_it else _Fused(_IN_MATMUL, in_product_ns)
    adds = _BINARY.search(code) and function == "ADD" and _ONE_ROW.search(own.attributes)
    if adds and len(product.signature.inputs) == 2:
        return _Fused(_BIAS, in_product_ns)
    return None


def _activation(ops: Sequence[Placed], at: int) -> _Fused | None:
    """Return which op beside an activation could compute it, and how; None if none."""
    own = ops[at].op
    function = function_in(own.attributes)
    if not _UNARY.search(short_code(own.signature.op)) or function not in _FUSABLE:
        return None
    before, after = neighbours(at, len(ops), lambda place: ops[place].op.signature)
    producer = ops[before].op if before is not None and at - before <= 2 else None
    consumer = ops[after].op if after is not None and after - at <= 2 else None
    if producer is not None and not setting(producer.attributes, "fused_activation"):
        in_product_ns = own.kernel_ns - _IN_PRODUCT_NS
        if is_dense_matmul(producer.signature):
            return _Fused(_IN_MATMUL, in_product_ns)
        if is_convolution(producer.signature):
            return _Fused(_IN_CONVOLUTION, in_product_ns)
        if function == _FREE and _computes(producer, ""):
            return _Fused(_IN_BINARY.format(function=function), in_product_ns)
    left = _Fused("", min(own.kernel_ns, _ELSEWHERE_NS))
    if consumer is not None and _computes(consumer, "MUL"):
        return left._replace(advice=_IN_MULTIPLY.format(function=function))
    if producer is not None and _computes(producer, ""):
        return left._replace(advice=_IN_BINARY.format(function=function))
    return None


def _computes(op: Op, function: str) -> bool:
    code = short_code(op.signature.op)
    return _BINARY.search(code) is not None and function in function_in(op.attributes)
