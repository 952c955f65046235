"""L1 that is nearly full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.residency import (
    NO_GRAPHS,
    budget_bytes,
    called,
    has_graphs,
    used_bytes,
)
from pytest_ttnn_perf.analysis.checklist.rule import Rule, clean, found, limit, not_measured
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject


@dataclass(frozen=True, slots=True)
class LowL1Headroom(Rule):
    """L1 is nearly full.

    ## What it finds
    The share of a core's L1 that is free at the operation which leaves least: what tensors take per
    bank, and circular buffers on the fullest core, against what a core has for both.

    ## Why it matters
    A somewhat larger batch, block or resolution no longer fits, and the program fails with
    circular buffers that clash with L1 buffers. Nor is there room for double buffering.

    ## What to do
    Free tensors early with `ttnn.deallocate`, let convolutions free their input with
    `deallocate_activation`, keep what is read much later in DRAM, use bfloat8_b, and choose smaller
    blocks for the operations that are named.

    ## When it is no problem
    A model whose shapes are final, and that runs, may use all of L1: that is what it is for.

    ## Where it looks
    Buffers alive at each operation, circular buffers in its captured graph, and the sizes of the
    device, all in a report database. Many operations do not tell their circular buffers. So what is
    used is a lower bound, and the rule answers that L1 has room only if all of them tell.
    """

    code: ClassVar[str] = "TTP304"
    name: ClassVar[str] = "low-l1-headroom"
    severity: ClassVar[Severity] = Severity.INFO
    needs: ClassVar[tuple[Input, ...]] = (Input.REPORT,)

    free: float = limit(0.1, unit="of L1", source="a judgement: room for one more small buffer")

    def check(self, subject: Subject) -> Answer:
        """Compare the room that is left with the limit."""
        assert subject.report is not None
        budget = budget_bytes(subject.report)
        if budget is None:
            return not_measured("the report does not tell how much L1 a core has")
        if not has_graphs(subject.report):
            return not_measured(NO_GRAPHS)
        running = [each for each in subject.report.operations if each.device_operations]
        fullest = sorted(running, key=lambda each: (-used_bytes(each), each.id))
        left = max(0.0, 1 - used_bytes(fullest[0]) / budget)
        if left < self.free:
            return found(
                f"{called(subject.report, fullest[0])} leaves {percent(left)} of a core's L1",
                value=left,
                limit=self.free,
                unit="of L1",
                evidence=[
                    Evidence(called(subject.report, each), float(used_bytes(each)), "bytes")
                    for each in fullest
                    if 1 - used_bytes(each) / budget < self.free
                ],
            )
        silent = sum(each.cb_bytes_per_core is None for each in running)
        if silent:
            return not_measured(
                f"circular buffers are not told by {silent} of "
                f"{counted(len(running), 'operation')}; what is told leaves {percent(left)} of L1"
            )
        return clean(left, limit=self.free, unit="of L1")
