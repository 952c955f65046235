"""What crosses between host and device, and on which command queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import Part, section
from pytest_ttnn_perf.checklist.host_transfers import crossings
from pytest_ttnn_perf.checklist.measured_times import NO_IO_TIMES
from pytest_ttnn_perf.checklist.rule import not_applicable
from pytest_ttnn_perf.checklist.rules.ttp504_padded_host_transfer import PaddedHostTransfer
from pytest_ttnn_perf.checklist.rules.ttp505_output_on_compute_queue import OutputOnComputeQueue
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.host_transfers import Crossing
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.subject import Subject

_OF: Final = "of the bytes"


def _look(subject: Subject) -> Numbers | Answer:
    assert subject.report is not None
    crossing = crossings(subject.report)
    if not crossing:
        return not_applicable("the report has no transfer between host and device")
    ways = (Part(_way(each), each.sent) for each in crossing)
    tensors = (Part(str(each), each.sent) for each in crossing)
    return judged(
        subject,
        {"padding": PaddedHostTransfer, "outputs to the host": OutputOnComputeQueue},
        section("ways", ways, unit="B", of=_OF),
        section("transfers", tensors, unit="B", of=_OF),
        notes=(f"times of transfers: not measured: {NO_IO_TIMES}",),
    )


def _way(crossing: Crossing) -> str:
    way = "to the host" if crossing.outward else "to the device"
    return f"{way}, queue {'not told' if crossing.queue is None else crossing.queue}"


QUEUES: Final = Kind(
    "queues",
    "transfers between host and device, and their command queues",
    (Input.REPORT,),
    _look,
    "no op table tells transfers or command queues",
)
