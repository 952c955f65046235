"""Kernels that leave cores idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.kernels import Kernel, kernels_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ttlang import TtlangLog

_NO_CORES: Final = (
    "tt-lang did not know the chip: the PERF SUMMARY does not say how many cores it has"
)


@rule("TTP801", "grid-underused", Severity.WARNING, Input.KERNELS)
def grid_underused(
    kernels: TtlangLog,
    *,
    share: Limit = Limit(0.5, "of the cores", "practice: fewer than half is under-parallelised"),
) -> Answer:
    """Kernels run on few of the cores that are there.

    ## What it finds
    The cores that programs use, as a share of those that the chip has for kernels, weighted by how
    long each program runs.

    ## Why it matters
    A core that gets no work is lost for the whole run of the kernel. On half of the cores, a kernel
    takes up to twice as long.

    ## What to do
    Give the operation a larger grid, up to `grid="auto"`, and cut the work into as many parts as
    there are cores: smaller blocks, or another dimension to cut along.

    ## When it is no problem
    A problem with fewer tiles than cores, or a kernel that is bound by DRAM and saturates it from
    few cores.

    ## Where it looks
    `grid`, `duration` and `max_compute_cores` of tt-lang's PERF SUMMARY. tt-lang counts the cores
    that sent anything. Where it does not know the chip, `max_compute_cores` is 0 and nothing can be
    told.
    """
    programs = kernels_of(kernels)
    if isinstance(programs, str):
        return Answer.not_measured(programs)
    known = [kernel for kernel in programs if kernel.cores_there]
    whole = sum(kernel.program.duration.cycles for kernel in known)
    if not whole:
        return Answer.not_measured("no program has a duration" if known else _NO_CORES)
    part = sum(_used(kernel) * kernel.program.duration.cycles for kernel in known) / whole
    return share.at_least(
        part,
        f"programs run on {percent(part)} of the cores, weighted by their time",
        (
            Evidence(f"{kernel}: of {kernel.cores_there}", kernel.program.cores, "cores")
            for kernel in sorted(known, key=_idle)
        ),
    )


def _used(kernel: Kernel) -> float:
    return min(1.0, kernel.program.cores / (kernel.cores_there or 1))


def _idle(kernel: Kernel) -> tuple[float, int]:
    """Sort the kernel that wastes most to the front."""
    wasted = (1 - _used(kernel)) * kernel.program.duration.cycles
    return -wasted, kernel.program.program_id
