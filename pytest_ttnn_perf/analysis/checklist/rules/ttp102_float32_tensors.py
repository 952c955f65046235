"""Tensors of 32 bits per element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf.analysis.checklist.operands import judged_float32, operands_of
from pytest_ttnn_perf.analysis.checklist.rule import Rule, limit
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject


@dataclass(frozen=True, slots=True)
class Float32Tensors(Rule):
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

    code: ClassVar[str] = "TTP102"
    name: ClassVar[str] = "float32-tensors"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS, Input.REPORT)

    share: float = limit(0.01, unit="of operand bytes", source="real models: mostly below 1 %")

    def check(self, subject: Subject) -> Answer:
        """Compare the share of float32 with the limit."""
        operands = operands_of(subject)
        return judged_float32(
            operands, at_most=self.share, unit="of operand bytes", what="take and give"
        )
