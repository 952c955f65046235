"""Padding that is sent between host and device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.operands import by_weight, if_worth
from pytest_ttnn_perf.analysis.checklist.residency import crossings
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.residency import Crossing
    from pytest_ttnn_perf.records.ttnn_report import Report


@rule("TTP504", "padded-host-transfer", Severity.WARNING, Input.REPORT)
def padded_host_transfer(
    report: Report,
    *,
    share: Limit = Limit(0.1, "of the bytes", "a choice: a tenth of the transfer time"),
    worth: Limit = Limit(200_000, "B", "10 µs at 20 GB/s: a transfer takes as long to begin"),
) -> Answer:
    """Much of what crosses between host and device is padding.

    ## What it finds
    The share of padding in the tensors that are sent to the device, or read from it. A tensor in
    tiles crosses in whole tiles of 32 by 32.

    ## Why it matters
    Padding takes as long over PCIe as data does.

    ## What to do
    Send inputs row-major and turn them into tiles on the device; take outputs out of their tiles
    there before the host reads them, with `ttnn.untilize` or `ttnn.slice`. Choose shapes that are
    multiples of 32.

    ## When it is no problem
    Weights that are sent once while the model is loaded. Padding that crosses in less than a
    transfer takes to begin is no finding.

    ## Where it looks
    The calls of the report database that transfer (`from_torch`, `to_device`, `to_torch`,
    `from_device`, `cpu`, copies between host and device), with the shape, layout and format of
    their tensors on the device. An op table does not say which tensors cross.
    """
    crossing = crossings(report)
    sent = sum(transfer.sent for transfer in crossing)
    if not sent:
        return Answer.not_applicable("the report has no transfer between host and device")
    padding = sum(transfer.padding for transfer in crossing)
    part = padding / sent
    padded = [transfer for transfer in crossing if transfer.padding]
    answer = share.at_most(
        part,
        f"{percent(part)} of what is {_ways(crossing)} is padding",
        by_weight(((str(transfer), transfer.padding) for transfer in padded), unit="B"),
    )
    return if_worth(answer, padding, worth, where="a transfer")


def _ways(crossing: Sequence[Crossing]) -> str:
    """Say how often tensors were sent to the device, and how often they were read from it."""
    read = sum(transfer.outward for transfer in crossing)
    sent = len(crossing) - read
    ways = [f"sent in {counted(sent, 'transfer')}"] if sent else []
    return " and ".join([*ways, f"read in {counted(read, 'transfer')}"] if read else ways)
