"""Convolutions that wait for their weights."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    check_switches,
    convolutions,
    whole_ns,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


@rule("TTP604", "weights-double-buffer-off", Severity.INFO, Input.OPS, Input.REPORT)
def weights_double_buffer_off(
    subject: Subject,
    *,
    share: Limit = Limit(
        0.0, "of convolutions", "TTNN's guide to convolutions: on if memory allows it"
    ),
) -> Answer:
    """Convolutions do not double-buffer their weights.

    ## What it finds
    The share of convolutions that run with `enable_weights_double_buffer` off.

    ## Why it matters
    With a second buffer, the next block of weights is read while the one before is in use.

    ## What to do
    Set `enable_weights_double_buffer=True` in `Conv2dConfig` if L1 has room for it. Try it on
    block-sharded convolutions first.

    ## When it is no problem
    Where L1 has no room for it, and for height-sharded convolutions, which mostly keep all their
    weights in L1.

    ## Where it looks
    ATTRIBUTES of convolutions in the op table, which tell what ran. Without a table, the
    `Conv2dConfig` in a report database, which tells what was asked for.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    switched = ((conv, conv.weights_double_buffer) for conv in listed)
    return check_switches(switched, share, buffered="weights", of=whole_ns(subject))
