"""Convolutions that wait for their weights."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    WEIGHTS_BUFFER,
    check_switches,
    convolutions,
    whole_ns,
)
from pytest_ttnn_perf.analysis.checklist.products import (
    Product,
    check_double_buffers,
    step_on_known_chip,
)
from pytest_ttnn_perf.analysis.checklist.residency import sharding_in
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH
from pytest_ttnn_perf.analysis.ops.roofline import board_of, size_of
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


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
