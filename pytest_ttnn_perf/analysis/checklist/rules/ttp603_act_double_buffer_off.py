"""Convolutions that wait for their activations."""

from __future__ import annotations

from dataclasses import replace

from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    blocks_in_report,
    check_switches,
    convolutions,
    whole_ns,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, RuleOutcome, Severity, Subject


@rule("TTP603", "act-double-buffer-off", Severity.WARNING, Input.OPS, Input.REPORT)
def act_double_buffer_off(
    subject: Subject,
    *,
    share: Limit = Limit(
        0.0, "of convolutions", "TTNN's guide to convolutions: on if memory allows it"
    ),
    compute_bound: Limit = Limit(
        0.65, "of the ideal", "tt-perf-report calls such an op bound by computing"
    ),
) -> Answer:
    """Convolutions do not double-buffer their activations.

    ## What it finds
    The share of convolutions that run with `enable_act_double_buffer` off.

    ## Why it matters
    With a second buffer, the next block of activations is read while the one before is computed.
    Without it, a core does one after the other.

    ## What to do
    Set `enable_act_double_buffer=True` in `Conv2dConfig`. If the circular buffers then no longer
    fit into L1, weigh it against a smaller `act_block_h_override`.

    ## When it is no problem
    Where L1 has no room for it, and where reading activations takes little of a convolution's time:
    a second buffer can hide no more than that.

    It is a warning only where a convolution without a second buffer is known to be held back by
    computing, and L1 to have room for one. Otherwise it is for information.

    ## Where it looks
    ATTRIBUTES of convolutions in the op table, which tell what ran. Without a table, the
    `Conv2dConfig` in a report database, which tells what was asked for. PM IDEAL and the kernel
    time of the op table tell what is held back by computing, a report database of the same test
    whether L1 has room.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    switched = ((conv, conv.act_double_buffer) for conv in listed)
    answer = check_switches(switched, share, buffered="activations", of=whole_ns(subject))
    computing = any(
        (conv.efficiency or 0.0) >= compute_bound.value
        for conv in listed
        if conv.act_double_buffer is False
    )
    blocks = list(blocks_in_report(subject.report)) if subject.report is not None else []
    has_room = bool(blocks) and all(block.has_room_for_another for block in blocks)
    if answer.outcome is not RuleOutcome.FOUND or (computing and has_room):
        return answer
    return replace(answer, severity=Severity.INFO)
