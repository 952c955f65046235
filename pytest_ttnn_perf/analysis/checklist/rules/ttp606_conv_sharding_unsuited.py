"""Convolutions whose shape asks for another sharding."""

from __future__ import annotations

from math import prod

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    convolutions,
    heaviest,
    whole_ns,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


@rule("TTP606", "conv-sharding-unsuited", Severity.INFO, Input.OPS, Input.REPORT)
def conv_sharding_unsuited(
    subject: Subject,
    *,
    share: Limit = Limit(0.0, "of convolutions", "each is named"),
    tall: Limit = Limit(4, "pixels per channel", "a judgement: height from there on"),
    deep: Limit = Limit(4, "channels per pixel", "a judgement: width from there on"),
) -> Answer:
    """Convolutions are sharded otherwise than their shape suggests.

    ## What it finds
    The share of convolutions whose sharding does not go with the shape of their output: by height
    if there are many more pixels than channels, by width if there are many more channels than
    pixels, by block between. Pixels are those of all images of the batch.

    ## Why it matters
    A shard should have work for its core and stay near a square. Cut along the shorter side, a
    tensor is spread over few cores, or each core needs data of many others.

    ## What to do
    Try the `shard_layout` that is named, together with its neighbours: a reshard between two
    convolutions may cost more than it saves.

    ## When it is no problem
    It is a rule of thumb, and where both work the faster one is right.

    ## Where it looks
    The memory of the first input and the shape of the output of convolutions in the op table or,
    without a table, outputs and `shard_layout` in a report database.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
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
    return share.at_most(
        len(others) / len(known),
        f"a shape for another sharding in {len(others)} of {counted(len(known), 'convolution')}",
        heaviest(others, of=whole_ns(subject)),
    )


def _suited(shape: tuple[int, ...] | None, *, tall: float, deep: float) -> str | None:
    if not shape or not prod(shape):
        return None
    pixels, channels = prod(shape[:-1]), shape[-1]
    if pixels >= tall * channels:
        return "HEIGHT"
    return "WIDTH" if channels >= deep * pixels else "BLOCK"
