"""Matmuls and convolutions that compute more precisely than their weights are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.operands import by_weight, products_in
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Op, OpTable

#: Fidelities from the fastest to the slowest: each takes one pass more than the one before it.
_ORDER: Final = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
#: The fidelity that uses all bits of a weight.
_ENOUGH: Final = {
    "BFLOAT4_B": "LoFi",
    "BFLOAT8_B": "HiFi2",
    "BFLOAT16": "HiFi4",
    "FLOAT32": "HiFi4",
}


@rule("TTP103", "fidelity-above-need", Severity.INFO, Input.OPS)
def fidelity_above_need(
    ops: OpTable,
    *,
    share: Limit = Limit(0.05, "of matmul and conv time", "less is not worth a search for PCC"),
) -> Answer:
    """Math fidelity is above what the weights can use.

    ## What it finds
    The share of the time of matmuls and convolutions whose fidelity is higher than the format of
    their second operand needs: LoFi for bfloat4_b, HiFi2 for bfloat8_b, HiFi4 for bfloat16.

    ## Why it matters
    Fidelity is the number of passes over the mantissa: HiFi4 takes four times the multiplications
    of LoFi, for bits that a narrow weight does not have.

    ## What to do
    Pass a compute kernel config with the lower `math_fidelity`, then check PCC and time again.
    These are candidates: only measuring tells whether an op gets faster, and whether PCC holds.

    ## When it is no problem
    Ops that wait for memory do not get faster. Some layers lose PCC through the activations.

    ## Where it looks
    MATH FIDELITY, the data type of the second operand and the kernel time of matmuls and
    convolutions in the op table. Other ops are left out: those that move data report a fidelity
    that they do not use.
    """
    products = list(products_in(ops))
    if not products:
        return Answer.not_applicable("no matmul and no convolution ran")
    known = [op for op in products if _enough(op) and op.fidelity in _ORDER]
    total = sum(op.kernel_ns for op in known)
    if not total:
        return Answer.not_measured("no matmul or convolution tells its fidelity and its weights")
    above = [op for op in known if _is_above(op)]
    part = sum(op.kernel_ns for op in above) / total
    return share.at_most(
        part,
        f"{percent(part)} of the matmul and conv time goes into {counted(len(above), 'op')} "
        "with a higher fidelity than the weights need",
        by_weight(((_advice(op), op.kernel_ns) for op in above), unit="ns", of=total),
    )


def _enough(op: Op) -> str | None:
    inputs = op.signature.inputs
    return _ENOUGH.get(inputs[1].dtype) if len(inputs) > 1 else None


def _is_above(op: Op) -> bool:
    return _ORDER.index(op.fidelity or "") > _ORDER.index(_enough(op) or "")


def _advice(op: Op) -> str:
    dtype = op.signature.inputs[1].dtype
    return f"{op_name(op)}: {op.fidelity}, {_enough(op)} is enough for {dtype}"
