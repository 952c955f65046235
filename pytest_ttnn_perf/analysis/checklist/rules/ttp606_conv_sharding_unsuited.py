"""Convolutions whose shape asks for another sharding."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    convolutions,
    heaviest,
    output_shape,
    suited_sharding,
    whole_ns,
)
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.products import (
    best_known,
    convolutions_of,
    shortfall_ns,
)
from pytest_ttnn_perf.analysis.checklist.residency import sharding_in
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    LAUNCH_NS,
    WORTH,
    check_savings,
    microseconds,
)
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import board_of, size_of
from pytest_ttnn_perf.records.finding import Input, Severity, Subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ttnn_perf.analysis.checklist.products import Product
    from pytest_ttnn_perf.records.ops import OpTable, Tensor

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
