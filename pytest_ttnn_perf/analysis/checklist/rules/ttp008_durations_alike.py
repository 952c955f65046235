"""Ops that all took the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.captures.validity import MOST_ALIKE, most_common_duration
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable

_SHARE: Final = Limit(MOST_ALIKE, "of the ops", "of real captures, one op in a hundred, mostly")


@rule("TTP008", "durations-alike", Severity.ERROR, Input.OPS)
def durations_alike(ops: OpTable) -> Answer:
    """Nearly all ops took exactly the same time.

    ## What it finds
    The most common kernel duration, as a share of the ops that have it, where there are at least
    eight ops of at least two kinds, and more than half of the kinds have it.

    ## Why it matters
    A matmul and a slice do not take the same number of nanoseconds. Such numbers were filled in, by
    a mock device, a simulator or a script: none of them was measured. The capture gives no metric,
    and never becomes a baseline.

    ## What to do
    Capture again on a device, with TT_METAL_DEVICE_PROFILER=1.

    ## When it is no problem
    Never, for a capture of a device.

    ## Where it looks
    The kernel durations of the op table.
    """
    alike = most_common_duration(ops)
    if alike is None:
        return Answer.not_applicable("fewer than 8 ops, or all of one kind")
    if not alike.is_made_up:
        return _SHARE.clean(alike.share)
    told = f"{percent(alike.share)} of {alike.ops} ops took exactly the same time: not measured"
    return _SHARE.found(alike.share, told, [Evidence("the time of each", alike.duration_ns, "ns")])
