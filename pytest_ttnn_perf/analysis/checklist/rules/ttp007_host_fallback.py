"""Ops that ran on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.op_times import worst_ops
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP007", "host-fallback", Severity.WARNING, Input.OPS)
def host_fallback(
    ops: OpTable, *, most: Limit = Limit(0, "ops", "one keeps a model from being traced")
) -> Answer:
    """Ops ran on the host instead of the device.

    ## What it finds
    Ops of torch inside the model, which TTNN calls where it has none of its own.

    ## Why it matters
    Each waits for the device, copies a tensor to the host and back, and keeps the model from being
    captured as a trace.

    ## What to do
    Use the op of TTNN in its place; or move the op in front of the first, or behind the last, op on
    the device.

    ## When it is no problem
    When it prepares inputs or reads results outside of what is measured.

    ## Where it looks
    The rows of type python_fallback in the op table, which have no time on the device.
    """
    fallbacks = [ops.op(at) for at, host in enumerate(ops.columns.host) if host]
    return most.at_most(
        len(fallbacks),
        f"{counted(len(fallbacks), 'op')} ran on the host",
        worst_ops(fallbacks, lambda _: 1, of=None, unit="ops"),
    )
