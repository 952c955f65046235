"""Compute on row-major tensors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands, ops_like, share_of, worst_ops
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS, by_weight, device_tensor
from pytest_ttnn_perf.analysis.checklist.rule import Rule, clean, found, limit, not_measured
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import OpTable, Signature, Tensor
    from pytest_ttnn_perf.records.ttnn_report import Operation, Report

_COMPUTES: Final = frozenset({Category.MATMUL, Category.ELEMENTWISE, Category.NORM})
#: Ops that are made for rows: pooling, and searching them.
_MADE_FOR_ROWS: Final = re.compile(r"pool|arg_?max|top_?k|sampling", re.IGNORECASE)
_FLOATS: Final = frozenset({"FLOAT32", "BFLOAT16"})


@dataclass(frozen=True, slots=True)
class RowMajorCompute(Rule):
    """Ops compute on row-major tensors.

    ## What it finds
    Matmuls, elementwise ops, norms and reductions whose first operand is row-major.

    ## Why it matters
    The engines work on tiles of 32 by 32. An op on rows turns them into tiles and back inside its
    own kernel, or works on a part of each tile.

    ## What to do
    Convert once, with `ttnn.to_layout(x, ttnn.TILE_LAYOUT)`, before the first of such ops, and let
    tensors stay in tiles.

    ## When it is no problem
    Convolutions and pooling take rows by design, and are not counted; nor are indices, nor gammas
    and page tables, which are no first operands.

    ## Where it looks
    OP CODE, the layout of the first operand and the kernel time in the op table. A report database
    has no such times: there calls are counted.
    """

    code: ClassVar[str] = "TTP201"
    name: ClassVar[str] = "row-major-compute"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS, Input.REPORT)

    share: float = limit(0.02, unit="of kernel time", source="real models in tiles: 0 %")
    calls: float = limit(0.02, unit="of compute calls", source="as of the kernel time")

    def check(self, subject: Subject) -> Answer:
        """Compare the share of ops on rows with the limit."""
        if subject.ops is not None and has_operands(subject.ops):
            return self._of_table(subject.ops)
        if subject.report is not None:
            return self._of_report(subject.report)
        return not_measured(NO_OPERANDS)

    def _of_table(self, table: OpTable) -> Answer:
        share = share_of(table, ops_like(table, _on_rows))
        if share.fraction <= self.share:
            return clean(share.fraction, limit=self.share, unit="of kernel time")
        return found(
            f"{share.told('op')} on row-major tensors",
            value=share.fraction,
            limit=self.share,
            unit="of kernel time",
            evidence=worst_ops(share.ops, of=share.total_ns),
        )

    def _of_report(self, report: Report) -> Answer:
        calls = list(filter(_is_compute_call, report.operations))
        on_rows = [
            call
            for call in calls
            if any(_is_rows(device_tensor(report.tensors.get(at))) for at in call.inputs[:1])
        ]
        share = len(on_rows) / max(len(calls), 1)
        if share <= self.calls:
            return clean(share, limit=self.calls, unit="of compute calls")
        return found(
            f"row-major tensors in {len(on_rows)} of {counted(len(calls), 'compute call')}",
            value=share,
            limit=self.calls,
            unit="of compute calls",
            evidence=by_weight(((call.name, 1) for call in on_rows), unit="calls"),
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
