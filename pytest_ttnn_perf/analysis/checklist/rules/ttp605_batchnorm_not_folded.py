"""Batch norms that could be part of a convolution."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import NO_CONVOLUTIONS, convolutions
from pytest_ttnn_perf.analysis.checklist.op_times import kernel_ns, ops_like, worst_ops
from pytest_ttnn_perf.analysis.checklist.residency import called
from pytest_ttnn_perf.analysis.checklist.rule import Rule, clean, found, limit, not_applicable
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Signature

_BATCH_NORM: Final = re.compile(r"batch_?norm", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BatchnormNotFolded(Rule):
    """Batch norms run beside convolutions.

    ## What it finds
    Batch norms that run as ops of their own in a program with convolutions.

    ## Why it matters
    In inference, a batch norm after a convolution only scales and shifts its output. Weights and
    bias of the convolution can do that at no cost; an op of its own reads and writes all of it.

    ## What to do
    Fold the batch norms into the weights before these are loaded, for instance with
    `fold_batch_norm2d_into_conv2d` of `ttnn.model_preprocessing`.

    ## When it is no problem
    A batch norm that no convolution precedes, or whose statistics change, cannot be folded.

    ## Where it looks
    OP CODE in the op table or, without a table, the operations of a report database. A batch norm
    that is written as products and sums is not seen: a clean answer says that none was seen, not
    that there is none.
    """

    code: ClassVar[str] = "TTP605"
    name: ClassVar[str] = "batchnorm-not-folded"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS, Input.REPORT)

    batch_norms: float = limit(0, unit="batch norms", source="each can be folded")

    def check(self, subject: Subject) -> Answer:
        """Compare the number of batch norms with the limit."""
        listed = convolutions(subject)
        if not listed:
            return not_applicable(NO_CONVOLUTIONS)
        count, evidence = _batch_norms(subject)
        if count <= self.batch_norms:
            reason = "no evidence: a batch norm written as products and sums is not seen"
            return clean(count, limit=self.batch_norms, unit="batch norms", reason=reason)
        return found(
            f"{counted(count, 'batch norm')} beside {counted(len(listed), 'convolution')}",
            value=count,
            limit=self.batch_norms,
            unit="batch norms",
            evidence=evidence,
        )


def _batch_norms(subject: Subject) -> tuple[int, tuple[Evidence, ...]]:
    if subject.ops is not None:
        ops = ops_like(subject.ops, _is_batch_norm)
        return len(ops), worst_ops(ops, of=kernel_ns(subject.ops))
    report = subject.report
    assert report is not None
    operations = [each for each in report.operations if _BATCH_NORM.search(each.name)]
    return len(operations), tuple(Evidence(called(report, each)) for each in operations)


def _is_batch_norm(signature: Signature) -> bool:
    return _BATCH_NORM.search(signature.op) is not None
