"""Kernels that read far more from DRAM than they write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.records.ttlang import SimCounters, TtlangLog


@rule("TTP809", "tiles-read-again", Severity.INFO, Input.KERNELS)
def tiles_read_again(
    kernels: TtlangLog,
    *,
    reads: Limit = Limit(4, "read per written", "a choice: three inputs for an output, and a bias"),
) -> Answer:
    """A kernel reads far more from DRAM than it writes there.

    ## What it finds
    What is read from DRAM for each tile, or byte, that is written there, of the program where that
    is most.

    ## Why it matters
    An op on three inputs reads three tiles for one that it writes. A kernel that reads many more
    may read the same tiles again for each block of its output, and each time wait for DRAM.

    ## What to do
    Make the blocks of the output larger, so that a tile serves more of them, or let one core read
    and send tiles to the others through a pipe.

    ## When it is no problem
    Sums over many tiles, and products with a long inner dimension, read much for what they write,
    each tile once. The sizes of tensors are unknown: compare with them.

    ## Where it looks
    `DRAM read` and `DRAM write` of tt-lang's PERF SUMMARY, or what its simulator counted, in
    statistics or in a trace.
    """
    moved = list(_simulated(kernels.sim)) if kernels.sim is not None else _profiled(kernels)
    if isinstance(moved, str):
        return Answer.not_measured(moved)
    ratios = sorted((each for each in moved if each.written), key=lambda each: -each.ratio)
    if not ratios:
        return Answer.not_applicable("nothing is written to DRAM")
    worst = ratios[0]
    named = _tensors(kernels.sim) if kernels.sim is not None else _programs(ratios, reads)
    return reads.at_most(
        worst.ratio,
        f"{worst.what} reads {worst.ratio:.1f} {worst.unit} from DRAM for each that it writes",
        named,
    )


class _Moved(NamedTuple):
    what: str
    read: int
    written: int
    unit: str

    @property
    def ratio(self) -> float:
        return self.read / self.written


def _profiled(log: TtlangLog) -> list[_Moved] | str:
    programs = kernels_of(log)
    if isinstance(programs, str):
        return programs
    return [
        _Moved(
            str(kernel),
            kernel.program.dram_read.size.bytes,
            kernel.program.dram_write.size.bytes,
            "bytes",
        )
        for kernel in programs
    ]


def _simulated(sim: SimCounters) -> Iterator[_Moved]:
    read, written = (sim.counters.get(f"dram_{way}_tiles", 0) for way in ("read", "write"))
    yield _Moved("the simulated program", read, written, "tiles")


def _programs(ratios: list[_Moved], limit: Limit) -> Iterator[Evidence]:
    for each in ratios:
        if each.ratio > limit.value:
            yield Evidence(each.what, each.ratio, limit.unit)


def _tensors(sim: SimCounters) -> Iterator[Evidence]:
    """Yield what is read of each tensor, most first."""
    tiles = {tensor.name: tensor.counters.get("dram_read_tiles", 0) for tensor in sim.tensors}
    for name in sorted(tiles, key=lambda name: (-tiles[name], name)):
        if tiles[name]:
            yield Evidence(f"tensor {name}", tiles[name], "tiles read")
