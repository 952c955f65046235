"""Ops that only cut tensors anew: what they cost, and where a report sees them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import Part, by_time, section
from pytest_ttnn_perf.checklist.op_times import kernel_ns, ops_like
from pytest_ttnn_perf.checklist.report_operations import called
from pytest_ttnn_perf.checklist.rules.ttp302_resharding import Resharding
from pytest_ttnn_perf.model.analysis import Row, Section
from pytest_ttnn_perf.model.attribution import short_code
from pytest_ttnn_perf.model.report import Reshard
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.model.ops import Op, OpTable
    from pytest_ttnn_perf.model.report import Report
    from pytest_ttnn_perf.model.subject import Subject

_MOVES: Final = re.compile(r"reshard|interleaved_?to_?sharded|sharded_?to_?interleaved", re.I)
_WORDS: Final = {
    Reshard.NONE: "no reshard",
    Reshard.EXPLICIT: "asked for",
    Reshard.HIDDEN: "hidden inside another operation",
    Reshard.UNKNOWN: "not told",
}


def _look(subject: Subject) -> Numbers:
    table, report = subject.ops, subject.report
    by_cost = judged(subject, {"moving tensors": Resharding}, *(_costs(table) if table else ()))
    if report is None or table is None:
        return replace(by_cost, sections=(*by_cost.sections, *(_seen(report) if report else ())))
    counted = judged(replace(subject, ops=None), {"moves in the report": Resharding})
    return replace(
        by_cost,
        figures=(*by_cost.figures, *counted.figures),
        sections=(*by_cost.sections, *_seen(report)),
        notes=(*by_cost.notes, *counted.notes),
    )


def _costs(table: OpTable) -> Iterator[Section]:
    ops = ops_like(table, lambda one: _MOVES.search(one.op) is not None)
    whole = kernel_ns(table)
    yield by_time("kinds", ops, lambda op: short_code(op.signature.op), whole=whole)
    yield by_time("ways", ops, _way, whole=whole)
    yield by_time("ops", ops, whole=whole)


def _way(op: Op) -> str:
    inputs, outputs = op.signature.inputs, op.signature.outputs
    return f"{inputs[0].memory} to {outputs[0].memory}" if inputs and outputs else "not told"


def _seen(report: Report) -> Iterator[Section]:
    """Yield what a report tells; it knows no times."""
    operations = report.operations
    kinds = (Part(_WORDS[each.reshard], 1) for each in operations)
    yield section("operations of the report", kinds, unit="operations", of="of operations")
    moves = tuple(
        Row(f"{called(report, each)}, {_WORDS[each.reshard]}", 1.0)
        for each in operations
        if each.reshard in {Reshard.EXPLICIT, Reshard.HIDDEN}
    )
    yield Section("reshards of the report", "operations", moves)


RESHARDS: Final = Kind(
    "reshards", "ops that only cut tensors anew", (Input.OPS, Input.REPORT), _look
)
