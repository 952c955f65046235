"""Time in collectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf.analysis.checklist.op_times import ops_like, share_of, worst_ops
from pytest_ttnn_perf.analysis.checklist.rule import Rule, clean, found, limit, not_applicable
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Signature


@dataclass(frozen=True, slots=True)
class CollectiveShare(Rule):
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

    code: ClassVar[str] = "TTP703"
    name: ClassVar[str] = "collective-share"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS,)

    share: float = limit(
        0.2, unit="of kernel time", source="real tensor-parallel models: 5 to 20 %"
    )

    def check(self, subject: Subject) -> Answer:
        """Compare the share of collectives with the limit."""
        assert subject.ops is not None
        if len(subject.ops.devices) < 2:
            return not_applicable("one device")
        share = share_of(subject.ops, ops_like(subject.ops, _is_collective))
        if share.fraction <= self.share:
            return clean(share.fraction, limit=self.share, unit="of kernel time")
        return found(
            share.told("collective"),
            value=share.fraction,
            limit=self.share,
            unit="of kernel time",
            evidence=worst_ops(share.ops, of=share.total_ns),
        )


def _is_collective(signature: Signature) -> bool:
    return category_of(signature.op) is Category.COLLECTIVE
