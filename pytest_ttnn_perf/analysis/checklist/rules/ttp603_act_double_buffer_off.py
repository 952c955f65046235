"""Convolutions that wait for their activations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    ACT_BUFFER,
    NO_CONVOLUTIONS,
    blocks_in_report,
    check_switches,
    convolutions,
    whole_ns,
)
from pytest_ttnn_perf.analysis.checklist.products import (
    check_double_buffers,
    step_on_known_chip,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH
from pytest_ttnn_perf.records.finding import Input, RuleOutcome, Severity, Subject

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.products import (
        Product,
    )


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
