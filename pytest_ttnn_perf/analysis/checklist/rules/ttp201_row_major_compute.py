"""Compute on row-major tensors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.captures.report_calls import device_tensor
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS, by_weight
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, OpTable, Signature, Tensor, category_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ttnn_report import Operation, Report

_COMPUTES: Final = frozenset({Category.MATMUL, Category.ELEMENTWISE, Category.NORM})
#: Ops that are made for rows: pooling, and searching them.
_MADE_FOR_ROWS: Final = re.compile(r"pool|arg_?max|top_?k|sampling", re.IGNORECASE)
#: What ops on rows save in tiles: of two captures of one model, GroupNorm is that much faster.
_IN_TILES: Final = 0.05
_FLOATS: Final = frozenset({"FLOAT32", "BFLOAT16"})


@rule("TTP201", "row-major-compute", Severity.WARNING, Input.OPS, Input.REPORT)
def row_major_compute(
    step: OpTable | None,
    report: Report | None,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    calls: Limit = Limit(0.02, "of compute calls", "as of the kernel time"),
) -> Answer:
    """Ops compute on row-major tensors.

    ## What it finds
    Matmuls, elementwise ops, norms and reductions whose first operand is row-major.

    ## Why it matters
    The engines work on tiles of 32 by 32. An op on rows turns them into tiles and back inside its
    own kernel, or works on a part of each tile.

    ## What to do
    Convert once, with `ttnn.to_layout(x, ttnn.TILE_LAYOUT)`, before the first of such ops, and let
    tensors stay in tiles.

    ## What it saves
    A twentieth of the time of these ops: norms of one model took 3 to 8 % less in tiles.

    ## When it is no problem
    Convolutions and pooling take rows by design, and are not counted; nor are indices, nor gammas
    and page tables, which are no first operands.

    ## Where it looks
    OP CODE, the layout of the first operand and the kernel time in the op table. A report database
    has no such times: there calls are counted.
    """
    if step is not None and has_operands(step):
        return _of_step(step, share)
    if report is not None:
        return _of_report(report, calls)
    return Answer.not_measured(NO_OPERANDS)


def _of_step(step: OpTable, share: Limit) -> Answer:
    on_rows = [placed for placed in critical_ops(step) if _on_rows(placed.op.signature)]
    took, ops = sum(op.kernel_ns for _, op in on_rows), counted(len(on_rows), "op")
    time = percent(took / (step_ns(step) or 1.0))
    return check_savings(
        step,
        {row: op.kernel_ns * _IN_TILES for row, op in on_rows},
        share,
        sentence=f"{time} of a step goes into {ops} on row-major tensors",
        arithmetic=f"{percent(_IN_TILES)} of the {microseconds(took)} of {ops}",
    )


def _of_report(report: Report, limit: Limit) -> Answer:
    calls = list(filter(_is_compute_call, report.completed))
    on_rows = [
        call
        for call in calls
        if any(_is_rows(device_tensor(report.tensors.get(at))) for at in call.inputs[:1])
    ]
    return limit.at_most(
        len(on_rows) / max(len(calls), 1),
        f"row-major tensors in {len(on_rows)} of {counted(len(calls), 'compute call')}",
        by_weight(((call.name, 1) for call in on_rows), unit="calls"),
    )


def _on_rows(signature: Signature) -> bool:
    inputs = signature.inputs
    return bool(inputs) and _is_rows(inputs[0]) and _computes(signature.op)


def _computes(op: str) -> bool:
    return category_of(op) in _COMPUTES and not _MADE_FOR_ROWS.search(op)


def _is_compute_call(operation: Operation) -> bool:
    if category_of(operation.name) is Category.CONV:
        return False  # one of 1 by 1 runs as a matmul, and takes rows like any other
    return any(map(_computes, operation.device_operations))


def _is_rows(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.layout == "ROW_MAJOR" and tensor.dtype in _FLOATS
