"""Profiles of tt-lang that several calls are mixed in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ttlang import TtlangLog

_ONE: Final = Limit(1, "profiles", "more than one call cannot be told apart")


@rule("TTP005", "many-kernel-invocations", Severity.ERROR, Input.KERNELS)
def many_kernel_invocations(kernels: TtlangLog) -> Answer:
    """A tt-lang profile adds several calls together.

    ## What it finds
    More than one auto-profile, or more than one signpost profile, in the output of one process.

    ## Why it matters
    tt-lang prints a profile after every call of an operation, from a file that grows with each
    call. From the second on, the cycles of all calls so far are added up, and no line of the
    profile is that of one call.

    ## What to do
    Call the kernel once in the profiled process, or profile in a process of its own per call. The
    tt-lang profiler of the gate does so with what `measure` is given.

    ## When it is no problem
    Never for these two profiles. Perf summaries tell programs apart, and are not looked at.

    ## Where it looks
    The auto-profiles and signpost profiles in the output of tt-lang.
    """
    counts = {
        "auto-profiles": len(kernels.auto_profiles),
        "signpost profiles": len(kernels.signpost_profiles),
    }
    most = max(counts.values())
    if not most:
        return Answer.not_applicable("no auto-profile and no signpost profile was printed")
    return _ONE.at_most(
        most,
        f"{most} calls were profiled in one process: their cycles are added up",
        (Evidence(kind, count, "profiles") for kind, count in counts.items() if count > 1),
    )
