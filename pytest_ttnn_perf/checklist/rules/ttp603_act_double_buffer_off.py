"""Convolutions that wait for their activations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf.checklist.convolutions import (
    NO_CONVOLUTIONS,
    convolutions,
    judged_switches,
)
from pytest_ttnn_perf.checklist.rule import Rule, limit, not_applicable
from pytest_ttnn_perf.model.finding import Severity
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.subject import Subject


@dataclass(frozen=True, slots=True)
class ActDoubleBufferOff(Rule):
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

    ## Where it looks
    ATTRIBUTES of convolutions in the op table, which tell what ran. Without a table, the
    `Conv2dConfig` in a report database, which tells what was asked for.
    """

    code: ClassVar[str] = "TTP603"
    name: ClassVar[str] = "act-double-buffer-off"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS, Input.REPORT)

    share: float = limit(
        0.0, unit="of convolutions", source="TTNN's guide to convolutions: on if memory allows it"
    )

    def check(self, subject: Subject) -> Answer:
        """Compare the share of convolutions without a second buffer with the limit."""
        listed = convolutions(subject)
        if not listed:
            return not_applicable(NO_CONVOLUTIONS)
        switched = ((each, each.act_double_buffer) for each in listed)
        return judged_switches(switched, buffered="activations", at_most=self.share)
