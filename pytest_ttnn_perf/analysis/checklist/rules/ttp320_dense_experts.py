"""Experts that are all computed although a router chooses a few."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.products import matmuls_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
)
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.products import Product
    from pytest_ttnn_perf.records.ops import OpTable, Tensor

_TOP_K: Final = re.compile(r"top_?k", re.IGNORECASE)
#: What takes the choice of a router, and how soon after it.
_TAKES: Final = re.compile(r"slice|softmax|sigmoid|untilize|scatter|gather", re.IGNORECASE)
_SOON: Final = 12


@rule("TTP320", "dense-experts", Severity.WARNING, Input.OPS)
def dense_experts(
    step: OpTable,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    more: Limit = Limit(
        2, "experts per chosen one", "a choice: fewer are hardly worth leaving out"
    ),
) -> Answer:
    """All experts are computed, and a router chooses a few of them.

    ## What it finds
    Matmuls with a matrix for each expert, in a step whose router keeps the top few of as many
    experts: what the others give is multiplied with zero.

    ## Why it matters
    Of 32 experts with the top 4 of them, seven eighths of the weights are read, and of the products
    computed, for nothing.

    ## What to do
    Compute only the experts that the router chose: `ttnn.sparse_matmul` with the router's choice as
    its sparsity, or an op that is made for experts.

    ## What it saves
    The time of these matmuls, but for the part of the experts that are chosen: at most as many for
    each token as the router keeps. With many tokens all weights are read by some of them, and no
    matmul gets shorter than reading them takes.

    ## When it is no problem
    Prompts that are so long that every expert has work for all cores.

    ## Where it looks
    TopK, what the ops after it take of its result, the matmul of the router, and the matmuls whose
    second operand has one matrix for each output of it, in the op table, on the slowest device.
    TTNN widens what TopK gives to 32: what is kept is the narrowest that is taken of it.
    """
    matmuls = matmuls_of(step)
    router = _router(step, matmuls)
    if router is None:
        return Answer.not_applicable("no router chooses experts")
    if router.experts < more.value * router.chosen:
        return Answer.not_applicable(f"{router.chosen} of {router.experts} experts are chosen")
    dense = [each for each in matmuls if _experts(each) == router.experts]
    saved = {each.row: _saved_ns(each, router) for each in dense}
    took = sum(each.op.kernel_ns for each in dense)
    tokens = counted(router.tokens, "token")
    return check_savings(
        step,
        {row: ns for row, ns in saved.items() if ns > 0},
        share,
        sentence=f"{counted(len(dense), 'matmul')} over all {router.experts} experts, of which "
        f"the router chooses {router.chosen} for {tokens if router.tokens == 1 else 'each token'}",
        arithmetic=f"{microseconds(took)} − {microseconds(took - sum(saved.values()))} for the "
        f"experts that are chosen by {tokens}",
    )


class _Router(NamedTuple):
    experts: int
    chosen: int
    tokens: int


def _router(step: OpTable, matmuls: Sequence[Product]) -> _Router | None:
    """Return what chooses among as many experts as matmuls have matrices; None without one."""
    chosen = _kept(step)
    counts = {_experts(each) for each in matmuls} - {1}
    if chosen is None:
        return None
    for each in matmuls:
        outputs, first = each.op.signature.outputs, each.first
        if outputs and first is not None and _experts(each) == 1:
            experts = _shape(outputs[0])[-1]
            if experts in counts:
                return _Router(experts, chosen, prod(_shape(first)[:-1]))
    return None


def _kept(step: OpTable) -> int | None:
    """Return how many are kept of what TopK gives: the narrowest that is taken of it."""
    widths: list[int] = []
    ops = critical_ops(step)
    for at, (_, op) in enumerate(ops):
        if _TOP_K.search(op.signature.op) and op.signature.outputs:
            given = op.signature.outputs[0]
            widths.append(_shape(given)[-1])
            for _, after in ops[at + 1 : at + 1 + _SOON]:
                if _TAKES.search(after.signature.op):
                    taken = (*after.signature.inputs, *after.signature.outputs)
                    widths += [_shape(each)[-1] for each in taken if each.padded == given.padded]
    return min(widths, default=None)


def _experts(matmul: Product) -> int:
    """Return how many matrices the weights of a matmul have; 1 where they are not told."""
    return 1 if matmul.weights is None else prod(matmul.weights.padded[:-2])


def _saved_ns(matmul: Product, router: _Router) -> float:
    took = matmul.op.kernel_ns
    used = router.chosen * router.tokens
    if used < router.experts:
        return took * (1 - used / router.experts)
    reading = matmul.line.dram_ns or took
    return took - max(took * router.chosen / router.experts, min(reading, took))


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tensor.logical or tensor.padded
