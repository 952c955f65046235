"""Ops that ran on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.op_times import worst_ops
from pytest_ttnn_perf.analysis.checklist.rule import Rule, clean, found, limit
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject


@dataclass(frozen=True, slots=True)
class HostFallback(Rule):
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

    code: ClassVar[str] = "TTP007"
    name: ClassVar[str] = "host-fallback"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS,)

    most: int = limit(0, unit="ops", source="one keeps a model from being traced")

    def check(self, subject: Subject) -> Answer:
        """Count the ops of the host."""
        table = subject.ops
        assert table is not None
        fallbacks = [table.op(at) for at, host in enumerate(table.columns.host) if host]
        if len(fallbacks) <= self.most:
            return clean(len(fallbacks), limit=self.most, unit="ops")
        return found(
            f"{counted(len(fallbacks), 'op')} ran on the host",
            value=len(fallbacks),
            limit=self.most,
            unit="ops",
            evidence=worst_ops(fallbacks, lambda _: 1, of=None, unit="ops"),
        )
