"""Calls that take longer than the device works."""

from __future__ import annotations

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.measurements import call_times, milliseconds
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


@rule("TTP404", "device-behind-e2e", Severity.WARNING, Input.TEST)
def device_behind_e2e(
    subject: Subject,
    *,
    share: Limit = Limit(0.2, "of the wall time", "as TTP401: what traces are advised for"),
) -> Answer:
    """A call takes much longer than the device works in it.

    ## What it finds
    The part of the wall time of a call in which the slowest device runs no kernel: it waits for the
    host, for transfers, or for the next op.

    ## Why it matters
    This is what users of the model wait for beyond what its kernels cost. No faster kernel brings
    it back.

    ## What to do
    Use a trace (TTP402), overlap transfers with a second command queue (TTP501), move conversions
    of inputs and outputs out of the call, and look for host fallbacks (TTP007).

    ## What it saves
    The wall time without the device's, if all of it can go.

    ## When it is no problem
    A measured call that on purpose contains work of the host, such as loading an image. Measure the
    model alone to know it.

    ## Where it looks
    The medians of `wall_time`, or of `throughput_time` in a test without that, which are measured
    without a profiler, and of `device_kernel_time`, of the slowest device, as a profiler on
    hardware tells it. A device time of a simulator or of a recorded artifact is not compared with
    it. Of a pipeline, both are per input.
    """
    times = call_times(subject)
    if isinstance(times, str):
        return Answer.not_measured(times)
    wall, device = milliseconds(times.wall_ns), milliseconds(times.device_ns)
    return share.at_most(
        times.waiting,
        f"of the {wall} of a call, the slowest device works {device}: "
        f"{percent(times.waiting)} goes by without a kernel",
    ).saving({}, times.arithmetic, waiting_ns=times.waiting_ns)
