"""Time spent on changing layouts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pytest_ttnn_perf.analysis.checklist.op_times import ops_like, share_of, worst_ops
from pytest_ttnn_perf.analysis.checklist.rule import Rule, clean, found, limit
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Signature

_CONVERSION: Final = re.compile(r"tilize|to_?layout", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LayoutConversions(Rule):
    """Much of the time goes into changing layouts.

    ## What it finds
    The share of the kernel time in ops that turn row-major tensors into tiles and back: tilize,
    untilize, to_layout.

    ## Why it matters
    A conversion computes nothing. Each reads and writes a whole tensor.

    ## What to do
    Keep tensors in one layout from op to op: convert weights once when they are loaded, ask for the
    layout an op works in, and remove conversions between ops that both take tiles.

    ## When it is no problem
    A model that is fed with row-major images has to convert them once.

    ## Where it looks
    OP CODE and the kernel time of the op table.
    """

    code: ClassVar[str] = "TTP203"
    name: ClassVar[str] = "layout-conversions"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS,)

    share: float = limit(0.05, unit="of kernel time", source="real convolution models: 15 to 17 %")

    def check(self, subject: Subject) -> Answer:
        """Compare the share of conversions with the limit."""
        assert subject.ops is not None
        share = share_of(subject.ops, ops_like(subject.ops, _converts))
        if share.fraction <= self.share:
            return clean(share.fraction, limit=self.share, unit="of kernel time")
        return found(
            share.told("conversion"),
            value=share.fraction,
            limit=self.share,
            unit="of kernel time",
            evidence=worst_ops(share.ops, of=share.total_ns),
        )


def _converts(signature: Signature) -> bool:
    return _CONVERSION.search(signature.op) is not None
