"""Transfers that take longer than compute."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.measurements import NO_IO_TIMES, io_times, milliseconds
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


@rule("TTP503", "transfer-bound", Severity.WARNING, Input.TEST)
def transfer_bound(
    subject: Subject,
    *,
    ratio: Limit = Limit(
        1.0, "times the compute time", "beyond it, transfers decide the throughput"
    ),
) -> Answer:
    """Transfers between host and device take longer than the computation.

    ## What it finds
    The time of transfers alone against the time of compute alone.

    ## Why it matters
    Transfers can hide behind compute at best. Once they take longer, they alone decide the
    throughput, however fast the kernels are.

    ## What to do
    Send less: narrower formats, no padding (TTP504), several samples at once, only the output that
    is needed. Do pre- and postprocessing on the device. Keep weights and caches there.

    ## What it saves
    What transfers take longer than compute: shorter ones could hide behind it.

    ## When it is no problem
    A model so small that its inputs are most of its work.

    ## Where it looks
    The medians of `io_compute_time` and `io_transfer_time`, which
    `ttnn_perf.measure_io_overlap(compute=, transfer=, both=)` records.
    """
    times = io_times(subject)
    if times is None:
        return Answer.not_measured(NO_IO_TIMES)
    times_compute = times.transfer_ns / times.compute_ns
    transfer, compute = milliseconds(times.transfer_ns), milliseconds(times.compute_ns)
    return ratio.at_most(
        times_compute,
        f"transfers take {transfer}, compute {compute}: {times_compute:.2f} times as long",
    ).saving(
        {},
        f"transfers − compute: {transfer} − {compute}",
        waiting_ns=times.transfer_ns - times.compute_ns,
    )
