"""Batch norms that could be part of a convolution."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import NO_CONVOLUTIONS, convolutions
from pytest_ttnn_perf.analysis.checklist.op_times import kernel_ns, ops_like, worst_ops
from pytest_ttnn_perf.analysis.checklist.residency import operation_name
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import critical_ops, microseconds
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable


_BATCH_NORM: Final = re.compile(r"batch_?norm", re.IGNORECASE)


@rule("TTP605", "batchnorm-not-folded", Severity.WARNING, Input.OPS, Input.REPORT)
def batchnorm_not_folded(
    subject: Subject, *, batch_norms: Limit = Limit(0, "batch norms", "each can be folded")
) -> Answer:
    """Batch norms run beside convolutions.

    ## What it finds
    Batch norms that run as ops of their own in a program with convolutions.

    ## Why it matters
    In inference, a batch norm after a convolution only scales and shifts its output. Weights and
    bias of the convolution can do that at no cost; an op of its own reads and writes all of it.

    ## What to do
    Fold the batch norms into the weights before these are loaded, for instance with
    `fold_batch_norm2d_into_conv2d` of `ttnn.model_preprocessing`.

    ## What it saves
    The time of the batch norms of a step.

    ## When it is no problem
    A batch norm that no convolution precedes, or whose statistics change, cannot be folded.

    ## Where it looks
    OP CODE in the op table or, without a table, the operations of a report database. A batch norm
    that is written as products and sums is not seen: a clean answer says that none was seen, not
    that there is none.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    count, evidence = _batch_norms(subject)
    if count <= batch_norms.value:
        reason = "no evidence: a batch norm written as products and sums is not seen"
        return batch_norms.clean(count, reason=reason)
    beside = counted(len(listed), "convolution")
    answer = batch_norms.found(count, f"{counted(count, 'batch norm')} beside {beside}", evidence)
    if subject.ops is None:
        return answer
    saved = {
        row: op.kernel_ns
        for row, op in critical_ops(step_of(subject.ops))
        if _BATCH_NORM.search(op.signature.op)
    }
    took = microseconds(sum(saved.values()))
    return answer.saving(saved, f"the time of {counted(len(saved), 'batch norm')}: {took}")


def _batch_norms(subject: Subject) -> tuple[int, Iterable[Evidence]]:
    if subject.ops is not None:
        ops = ops_like(subject.ops, lambda one: _BATCH_NORM.search(one.op) is not None)
        return len(ops), worst_ops(ops, of=kernel_ns(subject.ops))
    report = subject.report
    assert report is not None
    operations = [operation for operation in report.completed if _BATCH_NORM.search(operation.name)]
    return len(operations), (
        Evidence(operation_name(report, operation)) for operation in operations
    )
