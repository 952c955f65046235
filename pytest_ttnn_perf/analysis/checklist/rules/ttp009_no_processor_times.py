"""Kernel durations that no processor's kernel stands behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.captures.validity import no_processor
from pytest_ttnn_perf.analysis.checklist.rule import Answer, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP009", "no-processor-times", Severity.ERROR, Input.OPS)
def no_processor_times(ops: OpTable) -> Answer:
    """No processor ran a kernel, though ops have kernel durations.

    ## What it finds
    Captures whose columns for single processors (BRISC, NCRISC, TRISC0 to TRISC2, ERISC) are empty
    in every row.

    ## Why it matters
    The kernel duration of an op goes from the first start to the last end of the kernels of its
    processors. Where the profiler saw none of these, it is the duration of something else. The
    capture gives no metric, and never becomes a baseline.

    ## What to do
    Capture again with a build of tt-metal whose device profiler works, and look whether
    `profile_log_device.csv` has zones such as BRISC-KERNEL.

    ## When it is no problem
    When the report was made with `--device-analysis-types device_kernel_duration`, as tt-metal's
    device performance tests do: nothing but the kernel duration is in it then, and this rule is
    not measured.

    ## Where it looks
    DEVICE BRISC KERNEL DURATION and its like in the op table, beside DEVICE FW DURATION.
    """
    if ops.processors is None:
        return Answer.not_measured("the capture has no columns for single processors")
    if ops.processors:
        return Answer.clean()
    flaw = no_processor(ops)
    if flaw is None:
        return Answer.not_measured("the report has kernel durations and no other times")
    return Answer.found(flaw)
