"""Outputs that are read on the queue that computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf._base.text import size as size_text
from pytest_ttnn_perf.analysis.checklist.measurements import is_on, number, settings_of
from pytest_ttnn_perf.analysis.checklist.operands import by_weight
from pytest_ttnn_perf.analysis.checklist.residency import crossings
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.ttnn_report import Report

#: A setting of pipelines of TT-CNN: queue 1 carries inputs and outputs, queue 0 computes.
_SEPARATE: Final = "all_transfers_on_separate_command_queue"

_UNTOLD: Final = (
    "the report does not say on which command queue outputs are read: pass cq_id, or state the "
    "fact num_command_queues if there is one queue only"
)


@rule("TTP505", "output-on-compute-queue", Severity.INFO, Input.REPORT)
def output_on_compute_queue(
    subject: Subject,
    report: Report,
    *,
    size: Limit = Limit(2**20, "B", "a choice: takes 0.1 ms at 10 GB/s"),
) -> Answer:
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
    `cq_id`. A call without it is on queue 0 where `num_command_queues` is 1, or where
    `all_transfers_on_separate_command_queue`, which is observed of pipelines of TT-CNN, is off; it
    is not where that is on. Otherwise a report does not say.
    """
    outputs = [transfer for transfer in crossings(report) if transfer.outward]
    if not outputs:
        return Answer.not_applicable("the report has no output that is read by the host")
    sent = sum(transfer.sent for transfer in outputs)
    if sent <= size.value:
        return size.clean(sent)
    unnamed = _unnamed_queue(settings_of(subject))
    if unnamed is None and any(transfer.queue is None for transfer in outputs):
        return Answer.not_measured(_UNTOLD)
    queues = [unnamed if transfer.queue is None else transfer.queue for transfer in outputs]
    slow = [transfer for transfer, queue in zip(outputs, queues, strict=True) if not queue]
    sent = sum(transfer.sent for transfer in slow)
    return size.at_most(
        sent,
        f"{size_text(sent)} of {counted(len(slow), 'output')} read on the queue that computes",
        by_weight(((str(transfer), transfer.sent) for transfer in slow), unit="B"),
    )


def _unnamed_queue(settings: Mapping[str, Scalar]) -> int | None:
    """Return the queue that outputs are read on where the call does not name it."""
    if _SEPARATE in settings:
        return int(is_on(settings[_SEPARATE]))
    return 0 if number(settings.get("num_command_queues")) == 1 else None
