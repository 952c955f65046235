"""Traces without memory of their own."""

from __future__ import annotations

from typing import Final

from pytest_ttnn_perf._base.text import size as size_text
from pytest_ttnn_perf.analysis.checklist.measurements import number, settings_of, uses_trace
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject

_NAMES: Final = ("trace_region_size", "TT_RUNTIME_TRACE_REGION_SIZE")


@rule("TTP405", "trace-region-missing", Severity.WARNING, Input.DEVICE)
def trace_region_missing(
    subject: Subject, *, size: Limit = Limit(1, "B", "TTNN: 0 is no region")
) -> Answer:
    """A trace is used, and the device has no memory set aside for traces.

    ## What it finds
    A trace on a device that was opened with a trace region of 0 bytes.

    ## Why it matters
    Older releases refuse to capture without a region. Newer ones then put the trace among the other
    buffers in DRAM, where it can collide with what the trace itself allocates.

    ## What to do
    Open the device with `trace_region_size=`; a test that fails because its trace does not fit says
    how much that needs. With tt-xla, set TT_RUNTIME_TRACE_REGION_SIZE, e.g. to 10000000, before
    torch_xla is imported.

    ## When it is no problem
    Releases since February 2026 allocate traces by themselves where the region is 0 bytes. Set the
    limit to 0 if that is what you rely on.

    ## Where it looks
    Whether a trace is used (METAL TRACE ID in the op table, or the facts `use_trace` and
    `enable_trace`) and how large the region is: `trace_region_size`, observed when the device was
    opened or stated as a fact, or TT_RUNTIME_TRACE_REGION_SIZE, which is observed with tt-xla:
    None says that it was not set. A test that raised is asked nothing: its report says beside the
    error that a trace did not fit.
    """
    used = uses_trace(subject)
    if used is None:
        return Answer.not_measured("whether a trace is used is not known: state the fact use_trace")
    if not used:
        return Answer.not_applicable("no trace is used")
    settings = settings_of(subject)
    known = [settings[name] for name in _NAMES if name in settings]
    if not known:
        return Answer.not_measured(
            "the size of the trace region is not known: state the fact trace_region_size"
        )
    region = max(number(value) or 0.0 for value in known)
    return size.at_least(region, f"a trace is used with a trace region of {size_text(region)}")
