"""The programs of a tt-lang log, as far as their numbers can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.model.ttlang import ProblemKind

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.ttlang import ProgramPerf, Roofline, Transfers, TtlangLog

_NO_SUMMARY: Final = "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1"
_NO_ROOFLINE: Final = "the output has no ROOFLINE ANALYSIS: set TTLANG_AUTO_PROFILE=1"
#: Problems after which no number is what it seems to be.
_UNTRUSTED: Final = {
    ProblemKind.DROPPED: "the profiler dropped data: no number of this output can be trusted",
    ProblemKind.STALE: "the numbers may be of an earlier run",
}


class Kernel(NamedTuple):
    """A program, with the cores that its chip has for kernels; None where that is not told."""

    program: ProgramPerf
    cores_there: int | None

    def __str__(self) -> str:
        name = f" ({self.program.name})" if self.program.name else ""
        return f"program {self.program.program_id}{name}"

    @property
    def reads(self) -> int:
        """How many transfers brought data in."""
        return _count(self.program.dram_read) + _count(self.program.l1_read)

    @property
    def writes(self) -> int:
        """How many transfers took data out."""
        out = (self.program.dram_write, self.program.l1_write, self.program.multicast)
        return sum(map(_count, out))


def kernels_of(log: TtlangLog) -> list[Kernel] | str:
    """Return the programs, or why there are none to judge.

    Each summary lists the programs of earlier calls again, so that the last word counts.
    """
    problem = _distrust(log)
    if problem is not None:
        return problem
    kernels = {
        program.program_id: Kernel(program, summary.max_compute_cores or None)
        for summary in log.perf_summaries
        for program in summary.programs
    }
    return list(kernels.values()) or _NO_SUMMARY


def roofline_of(log: TtlangLog) -> Roofline | str:
    """Return the roofline of the kernel that works longest, or why there is none."""
    problem = _distrust(log)
    if problem is not None:
        return problem
    lines = [profile.roofline for profile in log.auto_profiles if profile.roofline is not None]
    told = [line for line in lines if line.bound is not None]
    return max(told, key=_work) if told else _NO_ROOFLINE


def _distrust(log: TtlangLog) -> str | None:
    return next((_UNTRUSTED[each.kind] for each in log.problems if each.kind in _UNTRUSTED), None)


def _work(line: Roofline) -> int:
    return max(line.memory_cycles or 0, line.compute_cycles or 0)


def _count(moved: Transfers | None) -> int:
    return (moved.transfers or 0) if moved is not None else 0
