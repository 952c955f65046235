"""Cores that stand idle while ops run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import core_ops, none_long_enough
from pytest_ttnn_perf.analysis.checklist.op_times import kernel_ns, worst_ops
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report


@rule("TTP305", "unused-cores", Severity.WARNING, Input.OPS)
def unused_cores(
    ops: OpTable,
    report: Report | None,
    *,
    share: Limit = Limit(
        0.5, "of cores", "tt-perf-report marks ops on less than half of the cores"
    ),
    shortest_us: Limit = Limit(5, "µs", "launching takes a good part of shorter ops"),
) -> Answer:
    """Ops leave many cores idle.

    ## What it finds
    The cores that ops run on as a share of those that there are, weighted by time.

    ## Why it matters
    An op on a tenth of the cores may take up to ten times as long as it has to.

    ## What to do
    Give the ops that are named a larger core grid: more shards in their memory config, or a program
    config with a larger `compute_with_storage_grid_size`.

    ## When it is no problem
    Small tensors have too few tiles for all cores: one row of tiles that is 32 tiles wide occupies
    32 cores at most. Not counted are ops that take very little time, collectives, which wait for
    links, and matmuls with DRAM-sharded weights, whose number of cores follows the banks of DRAM.

    ## Where it looks
    CORE COUNT, AVAILABLE WORKER CORE COUNT and the kernel time of the op table. Captures from
    before the end of 2025 do not tell the cores available; a report database of the test does.
    """
    devices = report.devices if report is not None else ()
    available = ops.available_cores or max(
        (device.compute_cores or 0 for device in devices), default=0
    )
    if not available:
        return Answer.not_measured("the capture does not tell how many cores there are")
    judged = core_ops(ops, shortest_us=shortest_us.value)
    if not judged:
        return Answer.not_applicable(none_long_enough(shortest_us.value))
    known = [op for op in judged if op.cores is not None]
    if not known:
        return Answer.not_measured("the capture does not tell how many cores ops ran on")
    time = sum(op.kernel_ns for op in known)
    part = sum((op.cores or 0) * op.kernel_ns for op in known) / (available * time)
    return share.at_least(
        part,
        f"{percent(part)} of {counted(available, 'core')} in use, weighted by the time of "
        f"{counted(len(known), 'op')}",
        worst_ops(
            known, lambda op: op.kernel_ns * (1 - (op.cores or 0) / available), of=kernel_ns(ops)
        ),
    )
