"""What fills tiles up: the padding of tiled tensors, in elements."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import Part, section
from pytest_ttnn_perf.checklist.operands import operands_of, shape_text
from pytest_ttnn_perf.checklist.rules.ttp202_tile_padding import TilePadding
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.operands import Operand
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.subject import Subject

_UNIT, _OF = "elements", "of the padding"


def _look(subject: Subject) -> Numbers | Answer:
    answer = TilePadding().check(subject)
    if answer.value is None:
        return answer
    padded = [each for each in operands_of(subject) if _padding(each) > 0]
    shapes = (Part(_shape(each), _padding(each), each.times) for each in padded)
    ops = (Part(each.op, _padding(each), each.times) for each in padded)
    return judged(
        subject,
        {"padding adds": TilePadding},
        section("ops", ops, unit=_UNIT, of=_OF),
        section("shapes", shapes, unit=_UNIT, of=_OF),
    )


def _padding(operand: Operand) -> int:
    tensor = operand.tensor
    if tensor.layout != "TILE" or tensor.logical is None:
        return 0
    return operand.times * (prod(tensor.padded) - prod(tensor.logical))


def _shape(operand: Operand) -> str:
    tensor = operand.tensor
    return f"{operand.op} {shape_text(tensor.logical or ())} in {shape_text(tensor.padded)}"


PADDING: Final = Kind("padding", "padding of tiled tensors", (Input.OPS, Input.REPORT), _look)
