"""Matmuls and convolutions that compute more precisely than they may need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.products import (
    products_of,
    unknown_chip,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.roofline import board_of
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.products import (
        Product,
    )
    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.records.ops import Op, OpTable

#: Fidelities from the fastest to the slowest: each takes one pass more than the one before it.
_ORDER: Final = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
#: The fidelity that uses the bits of a weight; of bfloat16, HiFi2 drops the last bit or two.
_ENOUGH: Final = {"BFLOAT4_B": "LoFi", "BFLOAT8_B": "HiFi2", "BFLOAT16": "HiFi2"}
#: An op gets shorter with its products where these take most of its time.
_COMPUTES: Final = 0.5


@rule("TTP103", "fidelity-above-need", Severity.INFO, Input.OPS)
def fidelity_above_need(step: OpTable, *, share: Limit = Limit(0.02, "of a step", WORTH)) -> Answer:
    """Math fidelity is above what the weights need, in ops that compute most of their time.

    ## What it finds
    Matmuls and convolutions that are bound by computing, at a higher fidelity than the format of
    their second operand needs: LoFi for bfloat4_b, HiFi2 for bfloat8_b and, mostly, for bfloat16.

    ## Why it matters
    Fidelity is the number of passes over the mantissa: HiFi4 takes four times the multiplications
    of LoFi, for bits that a narrow weight does not have.

    ## What to do
    Begin with `math_fidelity=LoFi` where weights are bfloat8_b or bfloat4_b and with HiFi2 where
    they are bfloat16, check PCC, and raise it only in the layers that lose too much. It goes into
    the compute kernel config of the op.

    ## What it saves
    What computing takes at full speed on the cores that the op runs on, less what it takes at the
    lower fidelity. Ops that compute for less than half of their time wait for something else, and
    do not count.

    ## When it is no problem
    Some layers lose PCC through the activations. Sums of many products in bfloat16 may need HiFi4.

    ## Where it looks
    MATH FIDELITY, CORE COUNT, DEVICE ARCH, the operands and the kernel time of matmuls and
    convolutions in the op table, on the slowest device. Other ops are left out: those that move
    data report a fidelity that they do not use.
    """
    products, board = products_of(step), board_of(step)
    if not products:
        return Answer.not_applicable("no matmul and no convolution ran")
    known = [each for each in products if _enough(each.op) and each.op.fidelity in _ORDER]
    if not known:
        return Answer.not_measured("no matmul or convolution gives its fidelity and its weights")
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    saved = {each.row: _saved_ns(each, board) for each in known}
    above = [each for each in known if saved[each.row]]
    took = sum(each.op.kernel_ns for each in above)
    computing = sum(each.line.compute_ns or 0.0 for each in above)
    whole = step_ns(step) or 1.0
    return check_savings(
        step,
        {each.row: saved[each.row] for each in above},
        share,
        sentence=f"{percent(took / whole)} of a step goes into {counted(len(above), 'op')} bound "
        "by computing, with a higher fidelity than the weights need",
        arithmetic=f"computing in {microseconds(computing - sum(saved.values()))} instead of "
        f"{microseconds(computing)} at full speed",
        name=_advice,
    )


def _saved_ns(product: Product, board: Board) -> float:
    op, line = product.op, product.line
    enough, fraction = _enough(op), line.compute_fraction
    if enough is None or fraction is None or fraction < _COMPUTES or line.compute_ns is None:
        return 0.0
    if _ORDER.index(op.fidelity or "") <= _ORDER.index(enough):
        return 0.0
    shorter = line.compute_ns * board.tflops[op.fidelity or ""] / board.tflops[enough]
    # Moving the operands does not get shorter.
    return max(0.0, line.compute_ns - max(shorter, line.dram_ns or 0.0))


def _enough(op: Op) -> str | None:
    inputs = op.signature.inputs
    return _ENOUGH.get(inputs[1].dtype) if len(inputs) > 1 else None


def _advice(placed: Placed) -> str:
    op = placed.op
    dtype = op.signature.inputs[1].dtype
    return f"{op_name(op)}: {op.fidelity}, {_enough(op)} is enough for {dtype}"
