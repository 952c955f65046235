"""Replays of a trace that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable

_NONE: Final = Limit(0, "traces", "a trace cannot change between two replays")


@rule("TTP002", "incomplete-trace-replay", Severity.ERROR, Input.OPS)
def incomplete_trace_replay(ops: OpTable) -> Answer:
    """The replays of one trace did not run the same ops.

    ## What it finds
    Traces whose executions on one device differ in their ops.

    ## Why it matters
    A trace runs the same ops every time. Where the profiler shows others, it lost some, and every
    time that is taken from the capture is too short by an unknown amount.

    ## What to do
    Profile fewer replays at a time, or raise TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT, and read the
    profiler between them. Do not keep the capture as a baseline.

    ## When it is no problem
    Never: a trace cannot change between two replays.

    ## Where it looks
    METAL TRACE ID and METAL TRACE REPLAY SESSION ID of the op table. A single replay has nothing
    to be compared with, which is said.
    """
    repeated = [trace for trace in ops.traces if trace.replays > 1]
    if not repeated:
        if ops.traces:
            return Answer.not_measured("every trace was replayed once: nothing to compare with")
        if any(trace is not None for trace in ops.columns.trace):
            return Answer.not_measured("the op table does not tell the replays of a trace apart")
        return Answer.not_applicable("no trace was replayed")
    broken = [trace for trace in repeated if not trace.complete]
    return _NONE.at_most(
        len(broken),
        f"different ops in the replays of {len(broken)} of {counted(len(repeated), 'trace')}",
        (
            Evidence(f"trace {trace.trace} on device {trace.device}", trace.replays, "replays")
            for trace in broken
        ),
    )
