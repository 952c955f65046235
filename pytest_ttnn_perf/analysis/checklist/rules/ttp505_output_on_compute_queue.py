"""Outputs that are read on the queue that computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pytest_ttnn_perf._base.text import counted, size
from pytest_ttnn_perf.analysis.checklist.host import number, settings_of
from pytest_ttnn_perf.analysis.checklist.operands import by_weight
from pytest_ttnn_perf.analysis.checklist.residency import crossings
from pytest_ttnn_perf.analysis.checklist.rule import (
    Rule,
    clean,
    found,
    limit,
    not_applicable,
    not_measured,
)
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject

_UNTOLD: Final = (
    "the report does not say on which command queue outputs are read: pass cq_id, or state the "
    "fact num_command_queues if there is one queue only"
)


@dataclass(frozen=True, slots=True)
class OutputOnComputeQueue(Rule):
    """Large outputs are read on the queue that computes.

    ## What it finds
    The bytes of outputs that are read through command queue 0, which runs the model.

    ## Why it matters
    While the queue reads an output it starts no op: the next call waits until the transfer ends.

    ## What to do
    Copy the output into a tensor of its own in DRAM and read it on queue 1, without blocking:
    `output.cpu(blocking=False, cq_id=1)`. With TT-CNN's pipeline, set
    `all_transfers_on_separate_command_queue`.

    ## When it is no problem
    Small outputs, such as a token or class scores: the copy and the events cost more than they
    save.

    ## Where it looks
    The calls of the report database that read tensors from the device, with their sizes and
    `cq_id`. A call without it is on queue 0 where `num_command_queues` is 1; with more queues a
    report does not tell.
    """

    code: ClassVar[str] = "TTP505"
    name: ClassVar[str] = "output-on-compute-queue"
    severity: ClassVar[Severity] = Severity.INFO
    needs: ClassVar[tuple[Input, ...]] = (Input.REPORT,)

    size: float = limit(2**20, unit="B", source="a choice: takes 0.1 ms at 10 GB/s")

    def check(self, subject: Subject) -> Answer:
        """Compare the bytes that are read through queue 0 with the limit."""
        assert subject.report is not None
        outputs = [each for each in crossings(subject.report) if each.outward]
        if not outputs:
            return not_applicable("the report has no output that is read by the host")
        sent = sum(each.sent for each in outputs)
        if sent <= self.size:
            return clean(sent, limit=self.size, unit="B")
        only_one = number(settings_of(subject).get("num_command_queues")) == 1
        if not only_one and any(each.queue is None for each in outputs):
            return not_measured(_UNTOLD)
        slow = [each for each in outputs if not each.queue]
        sent = sum(each.sent for each in slow)
        if sent <= self.size:
            return clean(sent, limit=self.size, unit="B")
        return found(
            f"{size(sent)} of {counted(len(slow), 'output')} read on the queue that computes",
            value=sent,
            limit=self.size,
            unit="B",
            evidence=by_weight(((str(each), each.sent) for each in slow), unit="B"),
        )
