"""Time spent on changing layouts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.op_times import ops_like, share_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable

_CONVERSION: Final = re.compile(r"tilize|to_?layout", re.IGNORECASE)


@rule("TTP203", "layout-conversions", Severity.WARNING, Input.OPS)
def layout_conversions(
    ops: OpTable,
    *,
    share: Limit = Limit(0.05, "of kernel time", "real convolution models: 15 to 17 %"),
) -> Answer:
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
    part = share_of(ops, ops_like(ops, lambda one: _CONVERSION.search(one.op) is not None))
    return part.at_most(share, part.sentence("conversion"))
