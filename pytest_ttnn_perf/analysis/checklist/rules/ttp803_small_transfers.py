"""Kernels that move their data in small pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
    in_flight: Limit = Limit(2, "transfers per barrier", "TTP805: about 1 is a fault"),
    many: Limit = Limit(64, "transfers", "a choice: one for each core"),
) -> Answer:
    """Kernels move their data in small transfers.

    ## What it finds
    The share of small transfers among those of all programs: less than a tile, or one tile in a
    program that waits after every two transfers or fewer.

    ## Why it matters
    Each transfer costs the same to start, whatever its size. Many small ones keep the network busy
    with starting, and DRAM gives a part of its bandwidth only.

    ## What to do
    Move whole tiles, and keep more transfers in flight: start several copies before waiting for
    the first. Read what lies side by side in memory at once.

    ## When it is no problem
    Kernels that move little, or that are bound by compute (TTP804). An interleaved tensor has one
    tile on each page, and pages lie in turn in all banks: no transfer of it moves more than a tile,
    however large a block is.

    ## Where it looks
    `transfer size` and `barriers` of tt-lang's PERF SUMMARY: one tile of bfloat16 has 2 KB, of
    bfloat8_b 1,088 B, of bfloat4_b 576 B. Fewer transfers than the limit `many`, all programs
    together, are not worth the question.
    """
    programs = kernels_of(kernels)
    if isinstance(programs, str):
        return Answer.not_measured(programs)
    sizes = list(_sizes(programs))
    whole = sum(count for _, _, count in sizes)
    if not whole and any(kernel.reads + kernel.writes for kernel in programs):
        return Answer.not_measured("the PERF SUMMARY does not give the sizes of transfers")
    if whole < many.value:
        return Answer.not_applicable(f"there are few transfers: {whole}")
    small = [
        (kernel, one, count)
        for kernel, one, count in sizes
        if one <= size.value and (one not in _TILES or _waits_often(kernel, in_flight.value))
    ]
    part = sum(count for _, _, count in small) / whole
    named = ((f"{kernel}: of {one} B", count) for kernel, one, count in small)
    return share.at_most(
        part,
        f"{percent(part)} of {whole} transfers move less than a tile, or a tile in programs that "
        f"wait after every {in_flight.value:g} transfers or fewer",
        by_weight(named, unit="transfers"),
    )


#: The bytes of a tile: of bfloat4_b, bfloat8_b, bfloat16.
_TILES: Final = frozenset({576, 1088, 2048})


def _waits_often(kernel: Kernel, transfers: float) -> bool:
    """Tell whether a program reads that few transfers, or fewer, between two barriers."""
    told = kernel.program.read_barriers
    if told is None or told.barriers <= kernel.program.cores:  # once on each core
        return False
    return kernel.reads <= transfers * told.barriers


def _sizes(kernels: Iterable[Kernel]) -> Iterator[tuple[Kernel, int, int]]:
    """Yield kernel, bytes and number of the transfers that have one size."""
    for kernel in kernels:
        for size, count in kernel.program.transfer_sizes:
            all_of_them = kernel.reads + kernel.writes
            yield kernel, size.bytes, all_of_them if count is None else count
