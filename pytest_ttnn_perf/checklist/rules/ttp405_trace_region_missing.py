"""Traces without memory of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pytest_ttnn_perf.checklist.rule import Rule, clean, found, limit, not_applicable, not_measured
from pytest_ttnn_perf.checklist.stated import number, settings_of, uses_trace
from pytest_ttnn_perf.model.finding import Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.subject import Subject

_REFUSED: Final = re.compile(
    r"trace buffers of size (\d+)B on .{0,40}, but only (\d+)B is allocated for trace region"
)
_NAMES: Final = ("trace_region_size", "TT_RUNTIME_TRACE_REGION_SIZE")


@dataclass(frozen=True, slots=True)
class TraceRegionMissing(Rule):
    """A trace is used, and the device has no memory set aside for traces.

    ## What it finds
    A trace on a device that was opened with a trace region of 0 bytes, or a test that ended because
    its trace did not fit the region.

    ## Why it matters
    Older releases refuse to capture without a region. Newer ones then put the trace among the other
    buffers in DRAM, where it can collide with what the trace itself allocates.

    ## What to do
    Open the device with `trace_region_size=`; the error of a trace that does not fit names the size
    that it needs. With tt-xla, set TT_RUNTIME_TRACE_REGION_SIZE, e.g. to 10000000, before
    torch_xla is imported.

    ## When it is no problem
    Releases since February 2026 allocate traces by themselves where the region is 0 bytes. Set the
    limit to 0 if that is what you rely on.

    ## Where it looks
    The error that ended the test; otherwise whether a trace is used (METAL TRACE ID in the op
    table, or the fact `use_trace`) and how large the region is: `trace_region_size`, observed when
    the device was opened or stated as a fact, or TT_RUNTIME_TRACE_REGION_SIZE, where None says that
    it was not set.
    """

    code: ClassVar[str] = "TTP405"
    name: ClassVar[str] = "trace-region-missing"
    severity: ClassVar[Severity] = Severity.WARNING

    size: float = limit(1, unit="B", source="TTNN: 0 is no region")

    def check(self, subject: Subject) -> Answer:
        """Look for a refused trace, then for one without a region."""
        raised = subject.observation.raised if subject.observation is not None else None
        refused = _REFUSED.search(raised or "")
        if refused is not None:
            needed, there = map(int, refused.groups())
            reason = f"the trace did not fit: it needs {needed} B, and the region has {there} B"
            return found(reason, value=there, limit=needed, unit="B")
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
        size = max(number(value) or 0.0 for value in known)
        if size >= self.size:
            return clean(size, limit=self.size, unit="B")
        reason = f"a trace is used with a trace region of {size:.0f} B"
        return found(reason, value=size, limit=self.size, unit="B")
