"""Analyses of data formats, fidelity, layouts and padding."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.analyses.analysis import (
    Kind,
    Part,
    by_bytes,
    by_time,
    section,
    with_rules,
)
from pytest_ttnn_perf.analysis.checklist.op_times import kernel_ns, op_name, ops_like
from pytest_ttnn_perf.analysis.checklist.operands import (
    BYTES,
    NO_OPERANDS,
    Weight,
    operands_of,
    products_in,
    shape_text,
    size_of,
    weights_in_report,
    weights_in_table,
)
from pytest_ttnn_perf.analysis.checklist.registry import rule_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.records.finding import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.analysis.checklist.analyses.analysis import Numbers
    from pytest_ttnn_perf.analysis.checklist.operands import Operand
    from pytest_ttnn_perf.records.finding import Section, Subject
    from pytest_ttnn_perf.records.ops import Op


_DTYPE_RULES: Final = {
    "weights wider than bfloat8_b": "TTP101",
    "float32": "TTP102",
    "outputs wider than bfloat16": "TTP104",
}


def _look_at_dtype(subject: Subject) -> Numbers | Answer:
    operands = operands_of(subject)
    if not operands:
        return Answer.not_measured(NO_OPERANDS)
    unknown = sorted({operand.tensor.dtype for operand in operands} - set(BYTES))
    return with_rules(
        subject,
        _DTYPE_RULES,
        by_bytes("operands", operands, lambda operand: operand.tensor.dtype, of="of operand bytes"),
        by_bytes(
            "ops",
            operands,
            lambda operand: f"{operand.op} {operand.tensor.dtype}",
            of="of operand bytes",
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
    parts = (Part(operand.tensor.dtype, size_of(operand.tensor)) for operand in found)
    yield section(heading, parts, unit="B", of="of weight bytes")


def _products(subject: Subject) -> Iterator[Section]:
    if subject.ops is not None:
        ops = [op for op in products_in(subject.ops) if len(op.signature.inputs) > 1]
        yield by_time("matmuls and convolutions", ops, _both_dtypes, of="of their time")


def _both_dtypes(op: Op) -> str:
    first, second, *_ = op.signature.inputs
    return f"{first.dtype} x {second.dtype}"


DTYPE: Final = Kind(
    "dtype", "data formats of what ops take and give", (Input.OPS, Input.REPORT), _look_at_dtype
)
_FIDELITY_OF: Final = "of matmul and conv time"
_OTHERS: Final = (
    "other ops are left out: those that move data report a fidelity that they do not use"
)


def _look_at_fidelity(subject: Subject) -> Numbers | Answer:
    assert subject.ops is not None
    products = list(products_in(subject.ops))
    if not products:
        return Answer.not_applicable("no matmul and no convolution ran")
    if all(op.fidelity is None for op in products):
        return Answer.not_measured("no matmul or convolution tells its fidelity")
    return with_rules(
        subject,
        {"fidelity above what weights need": "TTP103"},
        by_time("fidelity", products, _fidelity, of=_FIDELITY_OF),
        by_time("fidelity and weights", products, _with_weights, of=_FIDELITY_OF),
        by_time("ops", products, lambda op: f"{_fidelity(op)} {op_name(op)}", of=_FIDELITY_OF),
        notes=(_OTHERS,),
    )


def _fidelity(op: Op) -> str:
    return op.fidelity or "not told"


def _with_weights(op: Op) -> str:
    second = op.signature.inputs[1:2]
    return f"{_fidelity(op)}, {second[0].dtype if second else 'weights not told'}"


FIDELITY: Final = Kind(
    "fidelity", "math fidelity of matmuls and convolutions", (Input.OPS,), _look_at_fidelity
)
_LAYOUT_OF: Final = "of operand bytes"
#: Ops that turn rows into tiles, or tiles into rows.
_CONVERTS: Final = re.compile(r"tilize|to_?layout", re.IGNORECASE)


def _look_at_layout(subject: Subject) -> Numbers:
    rows = [operand for operand in operands_of(subject) if operand.tensor.layout == "ROW_MAJOR"]
    return with_rules(
        subject,
        {"conversions": "TTP203", "computing on rows": "TTP201"},
        by_bytes(
            "layouts", operands_of(subject), lambda operand: operand.tensor.layout, of=_LAYOUT_OF
        ),
        by_bytes(
            "ops with row-major operands", rows, lambda operand: operand.op, of="of such bytes"
        ),
        *_conversions(subject),
    )


def _conversions(subject: Subject) -> Iterator[Section]:
    if subject.ops is not None:
        ops = ops_like(subject.ops, lambda one: _CONVERTS.search(one.op) is not None)
        yield by_time("conversions", ops, whole=kernel_ns(subject.ops))


LAYOUT: Final = Kind(
    "layout", "layouts of tensors, and conversions", (Input.OPS, Input.REPORT), _look_at_layout
)
_UNIT, _PADDING_OF = "elements", "of the padding"


def _look_at_padding(subject: Subject) -> Numbers | Answer:
    answer = rule_of("TTP202").check(subject)
    if answer.value is None:
        return answer
    padded = [operand for operand in operands_of(subject) if _padding(operand) > 0]
    shapes = (Part(_shape(operand), _padding(operand), operand.times) for operand in padded)
    ops = (Part(operand.op, _padding(operand), operand.times) for operand in padded)
    return with_rules(
        subject,
        {"padding adds": "TTP202"},
        section("ops", ops, unit=_UNIT, of=_PADDING_OF),
        section("shapes", shapes, unit=_UNIT, of=_PADDING_OF),
    )


def _padding(operand: Operand) -> int:
    tensor = operand.tensor
    if tensor.layout != "TILE" or tensor.logical is None:
        return 0
    return operand.times * (prod(tensor.padded) - prod(tensor.logical))


def _shape(operand: Operand) -> str:
    tensor = operand.tensor
    return f"{operand.op} {shape_text(tensor.logical or ())} in {shape_text(tensor.padded)}"


PADDING: Final = Kind(
    "padding", "padding of tiled tensors", (Input.OPS, Input.REPORT), _look_at_padding
)
