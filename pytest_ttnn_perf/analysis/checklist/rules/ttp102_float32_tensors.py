"""Tensors of 32 bits per element."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.operands import check_float32, operands_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


@rule("TTP102", "float32-tensors", Severity.WARNING, Input.OPS, Input.REPORT)
def float32_tensors(
    subject: Subject,
    *,
    share: Limit = Limit(0.01, "of operand bytes", "real models: mostly below 1 %"),
) -> Answer:
    """Ops work on float32 tensors.

    ## What it finds
    The share of float32 in the bytes of everything that ops take and give, padding included. A
    tensor counts each time that an op takes or gives it.

    ## Why it matters
    A float32 tensor takes twice the memory and the transfers of bfloat16, and matrix engines work
    on no more than 19 bits of an element.

    ## What to do
    Convert to bfloat16 on the host, or load with `dtype=ttnn.bfloat16`. To sum up in float32, set
    `fp32_dest_acc_en` of the compute kernel config; the tensors stay bfloat16.

    ## When it is no problem
    Recurrent states, logits of a loss, and other small tensors whose precision is needed.

    ## Where it looks
    The data types of all operands of the op table, or else of a report database.
    """
    return check_float32(operands_of(subject), share, what="take and give")
