"""L1 that is nearly full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.residency import (
    NO_GRAPHS,
    budget_bytes,
    has_graphs,
    operation_name,
    used_bytes,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ttnn_report import Report


@rule("TTP304", "low-l1-headroom", Severity.INFO, Input.REPORT)
def low_l1_headroom(
    report: Report,
    *,
    free: Limit = Limit(0.1, "of L1", "a judgement: room for one more small buffer"),
) -> Answer:
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
    device, all in a report database. Many operations do not report their circular buffers. So what
    is used is a lower bound, and the rule says that L1 has room only if all of them report theirs.
    """
    budget = budget_bytes(report)
    if budget is None:
        return Answer.not_measured("the report does not say how much L1 a core has")
    if not has_graphs(report):
        return Answer.not_measured(NO_GRAPHS)
    running = [operation for operation in report.operations if operation.device_operations]
    fullest = sorted(running, key=lambda operation: (-used_bytes(operation), operation.id))
    left = max(0.0, 1 - used_bytes(fullest[0]) / budget)
    if left < free.value:
        return free.found(
            left,
            f"{operation_name(report, fullest[0])} leaves {percent(left)} of a core's L1",
            (
                Evidence(operation_name(report, operation), float(used_bytes(operation)), "bytes")
                for operation in fullest
                if 1 - used_bytes(operation) / budget < free.value
            ),
        )
    silent = sum(operation.cb_bytes_per_core is None for operation in running)
    if silent:
        return Answer.not_measured(
            f"circular buffers are not given by {silent} of "
            f"{counted(len(running), 'operation')}; what is known leaves {percent(left)} of L1"
        )
    return free.clean(left)
