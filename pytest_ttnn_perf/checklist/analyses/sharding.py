"""How tensors are cut: all operands, and those that one op makes and another one reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import Part, by_bytes, section
from pytest_ttnn_perf.checklist.op_times import described
from pytest_ttnn_perf.checklist.operands import NO_OPERANDS, operands_of, shape_text, size_of
from pytest_ttnn_perf.checklist.residency import activation_edges, activation_reads, is_interleaved
from pytest_ttnn_perf.checklist.rule import not_measured
from pytest_ttnn_perf.checklist.rules.ttp301_interleaved_activations import InterleavedActivations
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.ops import Tensor
    from pytest_ttnn_perf.model.report import Report
    from pytest_ttnn_perf.model.subject import Subject

_OF: Final = "of activation bytes"


def _look(subject: Subject) -> Numbers | Answer:
    operands = operands_of(subject)
    if not operands:
        return not_measured(NO_OPERANDS)
    reads = list(_reads(subject))
    whole = sum(size_of(tensor) for _, tensor in reads)
    cut = (Part(tensor.memory or "not told", size_of(tensor)) for _, tensor in reads)
    spread = (Part(name, size_of(tensor)) for name, tensor in reads if is_interleaved(tensor))
    return judged(
        subject,
        {"interleaved activations": InterleavedActivations},
        by_bytes(
            "operands",
            operands,
            lambda each: each.tensor.memory or "not told",
            of="of operand bytes",
        ),
        section("activations that ops read", cut, unit="B", of=_OF),
        section("interleaved activations", spread, unit="B", of=_OF, whole=whole),
    )


def _reads(subject: Subject) -> Iterator[tuple[str, Tensor]]:
    """Yield what reads an activation, and the activation."""
    if subject.ops is not None:
        for op, tensors in activation_reads(subject.ops):
            yield from ((described(op), tensor) for tensor in tensors)
    elif subject.report is not None:
        yield from _report_reads(subject.report)


def _report_reads(report: Report) -> Iterator[tuple[str, Tensor]]:
    names = {operation.id: operation.name for operation in report.operations}
    for edge, tensor in activation_edges(report):
        yield f"{names[edge.consumer]} {shape_text(tensor.logical or tensor.padded)}", tensor


SHARDING: Final = Kind(
    "sharding", "memory layouts of operands and activations", (Input.OPS, Input.REPORT), _look
)
