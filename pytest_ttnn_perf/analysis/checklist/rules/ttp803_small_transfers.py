"""Kernels that move their data in small pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.kernels import Kernel, kernels_of
from pytest_ttnn_perf.analysis.checklist.operands import by_weight
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ttnn_perf.records.ttlang import TtlangLog


@rule("TTP803", "small-transfers", Severity.WARNING, Input.KERNELS)
def small_transfers(
    kernels: TtlangLog,
    *,
    share: Limit = Limit(0.5, "of the transfers", "a choice: most of them"),
    size: Limit = Limit(2048, "B", "tt-lang's guide: transfers of up to 2 KB are small"),
    many: Limit = Limit(64, "transfers", "a choice: one for each core"),
) -> Answer:
    """Kernels move their data in small transfers.

    ## What it finds
    The share of small transfers among those of all programs.

    ## Why it matters
    Each transfer costs the same to start, whatever its size. Many small ones keep the network busy
    with starting, and DRAM gives a part of its bandwidth only.

    ## What to do
    Make the blocks of a copy larger than one tile, so that one transfer moves several tiles. Read
    what lies side by side in memory at once.

    ## When it is no problem
    Kernels that move little, or that are bound by compute (TTP804).

    ## Where it looks
    `transfer size` of tt-lang's PERF SUMMARY: one tile of bfloat16 has 2 KB. Fewer transfers than
    the limit `many`, all programs together, are not worth the question.
    """
    programs = kernels_of(kernels)
    if isinstance(programs, str):
        return Answer.not_measured(programs)
    sizes = list(_sizes(programs))
    whole = sum(count for _, _, count in sizes)
    if not whole and any(kernel.reads + kernel.writes for kernel in programs):
        return Answer.not_measured("the PERF SUMMARY does not tell the sizes of transfers")
    if whole < many.value:
        return Answer.not_applicable(f"there are few transfers: {whole}")
    small = [sized for sized in sizes if sized[1] <= size.value]
    part = sum(count for _, _, count in small) / whole
    named = ((f"{kernel}: of {one} B", count) for kernel, one, count in small)
    return share.at_most(
        part,
        f"{percent(part)} of {whole} transfers move {size.value:.0f} B or less",
        by_weight(named, unit="transfers"),
    )


def _sizes(kernels: Iterable[Kernel]) -> Iterator[tuple[Kernel, int, int]]:
    """Yield kernel, bytes and number of the transfers that have one size."""
    for kernel in kernels:
        for size, count in kernel.program.transfer_sizes:
            all_of_them = kernel.reads + kernel.writes
            yield kernel, size.bytes, all_of_them if count is None else count
