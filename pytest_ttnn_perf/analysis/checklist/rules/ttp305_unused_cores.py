"""Cores that stand idle while ops run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import core_ops, none_long_enough
from pytest_ttnn_perf.analysis.checklist.op_times import kernel_ns, worst_ops
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


@dataclass(frozen=True, slots=True)
class UnusedCores(Rule):
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

    code: ClassVar[str] = "TTP305"
    name: ClassVar[str] = "unused-cores"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS,)

    share: float = limit(
        0.5, unit="of cores", source="tt-perf-report marks ops on less than half of the cores"
    )
    shortest_us: float = limit(5, unit="µs", source="launching takes a good part of shorter ops")

    def check(self, subject: Subject) -> Answer:
        """Compare the share of cores in use with the limit."""
        assert subject.ops is not None
        available = _available(subject)
        if not available:
            return not_measured("the capture does not tell how many cores there are")
        judged = core_ops(subject.ops, shortest_us=self.shortest_us)
        if not judged:
            return not_applicable(none_long_enough(self.shortest_us))
        known = [op for op in judged if op.cores is not None]
        if not known:
            return not_measured("the capture does not tell how many cores ops ran on")
        time = sum(op.kernel_ns for op in known)
        share = sum((op.cores or 0) * op.kernel_ns for op in known) / (available * time)
        if share >= self.share:
            return clean(share, limit=self.share, unit="of cores")
        return found(
            f"{percent(share)} of {counted(available, 'core')} in use, weighted by the time of "
            f"{counted(len(known), 'op')}",
            value=share,
            limit=self.share,
            unit="of cores",
            evidence=worst_ops(
                known,
                lambda op: op.kernel_ns * (1 - (op.cores or 0) / available),
                of=kernel_ns(subject.ops),
            ),
        )


def _available(subject: Subject) -> int | None:
    if subject.ops is not None and subject.ops.available_cores:
        return subject.ops.available_cores
    devices = subject.report.devices if subject.report is not None else ()
    return max((device.compute_cores or 0 for device in devices), default=None)
