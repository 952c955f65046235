"""Ops that ran on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.op_times import worst_ops
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.ops.regions import regions_of
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP007", "host-fallback", Severity.WARNING, Input.OPS)
def host_fallback(
    ops: OpTable, *, most: Limit = Limit(0, "ops", "one keeps a model from being traced")
) -> Answer:
    """Ops ran on the host instead of the device.

    ## What it finds
    Ops of torch between the ops of a step, which TTNN calls where it has none of its own.

    ## Why it matters
    Each waits for the device, copies a tensor to the host and back, and keeps the model from being
    captured as a trace.

    ## What to do
    Use the op of TTNN in its place; or move the op in front of the first, or behind the last, op on
    the device.

    ## When it is no problem
    When it prepares inputs or reads results: what runs on the host before the first op of a step
    on the device, or after the last one, does not count.

    ## Where it looks
    The rows of type python_fallback in the op table, which have no time on the device, in the order
    of the host's calls.
    """
    within = _between_device_ops(ops)
    fallbacks = [ops.op(at) for at, host in enumerate(ops.columns.host) if host and at in within]
    return most.at_most(
        len(fallbacks),
        f"{counted(len(fallbacks), 'op')} ran on the host, between ops on the device",
        worst_ops(fallbacks, lambda _: 1, of=None, unit="ops"),
    )


def _between_device_ops(ops: OpTable) -> set[int]:
    """Return the rows from the first to the last op on a device, of each step."""
    within: set[int] = set()
    for region in regions_of(ops).regions:
        for step in region.steps:
            rows = [row for rows in step.values() for row in rows if not ops.columns.host[row]]
            within.update(range(min(rows, default=0), max(rows, default=0)))
    return within
