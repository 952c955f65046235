"""Time in collectives."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.op_times import ops_like, share_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, OpTable, category_of


@rule("TTP703", "collective-share", Severity.WARNING, Input.OPS)
def collective_share(
    ops: OpTable,
    *,
    share: Limit = Limit(0.2, "of kernel time", "real tensor-parallel models: 5 to 20 %"),
) -> Answer:
    """Much of the time goes into collectives.

    ## What it finds
    The share of the kernel time in ops that exchange data among devices: all-gather,
    reduce-scatter, all-reduce, all-to-all, sending and receiving. A collective that is fused into a
    matmul counts as a matmul.

    ## Why it matters
    In a collective, devices wait for links and for each other. More devices do not make it faster.

    ## What to do
    Use all links with `num_links`, exchange bfloat8_b, fuse the collective with the matmul beside
    it, and cut tensors along the dimension that needs fewer exchanges.

    ## When it is no problem
    A small model on many devices exchanges more than it computes. So does a decode step with a
    small batch, where latency is what counts.

    ## Where it looks
    OP CODE and the kernel time of the op table, all devices together. Part of the time may be
    waiting for a slower device.
    """
    if len(ops.devices) < 2:
        return Answer.not_applicable("one device")
    collectives = ops_like(ops, lambda one: category_of(one.op) is Category.COLLECTIVE)
    part = share_of(ops, collectives)
    return part.at_most(share, part.sentence("collective"))
