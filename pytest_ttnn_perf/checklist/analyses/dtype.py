"""Data formats: of everything that ops take and give, of weights, and in matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import Part, by_bytes, by_time, section
from pytest_ttnn_perf.checklist.operands import BYTES, NO_OPERANDS, operands_of, size_of
from pytest_ttnn_perf.checklist.rule import not_measured
from pytest_ttnn_perf.checklist.rules.ttp101_weights_not_bfloat8 import WeightsNotBfloat8
from pytest_ttnn_perf.checklist.rules.ttp102_float32_tensors import Float32Tensors
from pytest_ttnn_perf.checklist.rules.ttp104_activations_above_bfloat16 import (
    ActivationsAboveBfloat16,
)
from pytest_ttnn_perf.checklist.weights import (
    Weight,
    products_in,
    weights_in_report,
    weights_in_table,
)
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.analysis import Section
    from pytest_ttnn_perf.model.ops import Op
    from pytest_ttnn_perf.model.subject import Subject

_RULES: Final = {
    "weights wider than bfloat8_b": WeightsNotBfloat8,
    "float32": Float32Tensors,
    "outputs wider than bfloat16": ActivationsAboveBfloat16,
}


def _look(subject: Subject) -> Numbers | Answer:
    operands = operands_of(subject)
    if not operands:
        return not_measured(NO_OPERANDS)
    unknown = sorted({each.tensor.dtype for each in operands} - set(BYTES))
    return judged(
        subject,
        _RULES,
        by_bytes("operands", operands, lambda each: each.tensor.dtype, of="of operand bytes"),
        by_bytes(
            "ops", operands, lambda each: f"{each.op} {each.tensor.dtype}", of="of operand bytes"
        ),
        *_weights(subject),
        *_products(subject),
        notes=(f"of unknown size: {', '.join(unknown)}",) if unknown else (),
    )


def _weights(subject: Subject) -> Iterator[Section]:
    found = frozenset[Weight]()
    heading = "weights, each once"
    if subject.report is not None:
        found = weights_in_report(subject.report)
    if not found and subject.ops is not None:
        found, heading = weights_in_table(subject.ops), "weights, alike ones once"
    parts = (Part(each.tensor.dtype, size_of(each.tensor)) for each in found)
    yield section(heading, parts, unit="B", of="of weight bytes")


def _products(subject: Subject) -> Iterator[Section]:
    if subject.ops is not None:
        ops = [op for op in products_in(subject.ops) if len(op.signature.inputs) > 1]
        yield by_time("matmuls and convolutions", ops, _formats, of="of their time")


def _formats(op: Op) -> str:
    first, second, *_ = op.signature.inputs
    return f"{first.dtype} x {second.dtype}"


DTYPE: Final = Kind(
    "dtype", "data formats of what ops take and give", (Input.OPS, Input.REPORT), _look
)
