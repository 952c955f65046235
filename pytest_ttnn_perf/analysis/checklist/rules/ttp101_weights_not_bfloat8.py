"""Weights in wider formats than they may need."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import percent, size
from pytest_ttnn_perf.analysis.checklist.operands import (
    Weight,
    by_weight,
    operands_of_products,
    shape_text,
    weights_in_report,
    weights_in_table,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, size_of
from pytest_ttnn_perf.records.finding import Input, Severity, Subject

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Tensor

_WIDE: Final = frozenset({"BFLOAT16", "FLOAT32"})


@rule("TTP101", "weights-not-bfloat8", Severity.WARNING, Input.REPORT, Input.OPS)
def weights_not_bfloat8(
    subject: Subject,
    *,
    share: Limit = Limit(
        0.1, "of weight bytes", "real models: a bfloat16 router 0.1 %, others 15 to 100 %"
    ),
) -> Answer:
    """Weights are stored in bfloat16 or float32.

    ## What it finds
    The share of the weights' memory that is in bfloat16 or float32, and how much less memory they
    would take as bfloat8_b: 1.88 times less than as bfloat16, since 16 elements share an exponent.

    ## Why it matters
    Weights are read from DRAM once per use. A matmul with few rows takes as long as that.

    ## What to do
    Load weights with `dtype=ttnn.bfloat8_b` (convolutions: `weights_dtype` of Conv2dConfig), then
    check PCC again. Feed-forward weights often stand bfloat4_b as well.

    ## When it is no problem
    Small weights, as of a router or of a norm, and layers whose PCC does not stand it.

    ## Where it looks
    The second operand of matmuls and convolutions, where it lies in DRAM. With a report database
    each weight counts once, and the sum is exact. An op table does not name tensors: weights that
    look the same count as one, so the sum is the least that is saved, and what looks like the
    output of some op is taken for an activation, as in attention.
    """
    weights, at_least = frozenset[Weight](), ""
    if subject.report is not None:
        weights = weights_in_report(subject.report)
    if not weights and subject.ops is not None:
        weights, at_least = weights_in_table(subject.ops), "at least "
    total = sum(size_of(weight.tensor) for weight in weights)
    if not total:
        return _without_weights(subject)
    wide = [weight.tensor for weight in weights if weight.tensor.dtype in _WIDE]
    part = sum(map(size_of, wide)) / total
    saved = size(sum(map(_saved, wide)))
    return share.at_most(
        part,
        f"{percent(part)} of the weight bytes are wider than bfloat8_b; "
        f"as bfloat8_b they take {at_least}{saved} less, 1.88 times less than bfloat16",
        by_weight(
            ((f"{shape_text(tensor.padded)} {tensor.dtype}", _saved(tensor)) for tensor in wide),
            unit="B saved",
        ),
    )


def _without_weights(subject: Subject) -> Answer:
    operands = operands_of_products(subject)
    if not operands:
        return Answer.not_applicable("no matmul and no convolution ran")
    if max(operands) < 2:
        return Answer.not_measured("no matmul or convolution tells its weights")
    return Answer.not_applicable("no weights lie in DRAM")


def _saved(tensor: Tensor) -> float:
    return prod(tensor.padded) * (BYTES[tensor.dtype] - BYTES["BFLOAT8_B"])
