"""Profiles of tt-lang that several calls are mixed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pytest_ttnn_perf.analysis.checklist.rule import Rule, clean, found, not_applicable
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject

#: More than one call cannot be told apart: this is no matter of taste.
_ONE: Final = 1


@dataclass(frozen=True, slots=True)
class ManyKernelInvocations(Rule):
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

    code: ClassVar[str] = "TTP005"
    name: ClassVar[str] = "many-kernel-invocations"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[Input, ...]] = (Input.KERNELS,)

    def check(self, subject: Subject) -> Answer:
        """Count the profiles of each kind."""
        log = subject.kernels
        assert log is not None
        counts = {
            "auto-profiles": len(log.auto_profiles),
            "signpost profiles": len(log.signpost_profiles),
        }
        most = max(counts.values())
        if not most:
            return not_applicable("no auto-profile and no signpost profile was printed")
        if most <= _ONE:
            return clean(most, limit=_ONE, unit="profiles")
        return found(
            f"{most} calls were profiled in one process: their cycles are added up",
            value=most,
            limit=_ONE,
            unit="profiles",
            evidence=(
                Evidence(kind, count, "profiles") for kind, count in counts.items() if count > _ONE
            ),
        )
