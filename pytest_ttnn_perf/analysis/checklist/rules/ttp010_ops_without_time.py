"""Ops that ran and have no time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.captures.validity import first_unread, unread_ops
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable

_NONE: Final = Limit(0, "ops", "without them no sum is whole")


@rule("TTP010", "ops-without-time", Severity.ERROR, Input.OPS)
def ops_without_time(ops: OpTable) -> Answer:
    """Ops ran on a device, and the capture has no time of them that can be true.

    ## What it finds
    Rows of ops that a device began, whose kernel duration is missing, zero or negative, or that
    begin long before the op before them ended.

    ## Why it matters
    Every sum over the capture is too short by what these ops took. It gives no metric, and never
    becomes a baseline.

    ## What to do
    Profile fewer ops at a time, or raise TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT, and capture
    again.

    ## When it is no problem
    Never. What a trace recorded while it was captured has no time either, and is not counted: its
    replays have.

    ## Where it looks
    DEVICE KERNEL DURATION and OP TO OP LATENCY of the op table.
    """
    if not ops.unread:
        return _NONE.clean(0)
    reasons = Counter(each.reason for each in ops.unread)
    told = f"{unread_ops(ops)}, first in line {first_unread(ops)}"
    evidence = (Evidence(why, count, "ops") for why, count in reasons.most_common())
    return _NONE.found(len(ops.unread), told, evidence)
