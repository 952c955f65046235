"""Tensors of 32 bits per element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent, size
from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_OPERANDS,
    WORTH_BYTES,
    by_weight,
    if_worth,
    loading_rows,
    operands_of,
    shape_text,
)
from pytest_ttnn_perf.analysis.checklist.residency import is_transfer
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
)
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import board_of, in_dram, rooflines, size_of
from pytest_ttnn_perf.records.finding import Input, Severity, Subject

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.records.ops import OpTable, Signature, Tensor
    from pytest_ttnn_perf.records.ttnn_report import Report

_FLOAT32: Final = "FLOAT32"


@rule("TTP102", "float32-tensors", Severity.WARNING, Input.OPS, Input.REPORT)
def float32_tensors(
    subject: Subject,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    wide: Limit = Limit(0.01, "of operand bytes", "real models: mostly below 1 %"),
    worth: Limit = WORTH_BYTES,
) -> Answer:
    """Ops work on float32 tensors.

    ## What it finds
    The share of float32 in the bytes of everything that ops take and give, padding included, and
    what it costs. A tensor counts each time that an op takes or gives it.

    ## Why it matters
    A float32 tensor takes twice the memory and the transfers of bfloat16, and matrix engines work
    on no more than 19 bits of an element.

    ## What to do
    Convert to bfloat16 on the host, or load with `dtype=ttnn.bfloat16`; begin with the first op
    that gives float32, since others follow. To sum up in float32, set `fp32_dest_acc_en` of the
    compute kernel config; the tensors stay bfloat16.

    ## What it saves
    Half of the float32 bytes in DRAM, by the peak bandwidth, and the time of conversions between
    float32 and another format.

    ## When it is no problem
    Recurrent states, logits of a loss, and other small tensors whose precision is needed. What is
    only read by the host does not count in a report.

    ## Where it looks
    The data types of all operands in one step of the op table, on the slowest device. With a
    report database alone, or a chip that is not known, the share of the bytes decides, unless
    moving what could be saved takes less than launching an op.
    """
    step = step_of(subject.ops) if subject.ops is not None else None
    board = board_of(step) if step is not None else None
    operands = operands_of(subject)
    total = sum(operand.size for operand in operands)
    if not total:
        return Answer.not_measured(NO_OPERANDS)
    if subject.ops is not None and step is not None and board is not None:
        # A capture without a window holds loading: what is converted there is no part of a step.
        loaded = frozenset() if subject.ops.windowed else loading_rows(step)
        return _of_step(step, board, share, loaded)
    counted_in = None if subject.report is None else _computed_with(subject.report)
    found = [
        operand
        for operand in operands
        if operand.tensor.dtype == _FLOAT32
        and (counted_in is None or operand.number is None or operand.number in counted_in)
    ]
    saved_bytes = sum(operand.size for operand in found) / 2
    part = sum(operand.size for operand in found) / total
    answer = wide.at_most(
        part,
        f"{percent(part)} of the bytes that ops take and give are float32",
        by_weight(
            ((f"{each.op} {shape_text(each.tensor.padded)}", each.size) for each in found),
            unit="B",
        ),
    )
    return if_worth(answer, saved_bytes, worth)


def _computed_with(report: Report) -> frozenset[int]:
    """Return the tensors that an operation other than a transfer reads."""
    reading = (each for each in report.completed if not is_transfer(each))
    return frozenset(number for each in reading for number in each.inputs)


def _of_step(step: OpTable, board: Board, share: Limit, loaded: frozenset[int]) -> Answer:
    lines = rooflines(step)
    ops = [placed for placed in critical_ops(step) if placed.row not in loaded]
    halved: dict[int, float] = {}
    saved: dict[int, float] = {}
    conversions = 0
    for row, op in ops:
        line = lines[row]
        if _converts(op.signature):
            saved[row] = op.kernel_ns
            conversions += 1
        elif not line.stale and not line.work.at_most and line.dram_ns:
            halved[row] = _float32_bytes(op.signature) / 2
            saved[row] = min(halved[row] / board.dram_gb_s, op.kernel_ns)
    total = sum(sum(map(size_of, _operands(op.signature))) for _, op in ops)
    wide = sum(
        size_of(tensor)
        for _, op in ops
        for tensor in _operands(op.signature)
        if tensor.dtype == _FLOAT32
    )
    part = percent(wide / total if total else 0.0)
    converting = sum(saved[row] for row in saved.keys() - halved.keys())
    return check_savings(
        step,
        {row: ns for row, ns in saved.items() if ns},
        share,
        sentence=f"{part} of the bytes that ops of a step take and give are float32",
        arithmetic=f"{size(sum(halved.values()))} less ÷ {board.dram_gb_s:g} GB/s + "
        f"{microseconds(converting)} of {counted(conversions, 'conversion')}",
    )


def _operands(signature: Signature) -> tuple[Tensor, ...]:
    return (*signature.inputs, *signature.outputs)


def _float32_bytes(signature: Signature) -> float:
    return sum(
        size_of(each) for each in _operands(signature) if each.dtype == _FLOAT32 and in_dram(each)
    )


def _converts(signature: Signature) -> bool:
    """Tell whether an op turns float32 into another format of floats, or back."""
    formats = {each.dtype for each in _operands(signature)}
    floats = all("FLOAT" in each for each in formats)
    return (
        "typecast" in signature.op.lower() and _FLOAT32 in formats and len(formats) > 1 and floats
    )
