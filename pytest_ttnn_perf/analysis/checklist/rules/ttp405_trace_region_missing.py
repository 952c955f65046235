"""Traces without memory of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pytest_ttnn_perf._base.text import size
from pytest_ttnn_perf.analysis.checklist.host import number, settings_of, uses_trace
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

_NAMES: Final = ("trace_region_size", "TT_RUNTIME_TRACE_REGION_SIZE")


@dataclass(frozen=True, slots=True)
class TraceRegionMissing(Rule):
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
    Whether a trace is used (METAL TRACE ID in the op table, or the fact `use_trace`) and how large
    the region is: `trace_region_size`, observed when the device was opened or stated as a fact, or
    TT_RUNTIME_TRACE_REGION_SIZE, where None says that it was not set. A test that raised is asked
    nothing: its report says beside the error that a trace did not fit.
    """

    code: ClassVar[str] = "TTP405"
    name: ClassVar[str] = "trace-region-missing"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.DEVICE,)

    size: float = limit(1, unit="B", source="TTNN: 0 is no region")

    def check(self, subject: Subject) -> Answer:
        """Look for a trace without a region."""
        used = uses_trace(subject)
        if used is None:
            return not_measured("whether a trace is used is not known: state the fact use_trace")
        if not used:
            return not_applicable("no trace is used")
        settings = settings_of(subject)
        known = [settings[name] for name in _NAMES if name in settings]
        if not known:
            return not_measured(
                "the size of the trace region is not known: state the fact trace_region_size"
            )
        region = max(number(value) or 0.0 for value in known)
        if region >= self.size:
            return clean(region, limit=self.size, unit="B")
        reason = f"a trace is used with a trace region of {size(region)}"
        return found(reason, value=region, limit=self.size, unit="B")
