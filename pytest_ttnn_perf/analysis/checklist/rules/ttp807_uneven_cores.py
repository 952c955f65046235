"""Kernels whose cores do not have the same amount of work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.kernels import Kernel
    from pytest_ttnn_perf.records.ttlang import KernelTime, TtlangLog

_NO_TIMES: Final = "the output does not give kernel times of single cores"
_ARITHMETIC: Final = "half of what the slowest core takes longer than the quickest"


@rule("TTP807", "uneven-cores", Severity.WARNING, Input.KERNELS)
def uneven_cores(
    kernels: TtlangLog,
    *,
    skew: Limit = Limit(1.5, "x the quickest core", "practice: a skew above 1.5 is uneven work"),
) -> Answer:
    """The cores of a kernel do not finish together.

    ## What it finds
    How much longer a thread's kernel runs on the slowest core than on the quickest, of the program
    and thread where that is most.

    ## Why it matters
    A program is over when its last core is. Cores that have less to do wait for it.

    ## What to do
    Give each core the same number of blocks: cut the work so that it divides by the number of
    cores, or let the cores that have fewer blocks take the larger ones.

    ## When it is no problem
    Kernels in which one core serves the others, as the sender of a pipe does.

    ## Where it looks
    `kernel time` of tt-lang's PERF SUMMARY, which has the quickest and the slowest core of each
    thread. How many cores are quick is unknown: the saving assumes that half are.
    """
    programs = kernels_of(kernels)
    if isinstance(programs, str):
        return Answer.not_measured(programs)
    times = [
        (_ratio(time), kernel, time)
        for kernel in programs
        for time in kernel.program.kernel_times
        if time.shortest.cycles > 0
    ]
    if not times:
        return Answer.not_measured(_NO_TIMES)
    times.sort(key=lambda each: -each[0])
    worst, kernel, time = times[0]
    told = f"{time.thread} of {kernel} runs {worst:.2f} x as long on the slowest core"
    evidence = (
        Evidence(f"{time.thread} of {kernel}", ratio, skew.unit)
        for ratio, kernel, time in times
        if ratio > skew.value
    )
    answer = skew.at_most(worst, told, evidence)
    return answer.saving({}, _ARITHMETIC, waiting_ns=sum(map(_saved_ns, programs)))


def _ratio(time: KernelTime) -> float:
    return time.longest.cycles / time.shortest.cycles


def _saved_ns(kernel: Kernel) -> float:
    """Return what even work would save of a program: by the thread with the longest kernel."""
    cycles = kernel.program.duration.cycles
    times = [time for time in kernel.program.kernel_times if time.shortest.cycles > 0]
    if not times or not cycles:
        return 0.0
    longest = max(times, key=lambda time: time.longest.cycles)
    spare = (longest.longest.cycles - longest.shortest.cycles) / 2
    return kernel.time_ns * min(spare / cycles, 1.0)
