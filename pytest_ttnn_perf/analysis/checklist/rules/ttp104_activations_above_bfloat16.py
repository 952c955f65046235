"""Activations wider than bfloat16."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.operands import check_float32, operands_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


@rule("TTP104", "activations-above-bfloat16", Severity.INFO, Input.OPS, Input.REPORT)
def activations_above_bfloat16(
    subject: Subject,
    *,
    share: Limit = Limit(0.01, "of output bytes", "real models: mostly below 1 %"),
) -> Answer:
    """Ops give results in float32.

    ## What it finds
    The share of float32 in the bytes that ops give, padding included.

    ## Why it matters
    Every op that takes such a result moves twice the bytes, and most compute at a lower precision
    anyway. Where ops give float32 without being asked, an input of theirs is float32.

    ## What to do
    Follow the evidence back to the first op that gives float32. Convert its input to bfloat16, or
    ask it for `dtype=ttnn.bfloat16`. Between ops that bear it, bfloat8_b halves the bytes again.

    ## When it is no problem
    A norm or softmax whose PCC needs it, and the last result of a model.

    ## Where it looks
    The data types of the outputs in the op table, or else in a report database. TTP102 looks at
    weights and inputs as well.
    """
    operands = [operand for operand in operands_of(subject) if operand.given]
    return check_float32(operands, share, what="give")
