"""Math fidelity of matmuls and convolutions, by their time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import by_time
from pytest_ttnn_perf.checklist.op_times import described
from pytest_ttnn_perf.checklist.rule import not_applicable, not_measured
from pytest_ttnn_perf.checklist.rules.ttp103_fidelity_above_need import FidelityAboveNeed
from pytest_ttnn_perf.checklist.weights import products_in
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.ops import Op
    from pytest_ttnn_perf.model.subject import Subject

_OF: Final = "of matmul and conv time"
_OTHERS: Final = (
    "other ops are left out: those that move data report a fidelity that they do not use"
)


def _look(subject: Subject) -> Numbers | Answer:
    assert subject.ops is not None
    products = list(products_in(subject.ops))
    if not products:
        return not_applicable("no matmul and no convolution ran")
    if all(op.fidelity is None for op in products):
        return not_measured("no matmul or convolution tells its fidelity")
    return judged(
        subject,
        {"fidelity above what weights need": FidelityAboveNeed},
        by_time("fidelity", products, _fidelity, of=_OF),
        by_time("fidelity and weights", products, _with_weights, of=_OF),
        by_time("ops", products, lambda op: f"{_fidelity(op)} {described(op)}", of=_OF),
        notes=(_OTHERS,),
    )


def _fidelity(op: Op) -> str:
    return op.fidelity or "not told"


def _with_weights(op: Op) -> str:
    second = op.signature.inputs[1:2]
    return f"{_fidelity(op)}, {second[0].dtype if second else 'weights not told'}"


FIDELITY: Final = Kind("fidelity", "math fidelity of matmuls and convolutions", (Input.OPS,), _look)
