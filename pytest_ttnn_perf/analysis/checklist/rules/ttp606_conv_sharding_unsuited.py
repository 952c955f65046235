"""Convolutions whose shape asks for another sharding."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    convolutions,
    heaviest,
    whole_ns,
)
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.products import (
    convolutions_of,
    shortfall_ns,
    step_on_known_chip,
)
from pytest_ttnn_perf.analysis.checklist.residency import sharding_in
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, check_savings, microseconds
from pytest_ttnn_perf.records.finding import Input, Severity, Subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ttnn_perf.records.ops import Op, OpTable


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
    At most the time of the convolution, less twice what it takes at full speed. One that is faster
    than that does not count.

    ## When it is no problem
    It is a rule of thumb, and where both work the faster one is right.

    ## Where it looks
    The memory of the first input, the shape of the output and the kernel time of convolutions in
    the op table, on the slowest device. Without a table, or with a chip that is not known, how many
    convolutions these are: in a report database by outputs and `shard_layout`.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    step = step_on_known_chip(subject)
    if step is not None:
        suited_in = partial(_suited, tall=tall.value, deep=deep.value)
        return _of_step(step, share, efficiency.value, suited_in)
    suited = [
        (conv, _suited(conv.output, tall=tall.value, deep=deep.value))
        for conv in listed
        if conv.sharding
    ]
    known = [(conv, best) for conv, best in suited if best is not None]
    if not known:
        return Answer.not_measured("the capture does not tell how convolutions are sharded")
    others = [
        conv._replace(name=f"{conv.name}, {conv.sharding} → {best}")
        for conv, best in known
        if conv.sharding != best
    ]
    return unsuited.at_most(
        len(others) / len(known),
        f"a shape for another sharding in {len(others)} of {counted(len(known), 'convolution')}",
        heaviest(others, of=whole_ns(subject)),
    )


def _of_step(
    step: OpTable,
    share: Limit,
    efficiency: float,
    suited: Callable[[tuple[int, ...] | None], str | None],
) -> Answer:
    known = [
        (each, sharding, best)
        for each in convolutions_of(step)
        if each.first is not None
        and (sharding := sharding_in(each.first.memory))
        and (best := suited(_output(each.op)))
    ]
    if not known:
        return Answer.not_measured("the capture does not tell how convolutions are sharded")
    others = {
        each.row: f"{sharding} → {best}" for each, sharding, best in known if sharding != best
    }
    slow = [each for each, _, _ in known if each.row in others]
    saved = {each.row: ns for each in slow if (ns := shortfall_ns(each, efficiency))}
    took = sum(each.op.kernel_ns for each in slow if each.row in saved)
    return check_savings(
        step,
        saved,
        share,
        sentence=f"a shape for another sharding in {len(others)} of "
        f"{counted(len(known), 'convolution')}",
        arithmetic=f"at most {microseconds(took)} − {microseconds(took - sum(saved.values()))} at "
        f"{percent(efficiency)} of the roofline",
        name=lambda placed: f"{op_name(placed.op)}, {others[placed.row]}",
    )


def _output(op: Op) -> tuple[int, ...] | None:
    outputs = op.signature.outputs
    return (outputs[0].logical or outputs[0].padded) if outputs else None


def _suited(shape: tuple[int, ...] | None, *, tall: float, deep: float) -> str | None:
    if not shape or not prod(shape):
        return None
    pixels, channels = prod(shape[:-1]), shape[-1]
    if pixels >= tall * channels:
        return "HEIGHT"
    return "WIDTH" if channels >= deep * pixels else "BLOCK"
