"""Transfers that take longer than compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pytest_ttnn_perf.analysis.checklist.host import NO_IO_TIMES, io_times, milliseconds
from pytest_ttnn_perf.analysis.checklist.rule import Rule, clean, found, limit, not_measured
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject

_UNIT: Final = "times the compute time"


@dataclass(frozen=True, slots=True)
class TransferBound(Rule):
    """Transfers between host and device take longer than the computation.

    ## What it finds
    The time of transfers alone against the time of compute alone.

    ## Why it matters
    Transfers can hide behind compute at best. Once they take longer, they alone decide the
    throughput, however fast the kernels are.

    ## What to do
    Send less: narrower formats, no padding (TTP504), several samples at once, only the output that
    is needed. Do pre- and postprocessing on the device. Keep weights and caches there.

    ## When it is no problem
    A model so small that its inputs are most of its work.

    ## Where it looks
    The medians of `io_compute_time` and `io_transfer_time`, which
    `ttnn_perf.measure_io_overlap(compute=, transfer=, both=)` records.
    """

    code: ClassVar[str] = "TTP503"
    name: ClassVar[str] = "transfer-bound"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.TEST,)

    ratio: float = limit(1.0, unit=_UNIT, source="beyond it, transfers decide the throughput")

    def check(self, subject: Subject) -> Answer:
        """Compare the ratio of both times with the limit."""
        times = io_times(subject)
        if times is None:
            return not_measured(NO_IO_TIMES)
        ratio = times.transfer_ns / times.compute_ns
        if ratio <= self.ratio:
            return clean(ratio, limit=self.ratio, unit=_UNIT)
        transfer, compute = milliseconds(times.transfer_ns), milliseconds(times.compute_ns)
        return found(
            f"transfers take {transfer}, compute {compute}: {ratio:.2f} times as long",
            value=ratio,
            limit=self.ratio,
            unit=_UNIT,
        )
