"""How tensors are cut: all operands, and those that one op makes and another one reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import Part, by_bytes, section
from pytest_ttnn_perf.checklist.operands import NO_OPERANDS, Operand, operands_of, shape_text
from pytest_ttnn_perf.checklist.residency import (
    activation_edges,
    activation_operands,
    is_interleaved,
)
from pytest_ttnn_perf.checklist.rule import not_measured
from pytest_ttnn_perf.checklist.rules.ttp301_interleaved_activations import InterleavedActivations
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.report import Report
    from pytest_ttnn_perf.model.subject import Subject

_OF: Final = "of activation bytes"


def _look(subject: Subject) -> Numbers | Answer:
    operands = operands_of(subject)
    if not operands:
        return not_measured(NO_OPERANDS)
    reads = list(_reads(subject))
    whole = sum(each.size for each in reads)
    spread = (each for each in reads if is_interleaved(each.tensor))
    return judged(
        subject,
        {"interleaved activations": InterleavedActivations},
        by_bytes("operands", operands, _memory, of="of operand bytes"),
        by_bytes("activations that ops read", reads, _memory, of=_OF),
        section(
            "interleaved activations",
            (Part(each.op, each.size, each.times) for each in spread),
            unit="B",
            of=_OF,
            whole=whole,
        ),
    )


def _memory(operand: Operand) -> str:
    return operand.tensor.memory or "not told"


def _reads(subject: Subject) -> Iterator[Operand]:
    """Yield what reads an activation, and the activation."""
    if subject.ops is not None:
        yield from activation_operands(subject.ops)
    elif subject.report is not None:
        yield from _report_reads(subject.report)


def _report_reads(report: Report) -> Iterator[Operand]:
    names = {operation.id: operation.name for operation in report.operations}
    for edge, tensor in activation_edges(report):
        name = f"{names[edge.consumer]} {shape_text(tensor.logical or tensor.padded)}"
        yield Operand(name, tensor, 1, given=False)


SHARDING: Final = Kind(
    "sharding", "memory layouts of operands and activations", (Input.OPS, Input.REPORT), _look
)
