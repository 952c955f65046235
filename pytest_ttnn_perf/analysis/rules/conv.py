"""Convolutions: sharding, blocks, double buffers, efficiency."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.operands import sharding_in
from pytest_ttnn_perf.analysis.checklist.products import (
    TILE_ROWS,
    Product,
    best_known,
    is_convolution,
    no_roofline,
    products_of,
    shortfall_ns,
    unknown_chip,
)
from pytest_ttnn_perf.analysis.checklist.savings import (
    SHARE,
    advice_for,
    check_savings,
    critical_ops,
    kernel_ns,
    op_name,
    ops_like,
    share_of_step,
    step_ns,
    worst_ops,
)
from pytest_ttnn_perf.analysis.ops.names import block_heights, flag
from pytest_ttnn_perf.analysis.ops.roofline import board_of, size_of
from pytest_ttnn_perf.core.finding import (
    Answer,
    Evidence,
    Input,
    Limit,
    RuleOutcome,
    Severity,
    rule,
)
from pytest_ttnn_perf.core.text import counted, duration, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import OpPlace
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature

#: Why rules about convolutions say nothing of a program without any.
NO_CONVOLUTIONS: Final = "no convolutions"
_NOT_SHARDED: Final = "the capture does not say how convolutions are sharded"
_MOVE: Final = re.compile(r"reshard|interleaved_?to|sharded_?to", re.IGNORECASE)
#: What ATTRIBUTES call the switches of second buffers.
ACT_BUFFER: Final = "enable_act_double_buffer"
WEIGHTS_BUFFER: Final = "enable_weights_double_buffer"
#: What a convolution with its second buffers reaches of what its cores compute, at best; and from
#: where on there is nothing to gain from them.
_BUFFERED_AT: Final = 0.8
_NEAR_IT: Final = 0.6
#: By height, every core needs all weights: from that size on they do not fit beside the rest of L1.
_WEIGHTS_IN_L1: Final = 700_000.0
#: So many pixels for each channel, or channels for each pixel, make a shape tall, or deep.
_MANY: Final = 4


def _convolutions_of(step: OpTable) -> Sequence[Product]:
    return tuple(each for each in products_of(step) if is_convolution(each.op.signature))


def input_sharding(op: Op) -> str | None:
    """Return HEIGHT, WIDTH or BLOCK; None where the input is not sharded."""
    return sharding_in(op.signature.inputs[0].memory) if op.signature.inputs else None


@rule("TTP601", "conv-sharding-changes", Severity.WARNING, Input.OPS)
def conv_sharding_changes(
    step: OpTable,
    ops: OpTable,
    *,
    changes: Limit = Limit(1, "changes", "from many pixels to many channels, once"),
    share: Limit = SHARE,
) -> Answer:
    """Convolutions in a row are sharded differently.

    Finds how often a convolution is sharded otherwise than the one before it on the same device.
    Between two shardings the whole activation is sent from core to core.

    ## What to do
    Keep one `shard_layout` for a run of convolutions. Where the shape asks for another, change it
    once, at the place where the activation is smallest.

    ## What it saves
    The time of the ops that move the activation, between convolutions that are sharded differently.

    ## When it is no problem
    Most networks need one change, from many pixels to many channels. Where the moves take next to
    nothing of a step, nothing is found.
    """
    convolving = ops_like(ops, is_convolution)
    if not convolving:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    by_device: dict[int, list[tuple[Op, str]]] = defaultdict(list)
    for op in convolving:
        sharding = input_sharding(op)
        if sharding is not None:
            by_device[op.device].append((op, sharding))
    if not by_device:
        return Answer.not_measured(_NOT_SHARDED)
    rows = (
        [
            f"{op_name(op)}, {before} → {after}"
            for (_, before), (op, after) in pairwise(row)
            if before != after
        ]
        for row in by_device.values()
    )
    changed = max(rows, key=len)  # those of the device that has most of them
    count = counted(sum(map(len, by_device.values())), "convolution")
    moved = _moves_between(step)
    took, part = sum(moved.values()), sum(moved.values()) / (step_ns(step) or 1.0)
    told = f"the time of {counted(len(moved), 'move')} between them: {duration(took)}"
    answer = changes.at_most(
        float(len(changed)),
        f"the sharding changes {counted(len(changed), 'time')} from one convolution to the next, "
        f"in {count}",
        map(Evidence, changed),
    )
    if answer.outcome is RuleOutcome.FOUND and part <= share.value:
        return changes.clean(float(len(changed)), reason=f"{told}, {percent(part)} of a step")
    return answer.saving(moved, told)


def _moves_between(step: OpTable) -> dict[int, float]:
    """Return the ops between convolutions of different shardings that only move tensors."""
    found: dict[int, float] = {}
    since: dict[int, float] = {}
    before: str | None = None
    for row, op in critical_ops(step):
        if is_convolution(op.signature):
            sharding = input_sharding(op)
            if before is not None and sharding is not None and sharding != before:
                found.update(since)
            since, before = {}, sharding or before
        elif _MOVE.search(op.signature.op):
            since[row] = op.kernel_ns
    return found


def block_rows(op: Op) -> tuple[int | None, int | None]:
    """Return the rows of a block and of a core, if known."""
    tiles = block_heights(op.attributes)
    return (None, None) if tiles is None else (tiles[0] * TILE_ROWS, tiles[1] * TILE_ROWS)


@rule("TTP603", "double-buffer-off", Severity.INFO, Input.OPS)
def double_buffer_off(step: OpTable, *, share: Limit = SHARE) -> Answer:
    """Convolutions do not double-buffer what they read.

    Finds convolutions that run with `enable_act_double_buffer` or `enable_weights_double_buffer`
    off, and what of them reading can cost. With a second buffer, the next block is read while the
    one before is computed.

    ## What to do
    Set `enable_act_double_buffer=True` in `Conv2dConfig`, and `enable_weights_double_buffer=True`
    unless the convolution is sharded by height, which keeps all weights in L1. If the circular
    buffers then no longer fit, weigh it against a smaller `act_block_h_override`.

    ## What it saves
    At most the shorter of two: what computing takes at full speed on the cores in use, and the rest
    of the time; for weights alone, what reading them once takes at the peak bandwidth of DRAM. No
    convolution gets beyond 80 % of the peak of its cores, nor beyond the best of the same sharding
    and fidelity that has the second buffer; from 60 % on there is nothing to gain.

    ## When it is no problem
    Where L1 has no room for it, which an op table does not say.
    """
    convolving, board = _convolutions_of(step), board_of(step)
    if not convolving:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    keys = (ACT_BUFFER, WEIGHTS_BUFFER)
    if all(flag(each.op.attributes, key) is None for each in convolving for key in keys):
        return Answer.not_measured("the capture does not say what convolutions double-buffer")
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    saved: dict[int, float] = {}
    for key in keys:
        buffered = [each for each in convolving if flag(each.op.attributes, key)]
        for each in convolving:
            if flag(each.op.attributes, key) is False:
                hidden = _hidden_ns(each, key, board.dram_gb_s)
                if (ns := min(hidden, _room_ns(each, buffered))) > 0:
                    saved[each.row] = max(ns, saved.get(each.row, 0.0))
    count = counted(len(convolving), "convolution")
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{len(saved)} of {count} would read while they compute, with a second buffer",
        arithmetic="the shorter of computing at full speed and the rest of the time: at most "
        f"{duration(sum(saved.values()))}",
    )


def _hidden_ns(convolution: Product, key: str, peak_gb_s: float) -> float:
    """Return the time of reading that a second buffer could hide."""
    computing = convolution.line.compute_ns or 0.0
    rest = convolution.line.kernel_ns - computing
    if key == ACT_BUFFER:
        return min(computing, rest)
    if convolution.weights is None or input_sharding(convolution.op) == "HEIGHT":
        return 0.0
    return min(size_of(convolution.weights) / peak_gb_s, rest)


def _room_ns(convolution: Product, buffered: Sequence[Product]) -> float:
    """Return the possible gain, by buffered convolutions like it."""

    def kind(one: Product) -> tuple[object, ...]:
        return input_sharding(one.op), one.op.fidelity

    computing, reached = convolution.line.compute_ns, convolution.line.compute_fraction
    if computing is None or reached is None or reached >= _NEAR_IT:
        return 0.0
    alike = (each.line.compute_fraction for each in buffered if kind(each) == kind(convolution))
    best = max((part for part in alike if part is not None), default=_BUFFERED_AT)
    return convolution.op.kernel_ns - computing / min(best, _BUFFERED_AT)


_BATCH_NORM: Final = re.compile(r"batch_?norm", re.IGNORECASE)


@rule("TTP605", "batchnorm-not-folded", Severity.WARNING, Input.OPS)
def batchnorm_not_folded(
    step: OpTable,
    ops: OpTable,
    *,
    batch_norms: Limit = Limit(0, "batch norms", "each can be folded"),
) -> Answer:
    """Batch norms run as ops next to convolutions.

    Finds batch norms that run as ops of their own in a program with convolutions. Weights and bias
    of the convolution can do the same at no cost; an op of its own reads and writes the whole
    output.

    ## What to do
    Fold the batch norms into the weights before these are loaded, for instance with
    `fold_batch_norm2d_into_conv2d` of `ttnn.model_preprocessing`.

    ## What it saves
    The time of the batch norms of a step.

    ## When it is no problem
    A batch norm that no convolution precedes, or whose statistics change, cannot be folded. One
    that is written as products and sums is not seen.
    """
    convolving = ops_like(ops, is_convolution)
    if not convolving:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    norms = ops_like(ops, lambda one: _BATCH_NORM.search(one.op) is not None)
    if len(norms) <= batch_norms.value:
        reason = "no evidence: a batch norm written as products and sums is not seen"
        return batch_norms.clean(len(norms), reason=reason)
    beside = counted(len(convolving), "convolution")
    sentence = f"{counted(len(norms), 'batch norm')} beside {beside}"
    answer = batch_norms.found(len(norms), sentence, worst_ops(norms, of=kernel_ns(ops)))
    placed = critical_ops(step)
    saved = {row: op.kernel_ns for row, op in placed if _BATCH_NORM.search(op.signature.op)}
    took = duration(sum(saved.values()))
    return answer.saving(saved, f"the time of {counted(len(saved), 'batch norm')}: {took}")


@rule("TTP607", "low-conv-efficiency", Severity.WARNING, Input.OPS)
def low_conv_efficiency(
    step: OpTable,
    *,
    share: Limit = SHARE,
    efficiency: Limit = Limit(
        0.5, "of the roofline", "ttnn-visualizer-cli calls less low; real: 9 to 68 %"
    ),
) -> Answer:
    """Convolutions take much longer than they have to.

    Finds convolutions that take more than twice what the chip allows: the longer of reading their
    operands from DRAM, and of computing on the cores that they run on, at their fidelity.

    ## What to do
    Begin with the convolutions that are named, which lose most time, and with the settings named
    for them: a sharding that goes with the shape, a larger `act_block_h_override`, double
    buffering, weights in bfloat8_b. Shard by height with four times as many pixels as channels, by
    width with four times as many channels, by block between. Try it together with the neighbours: a
    reshard between two convolutions may cost more than it saves. `act_block_h_override` is a
    multiple of 32 that divides the rows of a core.

    ## What it saves
    The time of the convolution, less what it takes at the part of the roofline that the best one
    of the same step reaches, of 30 to 50 %.

    ## When it is no problem
    Small convolutions end before the device is up to speed. By height, every core needs all
    weights: where they are too large for that, no other sharding is named.
    """
    convolving = _convolutions_of(step)
    if not convolving:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    if all(each.least_ns is None for each in convolving):
        return Answer.not_measured(no_roofline(step, "convolution"))
    # Not more than the best of the same step: in real models it is 31 to 73 % of the roofline.
    best = max((each.least_ns or 0.0) / (each.op.kernel_ns or 1.0) for each in convolving)
    target = min(efficiency.value, max(best, _ALL_REACH))
    slow = [each for each in convolving if shortfall_ns(each, target)]
    took = sum(each.op.kernel_ns for each in slow)
    reached = sum(each.least_ns or 0.0 for each in slow) / took if took else 1.0

    def named(placed: OpPlace) -> str:
        settings = _settings_to_try(placed.op)
        return f"{op_name(placed.op)} ({settings})" if settings else op_name(placed.op)

    saved = {each.row: shortfall_ns(each, target) for each in slow}
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{counted(len(slow), 'convolution')} at {percent(reached)} of {best_known(step)}",
        arithmetic=f"{duration(took)} − {duration(took - sum(saved.values()))} at "
        f"{percent(target)} of {best_known(step)}",
        name=named,
    )


#: What the best convolutions of each of five real models reach at least, of the roofline.
_ALL_REACH: Final = 0.3


def _settings_to_try(op: Op) -> str:
    """Return the settings of a convolution that are not the usual best."""
    sharding, (rows, most) = input_sharding(op), block_rows(op)
    best = _suited_sharding(op)
    found = []
    if sharding and best and sharding != best:
        found.append(f"{sharding} → {best}")
    if rows and most and sharding != "WIDTH" and rows < most:
        found.append(f"act_block_h {rows} of {most} rows")
    if flag(op.attributes, ACT_BUFFER) is False:
        found.append("no double buffer")
    return ", ".join(found)


def _suited_sharding(op: Op) -> str | None:
    """Return the sharding that goes with the output; None if unknown."""
    shape = op.signature.outputs[0].shape if op.signature.outputs else ()
    if not shape or not prod(shape):
        return None
    pixels, channels = prod(shape[:-1]), shape[-1]
    if pixels >= _MANY * channels:
        weights = op.signature.inputs[1:2]
        return None if weights and size_of(weights[0]) > _WEIGHTS_IN_L1 else "HEIGHT"
    return "WIDTH" if channels >= _MANY * pixels else "BLOCK"


_SLICES: Final = re.compile(r"padded_?slice|slice_?write", re.IGNORECASE)
_CUTS: Final = re.compile(r"padded_?slice", re.IGNORECASE)
_FIT: Final = (
    "make it fit: activations in bfloat8_b, `deallocate_activation`, a smaller "
    "`act_block_h_override`, or fewer and larger slices in `Conv2dSliceConfig`"
)


@rule("TTP608", "sliced-convolutions", Severity.INFO, Input.OPS)
def sliced_convolutions(step: OpTable, *, share: Limit = SHARE) -> Answer:
    """Convolutions run slice by slice through DRAM.

    Finds the time of the ops that cut a slice out of an activation in DRAM for a convolution, and
    write its result back there. What does not fit into L1 is convolved slice by slice, each of
    which is read and written once more.

    ## What to do
    Make it fit: activations in bfloat8_b, `deallocate_activation`, a smaller
    `act_block_h_override`, or fewer and larger slices in `Conv2dSliceConfig`. An image of 3
    channels has 32 in TILE, and all of them are read to be cut: send it row-major, with channels
    padded to 8 or 16.

    ## What it saves
    At most the time of the ops that cut and write slices.

    ## When it is no problem
    The first convolutions of large images, which fit into no L1.
    """
    if not _convolutions_of(step):
        return Answer.not_applicable(NO_CONVOLUTIONS)
    ops = [(row, op) for row, op in critical_ops(step) if _SLICES.search(op.signature.op)]
    slices = {row: op.kernel_ns for row, op in ops}
    took = sum(slices.values())
    return check_savings(
        step,
        slices,
        share,
        sentence=f"{share_of_step(step, took)} of a step cuts slices for "
        "convolutions out of DRAM, and writes them back",
        arithmetic=f"at most the time of {counted(len(slices), 'op')}: {duration(took)}",
    ).with_fix(advice_for((_slice_advice(op.signature), op.kernel_ns) for _, op in ops))


def _slice_advice(signature: Signature) -> str:
    first = signature.inputs[0] if signature.inputs else None
    if first is None or first.layout != "TILE" or not first.logical:
        return _FIT
    channels, padded = first.logical[-1], first.padded[-1]
    if not _CUTS.search(signature.op) or channels > padded / 2:
        return _FIT
    wanted = 8 if channels <= 8 else 16
    return (
        f"send the image row-major, with channels padded to {wanted}: in TILE, {channels} are "
        f"{padded}"
    )
