"""Convolutions that run slice by slice through DRAM."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.matmuls import (
    ACT_BUFFER,
    NO_CONVOLUTIONS,
    WEIGHTS_BUFFER,
    ActBlock,
    Convolution,
    Product,
    best_known,
    blocks_in_report,
    blocks_in_table,
    check_double_buffers,
    check_switches,
    convolutions,
    convolutions_of,
    heaviest,
    is_convolution,
    no_roofline,
    output_shape,
    settings_to_try,
    shortfall_ns,
    step_on_known_chip,
    suited_sharding,
    whole_ns,
)
from pytest_ttnn_perf.analysis.checklist.op_times import kernel_ns, op_name, ops_like, worst_ops
from pytest_ttnn_perf.analysis.checklist.operands import operation_name, reshards, sharding_in
from pytest_ttnn_perf.analysis.checklist.savings import (
    LAUNCH_NS,
    WORTH,
    advice_for,
    check_savings,
    critical_ops,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import board_of, size_of
from pytest_ttnn_perf.core.finding import (
    Answer,
    Evidence,
    Input,
    Limit,
    RuleOutcome,
    Severity,
    Subject,
    rule,
)
from pytest_ttnn_perf.core.text import counted, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.analysis.readers.report_db import Report
    from pytest_ttnn_perf.core.ops import OpTable, Signature, Tensor


# Convolutions in a row that are sharded differently.

_MOVE: Final = re.compile(r"reshard|interleaved_?to|sharded_?to", re.IGNORECASE)


@rule("TTP601", "conv-sharding-changes", Severity.WARNING, Input.OPS, Input.REPORT)
def conv_sharding_changes(
    subject: Subject,
    *,
    changes: Limit = Limit(1, "changes", "from many pixels to many channels, once"),
    share: Limit = Limit(0.02, "of a step", WORTH),
) -> Answer:
    """Convolutions in a row are sharded differently.

    ## What it finds
    How often a convolution is sharded otherwise than the one before it on the same device.

    ## Why it matters
    Between two shardings the whole activation is sent from core to core. Where that takes next to
    nothing of a step, nothing is found.

    ## What to do
    Keep one `shard_layout` for a run of convolutions. Where the shape asks for another, change it
    once, at the place where the activation is smallest.

    ## What it saves
    The time of the ops that move the activation, between convolutions that are sharded differently.

    ## When it is no problem
    Most networks need one change, from many pixels to many channels. Branches that run in turn look
    like changes, as convolutions are compared in the order in which they run.

    ## Where it looks
    The memory of the first input of convolutions in the op table. Without a table, the output and
    the `shard_layout` of convolutions in a report database; changes for which TTP302 names a
    reshard are left to it.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    sharded = [conv for conv in listed if conv.sharding is not None]
    if not sharded:
        return Answer.not_measured("the capture does not say how convolutions are sharded")
    changed = _changes(sharded, subject.report if subject.ops is None else None)
    count = counted(len(sharded), "convolution")
    answer = changes.at_most(
        float(len(changed)),
        f"the sharding changes {counted(len(changed), 'time')} from one convolution to the next, "
        f"in {count}",
        map(Evidence, changed),
    )
    if subject.ops is None:
        return answer
    step = step_of(subject.ops)
    moves = _moves(step)
    took, part = sum(moves.values()), sum(moves.values()) / (step_ns(step) or 1.0)
    told = f"the time of {counted(len(moves), 'move')} between them: {microseconds(took)}"
    if answer.outcome is RuleOutcome.FOUND and part <= share.value:
        return changes.clean(float(len(changed)), reason=f"{told}, {percent(part)} of a step")
    return answer.saving(moves, told)


def _moves(step: OpTable) -> dict[int, float]:
    """Return the ops between convolutions of different shardings that only move tensors."""
    found: dict[int, float] = {}
    since: dict[int, float] = {}
    before: str | None = None
    for row, op in critical_ops(step):
        if is_convolution(op.signature):
            sharding = sharding_in(op.signature.inputs[0].memory) if op.signature.inputs else None
            if before is not None and sharding is not None and sharding != before:
                found.update(since)
            since, before = {}, sharding or before
        elif _MOVE.search(op.signature.op):
            since[row] = op.kernel_ns
    return found


def _changes(listed: Iterable[Convolution], report: Report | None) -> list[str]:
    """Return the changes on the device that has most of them.

    Of a report, those between which no operation is known to reshard.
    """
    moves = (each.id for each in report.completed if reshards(report, each)) if report else ()
    named = sorted(moves)
    by_device: dict[int, list[Convolution]] = defaultdict(list)
    for conv in listed:
        by_device[conv.device].append(conv)
    return max((list(_along(row, named)) for row in by_device.values()), key=len)


def _along(row: Iterable[Convolution], named: Sequence[int]) -> Iterator[str]:
    for before, after in pairwise(row):
        resharded = any(before.number < move <= after.number for move in named)
        if before.sharding != after.sharding and not resharded:
            yield f"{after.name}, {before.sharding} → {after.sharding}"


# Convolutions that could work in larger blocks.


@rule("TTP602", "act-block-h-below-max", Severity.INFO, Input.OPS, Input.REPORT)
def act_block_h_below_max(
    report: Report | None,
    ops: OpTable | None,
    *,
    convolutions: Limit = Limit(0, "convolutions", "each is named with its block"),
    spare: Limit = Limit(0.1, "of L1", "a judgement: room for what is not counted"),
) -> Answer:
    """Convolutions could work in larger blocks.

    ## What it finds
    Convolutions that work on fewer rows at a time than a core has, although L1 has room for more,
    each with the largest `act_block_h_override` that fits.

    ## Why it matters
    A core goes through its rows block by block. Fewer, larger blocks cost less of setting up and
    reading weights again.

    ## What to do
    Set `act_block_h_override` of `Conv2dConfig` to the number that is named. It is a multiple of
    32, divides the rows of a core, and is advice: run the test to see that it fits and is faster.
    Of a width-sharded convolution, a larger `act_block_w_div` makes room in L1.

    ## When it is no problem
    Where double buffering needs the room, which often gains more. The rows of a halo live in L1
    only while the convolution runs, and a report does not count them.

    ## Where it looks
    In a report database `act_block_h_override`, the shards of outputs, the buffers alive and the
    circular buffers of each convolution, which grow at most as the block does. An op table tells
    blocks too, but not what L1 has room for: then the rule is not measured, unless all
    convolutions use the largest block.
    """
    blocks = list(blocks_in_report(report)) if report is not None else []
    if not blocks and ops is not None:
        blocks = list(blocks_in_table(ops))
    if not blocks:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    if not any(block.is_known for block in blocks):
        return Answer.not_measured("the capture does not give the blocks of convolutions")
    larger = [(block, rows) for block in blocks if (rows := block.larger(spare.value))]
    count, unavailable = float(len(larger)), _untold(blocks)
    if count <= convolutions.value and unavailable:
        return Answer.not_measured(unavailable)
    return convolutions.at_most(
        count,
        f"room for a larger act_block_h in {len(larger)} of {counted(len(blocks), 'convolution')}",
        (
            Evidence(f"{block.name}, act_block_h_override {block.rows} → {rows}")
            for block, rows in sorted(larger, key=lambda pair: -pair[1] / (pair[0].rows or 1))
        ),
    )


def _untold(blocks: Sequence[ActBlock]) -> str | None:
    all_blocks = counted(len(blocks), "convolution")
    silent = sum(not block.is_known for block in blocks)
    if silent:
        return f"the block of {silent} of {all_blocks} is unknown"
    small = sum(not block.is_largest and not block.has_sizes for block in blocks)
    if small:
        return (
            f"an act_block_h below the largest in {small} of {all_blocks}; "
            "whether a larger one fits is not known without the L1 of a report database"
        )
    return None


# Convolutions that wait for their activations.


@rule("TTP603", "act-double-buffer-off", Severity.WARNING, Input.OPS, Input.REPORT)
def act_double_buffer_off(
    subject: Subject,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    switched: Limit = Limit(
        0.0, "of convolutions", "TTNN's guide to convolutions: on if memory allows it"
    ),
) -> Answer:
    """Convolutions do not double-buffer their activations.

    ## What it finds
    Convolutions that run with `enable_act_double_buffer` off, and what of them reading can cost.

    ## Why it matters
    With a second buffer, the next block of activations is read while the one before is computed.
    Without it, a core does one after the other.

    ## What to do
    Set `enable_act_double_buffer=True` in `Conv2dConfig`. If the circular buffers then no longer
    fit into L1, weigh it against a smaller `act_block_h_override`.

    ## What it saves
    At most the shorter of two: what computing takes at full speed on the cores in use, and the rest
    of the time. Only one of them can hide behind the other. No convolution gets beyond 80 % of
    what its cores compute, nor beyond the best of the same sharding and fidelity that has the
    second buffer; from 60 % on there is nothing to gain.

    ## When it is no problem
    Where L1 has no room for it. It is a warning only where a report database of the same test tells
    that L1 has room for a second buffer. Otherwise it is for information.

    ## Where it looks
    ATTRIBUTES, operands, MATH FIDELITY and the kernel time of convolutions in the op table, on the
    slowest device. Without a table, or with a chip that is not known, how many convolutions have it
    off: in a report database the `Conv2dConfig`, which tells what was asked for.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    step = step_on_known_chip(subject)
    if step is not None:
        answer = check_double_buffers(
            step,
            ACT_BUFFER,
            share,
            _hidden_ns,
            buffered="activations",
            arithmetic="the shorter of computing at full speed and the rest of the time",
        )
    else:
        flags = ((conv, conv.act_double_buffer) for conv in listed)
        answer = check_switches(flags, switched, buffered="activations", of=whole_ns(subject))
    blocks = list(blocks_in_report(subject.report)) if subject.report is not None else []
    has_room = bool(blocks) and all(block.has_room_for_another for block in blocks)
    if answer.outcome is not RuleOutcome.FOUND or (step is not None and has_room):
        return answer
    return replace(answer, severity=Severity.INFO)


def _hidden_ns(convolution: Product) -> float:
    line = convolution.line
    if line.compute_fraction is None or line.compute_ns is None:
        return 0.0
    return min(line.compute_ns, line.kernel_ns - line.compute_ns)


# Convolutions that wait for their weights.


@rule("TTP604", "weights-double-buffer-off", Severity.INFO, Input.OPS, Input.REPORT)
def weights_double_buffer_off(
    subject: Subject,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    switched: Limit = Limit(
        0.0, "of convolutions", "TTNN's guide to convolutions: on if memory allows it"
    ),
) -> Answer:
    """Convolutions do not double-buffer their weights.

    ## What it finds
    Convolutions that run with `enable_weights_double_buffer` off, and what reading weights costs.

    ## Why it matters
    With a second buffer, the next block of weights is read while the one before is in use.

    ## What to do
    Set `enable_weights_double_buffer=True` in `Conv2dConfig` if L1 has room for it. Try it on
    block-sharded convolutions first.

    ## What it saves
    What reading the weights once takes at the peak bandwidth of DRAM. No convolution gets beyond
    80 % of what its cores compute; from 60 % on there is nothing to gain.

    ## When it is no problem
    Where L1 has no room for it. Height-sharded convolutions keep all their weights in L1 as a
    rule, and do not count.

    ## Where it looks
    ATTRIBUTES, weights and the kernel time of convolutions in the op table, on the slowest device.
    Without a table, or with a chip that is not known, how many convolutions have it off: in a
    report database the `Conv2dConfig`, which tells what was asked for.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    if all(conv.sharding == "HEIGHT" for conv in listed):
        return Answer.not_applicable("height-sharded convolutions keep their weights in L1")
    step = step_on_known_chip(subject)
    board = board_of(step) if step is not None else None
    if step is None or board is None:
        flags = ((each, each.weights_double_buffer) for each in listed if each.sharding != "HEIGHT")
        return check_switches(flags, switched, buffered="weights", of=whole_ns(subject))
    peak = board.dram_gb_s

    def hidden_ns(convolution: Product) -> float:
        weights, line, first = convolution.weights, convolution.line, convolution.first
        if weights is None or line.compute_fraction is None:
            return 0.0
        if first is not None and sharding_in(first.memory) == "HEIGHT":
            return 0.0
        return min(size_of(weights) / peak, line.kernel_ns - (line.compute_ns or 0.0))

    return check_double_buffers(
        step,
        WEIGHTS_BUFFER,
        share,
        hidden_ns,
        buffered="weights",
        arithmetic=f"the bytes of their weights ÷ {peak:g} GB/s",
    )


# Batch norms that could be part of a convolution.

_BATCH_NORM: Final = re.compile(r"batch_?norm", re.IGNORECASE)


@rule("TTP605", "batchnorm-not-folded", Severity.WARNING, Input.OPS, Input.REPORT)
def batchnorm_not_folded(
    subject: Subject, *, batch_norms: Limit = Limit(0, "batch norms", "each can be folded")
) -> Answer:
    """Batch norms run beside convolutions.

    ## What it finds
    Batch norms that run as ops of their own in a program with convolutions.

    ## Why it matters
    In inference, a batch norm after a convolution only scales and shifts its output. Weights and
    bias of the convolution can do that at no cost; an op of its own reads and writes all of it.

    ## What to do
    Fold the batch norms into the weights before these are loaded, for instance with
    `fold_batch_norm2d_into_conv2d` of `ttnn.model_preprocessing`.

    ## What it saves
    The time of the batch norms of a step.

    ## When it is no problem
    A batch norm that no convolution precedes, or whose statistics change, cannot be folded.

    ## Where it looks
    OP CODE in the op table or, without a table, the operations of a report database. A batch norm
    that is written as products and sums is not seen: a clean answer says that none was seen, not
    that there is none.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    count, evidence = _batch_norms(subject)
    if count <= batch_norms.value:
        reason = "no evidence: a batch norm written as products and sums is not seen"
        return batch_norms.clean(count, reason=reason)
    beside = counted(len(listed), "convolution")
    answer = batch_norms.found(count, f"{counted(count, 'batch norm')} beside {beside}", evidence)
    if subject.ops is None:
        return answer
    saved = {
        row: op.kernel_ns
        for row, op in critical_ops(step_of(subject.ops))
        if _BATCH_NORM.search(op.signature.op)
    }
    took = microseconds(sum(saved.values()))
    return answer.saving(saved, f"the time of {counted(len(saved), 'batch norm')}: {took}")


def _batch_norms(subject: Subject) -> tuple[int, Iterable[Evidence]]:
    if subject.ops is not None:
        ops = ops_like(subject.ops, lambda one: _BATCH_NORM.search(one.op) is not None)
        return len(ops), worst_ops(ops, of=kernel_ns(subject.ops))
    report = subject.report
    assert report is not None
    operations = [operation for operation in report.completed if _BATCH_NORM.search(operation.name)]
    return len(operations), (
        Evidence(operation_name(report, operation)) for operation in operations
    )


# Convolutions whose shape asks for another sharding.

#: How fast a reshard moves what lies in L1: real ones take as long as DRAM of Wormhole would.
_MOVED_GB_S: Final = 288.0


@rule("TTP606", "conv-sharding-unsuited", Severity.INFO, Input.OPS, Input.REPORT)
def conv_sharding_unsuited(
    subject: Subject,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    unsuited: Limit = Limit(0.0, "of convolutions", "each is named"),
    efficiency: Limit = Limit(0.5, "of the roofline", "see TTP607"),
    tall: Limit = Limit(4, "pixels per channel", "a judgement: height from there on"),
    deep: Limit = Limit(4, "channels per pixel", "a judgement: width from there on"),
) -> Answer:
    """Convolutions are sharded otherwise than their shape suggests.

    ## What it finds
    Convolutions whose sharding does not go with the shape of their output: by height
    if there are many more pixels than channels, by width if there are many more channels than
    pixels, by block between. Pixels are those of all images of the batch.

    ## Why it matters
    A shard should have work for its core and stay near a square. Cut along the shorter side, a
    tensor is spread over few cores, or each core needs data of many others.

    ## What to do
    Try the `shard_layout` that is named, together with its neighbours: a reshard between two
    convolutions may cost more than it saves.

    ## What it saves
    The time of the convolution, less twice what it takes at full speed, and less a move of
    its activations before and after it. One that is faster than that does not count.

    ## When it is no problem
    It is a rule of thumb, and where both work the faster one is right. By height, every core needs
    all weights: where they are too large for that, no other sharding is named.

    ## Where it looks
    The memory of the first input, the shape of the output and the kernel time of convolutions in
    the op table, on the slowest device. Without a table, how many convolutions these are: in a
    report database by outputs and `shard_layout`.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    step = step_of(subject.ops) if subject.ops is not None else None
    if step is not None and _has_rooflines(step):
        suited_in = partial(suited_sharding, tall=tall.value, deep=deep.value)
        return _of_step(step, share, efficiency.value, suited_in)
    suited = [
        (conv, suited_sharding(conv.output, tall=tall.value, deep=deep.value))
        for conv in listed
        if conv.sharding
    ]
    known = [(conv, best) for conv, best in suited if best is not None]
    if not known:
        return Answer.not_measured("the capture does not say how convolutions are sharded")
    others = [
        conv._replace(name=f"{conv.name}, {conv.sharding} → {best}")
        for conv, best in known
        if conv.sharding != best
    ]
    return unsuited.at_most(
        len(others) / len(known),
        _sentence(len(others), len(known)),
        heaviest(others, of=whole_ns(subject)),
    )


def _has_rooflines(step: OpTable) -> bool:
    told = any(each.least_ns is not None for each in convolutions_of(step))
    return told or board_of(step) is not None


def _sentence(others: int, known: int) -> str:
    return f"{others} of {counted(known, 'convolution')} may suit another sharding, by their shape"


def _of_step(
    step: OpTable,
    share: Limit,
    efficiency: float,
    suited: Callable[[tuple[int, ...], Tensor | None], str | None],
) -> Answer:
    known = [
        (each, sharding, suited(shape, each.weights) or sharding)
        for each in convolutions_of(step)
        if each.first is not None
        and (sharding := sharding_in(each.first.memory))
        and (shape := output_shape(each.op))
    ]
    if not known:
        return Answer.not_measured("the capture does not say how convolutions are sharded")
    others = {
        each.row: f"{sharding} → {best}" for each, sharding, best in known if sharding != best
    }
    slow = [each for each, _, _ in known if each.row in others]
    moved = {each.row: _moves_ns(each) for each in slow}
    saved = {
        each.row: ns
        for each in slow
        if (ns := shortfall_ns(each, efficiency) - moved[each.row]) > 0
    }
    took = sum(each.op.kernel_ns for each in slow if each.row in saved)
    return check_savings(
        step,
        saved,
        share,
        sentence=_sentence(len(others), len(known)),
        arithmetic=f"{microseconds(took)} − {microseconds(took - sum(saved.values()))} at "
        f"{percent(efficiency)} of {best_known(step)}, and with a move before and after",
        name=lambda placed: f"{op_name(placed.op)}, {others[placed.row]}",
    )


def _moves_ns(convolution: Product) -> float:
    """Return what it takes to bring what goes in into another sharding, and what comes out back."""
    tensors = (*convolution.op.signature.inputs[:1], *convolution.op.signature.outputs[:1])
    return sum(LAUNCH_NS + size_of(tensor) / _MOVED_GB_S for tensor in tensors)


# Convolutions that take much longer than the device allows.


@rule("TTP607", "low-conv-efficiency", Severity.WARNING, Input.OPS)
def low_conv_efficiency(
    step: OpTable,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    efficiency: Limit = Limit(
        0.5, "of the roofline", "ttnn-visualizer-cli calls less low; real: 9 to 68 %"
    ),
) -> Answer:
    """Convolutions take much longer than they have to.

    ## What it finds
    Convolutions that take more than twice what the chip allows: the longer of reading their
    operands from DRAM, and of computing on the cores that they run on, at their fidelity.

    ## Why it matters
    Convolutions are most of the work of a vision model. What they fall short of can be gained.

    ## What to do
    Begin with the convolutions that are named, which lose most time, and with the settings named
    beside them: a sharding that goes with the shape, a larger `act_block_h_override`, double
    buffering, weights in bfloat8_b.

    ## What it saves
    The time of the convolution, less twice what it takes at full speed.

    ## When it is no problem
    Small convolutions end before the device is up to speed.

    ## Where it looks
    Operands, CORE COUNT, MATH FIDELITY, DEVICE ARCH and the kernel time of the op table, on the
    slowest device. The products are those that the engine computes: all rows of the weights as
    they are laid out, so that channels that are padded count. Where DEVICE ARCH is missing, PM
    IDEAL stands in for the roofline, or what the cores in use would take on the fastest chip that
    is known, if that is longer: PM IDEAL counts all cores of a chip. The settings are those of
    ATTRIBUTES; `act_block_h` is in rows, of those that a core has.
    """
    convolving = convolutions_of(step)
    if not convolving:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    if all(each.least_ns is None for each in convolving):
        return Answer.not_measured(no_roofline(step, "convolution"))
    slow = [each for each in convolving if shortfall_ns(each, efficiency.value)]
    took = sum(each.op.kernel_ns for each in slow)
    saved = {each.row: shortfall_ns(each, efficiency.value) for each in slow}
    reached = sum(each.least_ns or 0.0 for each in slow) / took if took else 1.0
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{counted(len(slow), 'convolution')} at {percent(reached)} of {best_known(step)}",
        arithmetic=f"{microseconds(took)} − {microseconds(took - sum(saved.values()))} at "
        f"{percent(efficiency.value)} of {best_known(step)}",
        name=_named,
    )


def _named(placed: Placed) -> str:
    settings = settings_to_try(placed.op)
    return f"{op_name(placed.op)} ({settings})" if settings else op_name(placed.op)


_SLICES: Final = re.compile(r"padded_?slice|slice_?write", re.IGNORECASE)

_CUTS: Final = re.compile(r"padded_?slice", re.IGNORECASE)


@rule("TTP608", "sliced-convolutions", Severity.INFO, Input.OPS)
def sliced_convolutions(step: OpTable, *, share: Limit = Limit(0.02, "of a step", WORTH)) -> Answer:
    """Convolutions run slice by slice through DRAM.

    ## What it finds
    The time of the ops that cut a slice out of an activation in DRAM for a convolution, and write
    its result back there.

    ## Why it matters
    What does not fit into L1 is convolved slice by slice. Each slice is read and written once more,
    and a convolution of its own is launched for it.

    ## What to do
    Make it fit: activations in bfloat8_b, `deallocate_activation`, a smaller
    `act_block_h_override`, or fewer and larger slices in `Conv2dSliceConfig`. An image of 3
    channels has 32 in TILE, and all of them are read to be cut: send it row-major, with channels
    padded to 8 or 16.

    ## What it saves
    At most the time of the ops that cut and write slices.

    ## When it is no problem
    The first convolutions of large images, which fit into no L1.

    ## Where it looks
    OP CODE (PaddedSlice, SliceWrite) and the kernel time of the op table, on the slowest device.
    """
    if not convolutions_of(step):
        return Answer.not_applicable(NO_CONVOLUTIONS)
    ops = [(row, op) for row, op in critical_ops(step) if _SLICES.search(op.signature.op)]
    slices = {row: op.kernel_ns for row, op in ops}
    took = sum(slices.values())
    return check_savings(
        step,
        slices,
        share,
        sentence=f"{percent(took / (step_ns(step) or 1.0))} of a step cuts slices for "
        "convolutions out of DRAM, and writes them back",
        arithmetic=f"at most the time of {counted(len(slices), 'op')}: {microseconds(took)}",
    ).with_fix(advice_for((_advice(op.signature), op.kernel_ns) for _, op in ops))


_FIT: Final = (
    "make it fit: activations in bfloat8_b, `deallocate_activation`, a smaller "
    "`act_block_h_override`, or fewer and larger slices in `Conv2dSliceConfig`"
)


def _advice(signature: Signature) -> str:
    """Return what would help a slice: most of what it reads may be padding of channels."""
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
