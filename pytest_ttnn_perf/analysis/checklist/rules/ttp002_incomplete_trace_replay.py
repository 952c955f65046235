"""Replays of a trace that differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.rule import (
    Rule,
    clean,
    found,
    not_applicable,
    not_measured,
)
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject


@dataclass(frozen=True, slots=True)
class IncompleteTraceReplay(Rule):
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

    code: ClassVar[str] = "TTP002"
    name: ClassVar[str] = "incomplete-trace-replay"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS,)

    def check(self, subject: Subject) -> Answer:
        """Ask the table which of its traces are complete."""
        table = subject.ops
        assert table is not None
        repeated = [trace for trace in table.traces if trace.replays > 1]
        if not repeated:
            if table.traces:
                return not_measured("every trace was replayed once: nothing to compare with")
            if any(trace is not None for trace in table.columns.trace):
                return not_measured("the op table does not tell the replays of a trace apart")
            return not_applicable("no trace was replayed")
        broken = [trace for trace in repeated if not trace.complete]
        if not broken:
            return clean(0, limit=0, unit="traces")
        return found(
            f"different ops in the replays of {len(broken)} of {counted(len(repeated), 'trace')}",
            value=len(broken),
            limit=0,
            unit="traces",
            evidence=(
                Evidence(f"trace {trace.trace} on device {trace.device}", trace.replays, "replays")
                for trace in broken
            ),
        )
