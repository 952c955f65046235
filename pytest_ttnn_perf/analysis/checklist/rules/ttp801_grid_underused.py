"""Kernels that leave cores idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.kernels import Kernel, kernels_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import LAUNCH_NS
from pytest_ttnn_perf.analysis.ops.roofline import board_of_arch
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.records.ttlang import TtlangLog

_ARITHMETIC: Final = "time − the longest of time × cores ÷ possible, DRAM bytes ÷ peak and 2 µs"
_NO_CORES: Final = (
    "tt-lang did not know the chip: the PERF SUMMARY does not say how many cores it has"
)


@rule("TTP801", "grid-underused", Severity.WARNING, Input.KERNELS)
def grid_underused(
    kernels: TtlangLog,
    *,
    share: Limit = Limit(0.5, "of the cores", "practice: fewer than half is under-parallelised"),
    one_core: Limit = Limit(0.1, "of the time", "a choice: a tenth on one core is worth a look"),
) -> Answer:
    """Kernels run on few of the cores that are there.

    ## What it finds
    The cores that programs use, as a share of those that the chip has for kernels, weighted by how
    long each program runs; and programs on a grid of 1x1, whatever the chip.

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
    that sent anything. Where it does not know the chip, `max_compute_cores` is 0, and only a single
    core can be told to be too few. The saving is that of as many cores as there are transfers out,
    down to what DRAM takes to move the same bytes. Programs whose cores move less than 1 GB/s each
    are left out: what they wait for does not get less with more of them.
    """
    programs = kernels_of(kernels)
    if isinstance(programs, str):
        return Answer.not_measured(programs)
    whole = sum(kernel.program.duration.cycles for kernel in programs)
    if not whole:
        return Answer.not_measured("no program has a duration")
    waiting = sum(kernel.waits for kernel in programs)
    apart = f"; {counted(waiting, 'program')} below 1 GB/s per core not counted" if waiting else ""
    programs = [kernel for kernel in programs if not kernel.waits]
    if not programs:
        return Answer.not_applicable(
            "no program moves 1 GB/s on each of its cores: more would wait"
        )
    known = [kernel for kernel in programs if kernel.cores_there]
    known_part = _used_part(known)
    if known_part is not None and known_part < share.value:
        found = share.found(
            known_part,
            f"programs run on {percent(known_part)} of the cores, weighted by their time{apart}",
            map(_evidence, sorted(known, key=_idle)),
        )
        return _with_saving(found, known)
    single = [kernel for kernel in programs if kernel.program.cores == 1]
    alone = sum(kernel.program.duration.cycles for kernel in single) / whole
    if alone > one_core.value:
        grid = f"{counted(len(single), 'program')} on a grid of 1x1"
        found = one_core.found(
            alone,
            f"{percent(alone)} of the time goes into {grid}{apart}",
            map(_evidence, sorted(single, key=_idle)),
        )
        return _with_saving(found, single)
    return Answer.not_measured(_NO_CORES) if known_part is None else share.clean(known_part)


def _used_part(kernels: Sequence[Kernel]) -> float | None:
    """Return which part of the cores programs use, weighted by their time; None if not known."""
    whole = sum(kernel.program.duration.cycles for kernel in kernels)
    if not whole:
        return None
    return sum(_used(kernel) * kernel.program.duration.cycles for kernel in kernels) / whole


def _evidence(kernel: Kernel) -> Evidence:
    of = f" of {kernel.cores_there}" if kernel.cores_there else ""
    cores = kernel.cores_there or kernel.program.cores
    noun = "core" if cores == 1 else "cores"
    return Evidence(f"{kernel} on {kernel.program.cores}{of} {noun}", kernel.time_ns, "ns")


def _with_saving(found: Answer, kernels: Sequence[Kernel]) -> Answer:
    saved = sum(map(_saved_ns, kernels))
    return found.saving({}, _ARITHMETIC, waiting_ns=saved) if saved else found


def _saved_ns(kernel: Kernel) -> float:
    """Return what more cores would save of the time, down to what DRAM takes to move the data."""
    cores, board = kernel.program.cores, board_of_arch(kernel.arch)
    if not kernel.cores_there:
        return 0.0
    possible = min(kernel.cores_there, kernel.writes or kernel.cores_there)
    moving_ns = kernel.dram_bytes / board.dram_gb_s if board else 0.0
    shortest = max(kernel.time_ns * cores / max(possible, cores), moving_ns, LAUNCH_NS)
    return max(0.0, kernel.time_ns - shortest)


def _used(kernel: Kernel) -> float:
    return min(1.0, kernel.program.cores / (kernel.cores_there or 1))


def _idle(kernel: Kernel) -> tuple[float, int]:
    """Sort the kernel that wastes most to the front."""
    wasted = (1 - _used(kernel)) * kernel.program.duration.cycles
    return -wasted, kernel.program.program_id
