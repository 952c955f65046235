"""Kernels that move their data in small pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of
from pytest_ttnn_perf.analysis.checklist.operands import by_weight
from pytest_ttnn_perf.analysis.checklist.rule import (
    Rule,
    clean,
    found,
    limit,
    not_applicable,
    not_measured,
)
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ttnn_perf.analysis.checklist.kernels import Kernel
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject

_UNIT: Final = "of the transfers"


@dataclass(frozen=True, slots=True)
class SmallTransfers(Rule):
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

    code: ClassVar[str] = "TTP803"
    name: ClassVar[str] = "small-transfers"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.KERNELS,)

    share: float = limit(0.5, unit=_UNIT, source="a choice: most of them")
    size: float = limit(2048, unit="B", source="tt-lang's guide: transfers of up to 2 KB are small")
    many: float = limit(64, unit="transfers", source="a choice: one for each core")

    def check(self, subject: Subject) -> Answer:
        """Compare the share of small transfers with the limit."""
        assert subject.kernels is not None
        kernels = kernels_of(subject.kernels)
        if isinstance(kernels, str):
            return not_measured(kernels)
        sizes = list(_sizes(kernels))
        whole = sum(count for _, _, count in sizes)
        if not whole and any(kernel.reads + kernel.writes for kernel in kernels):
            return not_measured("the PERF SUMMARY does not tell the sizes of transfers")
        if whole < self.many:
            return not_applicable(f"there are few transfers: {whole}")
        small = [each for each in sizes if each[1] <= self.size]
        share = sum(count for _, _, count in small) / whole
        if share <= self.share:
            return clean(share, limit=self.share, unit=_UNIT)
        named = ((f"{kernel}: of {size} B", count) for kernel, size, count in small)
        return found(
            f"{percent(share)} of {whole} transfers move {self.size:.0f} B or less",
            value=share,
            limit=self.share,
            unit=_UNIT,
            evidence=by_weight(named, unit="transfers"),
        )


def _sizes(kernels: Iterable[Kernel]) -> Iterator[tuple[Kernel, int, int]]:
    """Yield kernel, bytes and number of the transfers that have one size."""
    for kernel in kernels:
        for size, count in kernel.program.transfer_sizes:
            all_of_them = kernel.reads + kernel.writes
            yield kernel, size.bytes, all_of_them if count is None else count
