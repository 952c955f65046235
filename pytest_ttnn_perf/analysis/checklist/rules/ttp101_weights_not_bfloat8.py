"""Weights in wider formats than they may need."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import percent, size
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import TILE_ROWS, is_convolution
from pytest_ttnn_perf.analysis.checklist.op_times import worst_ops
from pytest_ttnn_perf.analysis.checklist.operands import (
    WORTH_BYTES,
    Weight,
    by_weight,
    if_worth,
    operands_of_products,
    shape_text,
    weights_in_report,
    weights_in_table,
)
from pytest_ttnn_perf.analysis.checklist.products import (
    products_of,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, check_savings, microseconds
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import (
    BYTES,
    Bound,
    board_of,
    board_of_arch,
    is_dram_sharded,
    size_of,
)
from pytest_ttnn_perf.records.finding import Input, RuleOutcome, Severity, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.products import (
        Product,
    )
    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.records.finding import Evidence
    from pytest_ttnn_perf.records.ops import OpTable, Tensor

_WIDE: Final = frozenset({"BFLOAT16", "FLOAT32"})


@rule("TTP101", "weights-not-bfloat8", Severity.WARNING, Input.REPORT, Input.OPS)
def weights_not_bfloat8(
    subject: Subject,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    wide: Limit = Limit(
        0.1, "of weight bytes", "real models: a bfloat16 router 0.1 %, others 15 to 100 %"
    ),
    worth: Limit = WORTH_BYTES,
) -> Answer:
    """Weights are stored in bfloat16 or float32.

    ## What it finds
    The share of the weights' memory that is in bfloat16 or float32, and what reading it takes. As
    bfloat8_b it is 1.88 times less than as bfloat16, since 16 elements share an exponent.

    ## Why it matters
    Weights are read from DRAM at least once per use. A matmul with few rows takes as long as that.

    ## What to do
    Load weights with `dtype=ttnn.bfloat8_b` (convolutions: `weights_dtype` of Conv2dConfig; matmuls
    of up to 32 rows on Blackhole: with DRAM-sharded weights, TTP311, or little is gained), then
    check PCC again. Feed-forward weights often stand bfloat4_b as well. Interleaved bfloat8_b is
    read slower on Blackhole than interleaved bfloat16: there only weights that are cut to the banks
    of DRAM gain what follows from their bytes.

    ## What it saves
    The bytes saved, as often as they are read, by the peak bandwidth of DRAM: at most down to what
    computing takes, and nothing of ops that are bound by computing. Where that is too little of a
    step because ops take far longer than reading and computing do, it is told all the same, for
    information, if reading takes the longer of both: once these ops are fast, their weights count.

    ## When it is no problem
    Small weights, as of a router or of a norm, and layers whose PCC does not stand it.

    ## Where it looks
    The second operand of matmuls and convolutions, where it lies in DRAM, in one step of the op
    table on the slowest device. An op table does not name tensors: what looks like the result of an
    op that computes is taken for an activation, as in attention; what ops make of a tensor that
    none of them computed, by tilizing, converting or moving it, is taken for a weight. With a
    report database alone, or a chip that is not known, the share of the bytes decides, unless
    reading what could be saved takes less than launching an op.
    """
    step = step_of(subject.ops) if subject.ops is not None else None
    board = board_of(step) if step is not None else None
    if step is not None and board is not None and _weight_bytes(products_of(step)):
        return _of_step(step, board, share, wide, worth)
    weights, at_least = frozenset[Weight](), ""
    if subject.report is not None:
        weights = weights_in_report(subject.report)
    if not weights and step is not None:
        weights, at_least = weights_in_table(step), "at least "
    total = sum(size_of(weight.tensor) for weight in weights)
    if not total:
        return _without_weights(subject)
    found = [weight.tensor for weight in weights if weight.tensor.dtype in _WIDE]
    part = sum(map(size_of, found)) / total
    saved_bytes = sum(map(_saved_bytes, found))
    saved = f"as bfloat8_b, weights would take {at_least}{size(saved_bytes)} less"
    answer = wide.at_most(
        part,
        f"{percent(part)} of the weight bytes are wider than bfloat8_b: {saved}",
        by_weight(
            (
                (f"{shape_text(tensor.padded)} {tensor.dtype}", _saved_bytes(tensor))
                for tensor in found
            ),
            unit="B saved",
        ),
    )
    answer = if_worth(answer, saved_bytes, worth)
    # An op table has times: where they do not say what it saves, it may be nothing.
    known = subject.ops is None or answer.outcome is not RuleOutcome.FOUND
    return answer if known else replace(answer, severity=Severity.INFO)


def _of_step(step: OpTable, board: Board, share: Limit, most_wide: Limit, worth: Limit) -> Answer:
    read = products_of(step)
    wide = [each for each in read if each.weights is not None and each.weights.dtype in _WIDE]
    part = _weight_bytes(wide) / _weight_bytes(read)
    less = sum(map(_saved_reads, wide))
    passes = max((each.line.work.passes for each in wide), default=1)
    again = f", up to {passes} times each," if passes > 1 else ""
    saved = {each.row: _saved_ns(each, board) for each in wide}
    answer = check_savings(
        step,
        {row: ns for row, ns in saved.items() if ns},
        share,
        sentence=f"{percent(part)} of the weight bytes that a step reads{again} are wider than "
        "bfloat8_b",
        arithmetic=f"{size(less)} less ÷ {board.dram_gb_s:g} GB/s, where reading binds: "
        f"{microseconds(sum(saved.values()))}",
    ).with_fix(_advice([each for each in wide if saved[each.row]], board))
    if answer.outcome is RuleOutcome.FOUND or part <= most_wide.value:
        return answer
    slow = [each for each in wide if _would_wait_for_weights(each)]
    if sum(map(_saved_reads, slow)) < worth.value:
        return answer
    told = (
        f"{percent(part)} of the {size(_weight_bytes(read))} of weights that a step reads are "
        "wider than bfloat8_b; no gain until other costs are fixed"
    )
    hidden = most_wide.found(part, told, _largest(slow))
    hidden = hidden.with_fix(_advice(slow, board))
    return replace(hidden, severity=Severity.INFO, always_told=True)


def _would_wait_for_weights(product: Product) -> bool:
    """Tell whether reading takes longer than computing does, where rows are not padded."""
    line, first = product.line, product.first
    if line.stale or line.dram_ns is None or first is None:
        return False
    rows, padded = prod((first.logical or first.padded)[:-1]), prod(first.padded[:-1])
    part = max(rows, TILE_ROWS) / padded if padded else 1.0
    return line.dram_ns > (line.compute_ns or 0.0) * min(part, 1.0)


def _largest(products: Iterable[Product]) -> Iterator[Evidence]:
    ops = (each.op for each in products)
    return worst_ops(ops, lambda op: _saved_bytes(op.signature.inputs[1]), of=None, unit="B saved")


def _weight_bytes(products: Iterable[Product]) -> float:
    return sum(size_of(each.weights) for each in products if each.weights is not None)


def _saved_ns(product: Product, board: Board) -> float:
    line = product.line
    if product.weights is None or line.stale or line.work.at_most or line.bound is Bound.COMPUTE:
        return 0.0
    saved = _saved_reads(product) / board.dram_gb_s
    return min(saved, max(0.0, line.kernel_ns - (line.compute_ns or 0.0)))


def _saved_reads(product: Product) -> float:
    """Return how many bytes less a product reads: each pass over its weights is shorter."""
    return _saved_bytes(product.weights) * product.line.work.passes if product.weights else 0.0


def _advice(wide: Sequence[Product], board: Board) -> str:
    """Return what to do with the products there are."""
    where = []
    if any(is_convolution(each.op.signature) for each in wide):
        where.append("convolutions: `weights_dtype` of Conv2dConfig")
    if any(_needs_shards(each, board) for each in wide):
        where.append(
            "matmuls of up to 32 rows on Blackhole: with DRAM-sharded weights, TTP311, or little "
            "is gained"
        )
    told = f" ({'; '.join(where)})" if where else ""
    return f"Load weights with `dtype=ttnn.bfloat8_b`{told}, then check PCC again."


def _needs_shards(product: Product, board: Board) -> bool:
    """Tell whether a matmul reads interleaved bfloat8_b slower than its bytes say."""
    few_rows = product.first is not None and prod(product.first.padded[:-1]) <= TILE_ROWS
    sharded = is_dram_sharded(product.op.attributes)
    return few_rows and not sharded and board == board_of_arch("blackhole")


def _without_weights(subject: Subject) -> Answer:
    operands = operands_of_products(subject)
    if not operands:
        return Answer.not_applicable("no matmul and no convolution ran")
    if max(operands) < 2:
        return Answer.not_measured("no matmul or convolution gives its weights")
    return Answer.not_applicable("no weights lie in DRAM")


def _saved_bytes(tensor: Tensor) -> float:
    return prod(tensor.padded) * (BYTES[tensor.dtype] - BYTES["BFLOAT8_B"])
