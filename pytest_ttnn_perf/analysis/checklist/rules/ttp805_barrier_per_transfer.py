"""Kernels that wait for every single transfer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of
from pytest_ttnn_perf.analysis.checklist.rule import (
    Rule,
    clean,
    found,
    limit,
    not_applicable,
    not_measured,
)
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ttnn_perf.analysis.checklist.kernels import Kernel
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject

_UNIT: Final = "transfers per barrier"


@dataclass(frozen=True, slots=True)
class BarrierPerTransfer(Rule):
    """Kernels wait after every transfer.

    ## What it finds
    Programs with about as many barriers as transfers, of reads or of writes.

    ## Why it matters
    A barrier waits until all transfers have arrived. With one after each transfer, the network
    carries one at a time, and the latency of each is paid in full.

    ## What to do
    Start several copies before waiting for the first: in tt-lang, call `ttl.copy` for a whole block
    or for several, then `wait`. Use a dataflow buffer of two blocks, so that the next one is on its
    way while the last one is used.

    ## When it is no problem
    Kernels whose cores have one barrier each: they transfer once.

    ## Where it looks
    `barriers` and the numbers of transfers in tt-lang's PERF SUMMARY. The program and direction
    with the fewest transfers per barrier counts.
    """

    code: ClassVar[str] = "TTP805"
    name: ClassVar[str] = "barrier-per-transfer"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.KERNELS,)

    transfers: float = limit(2, unit=_UNIT, source="tt-lang's guide: about 1 is a fault")

    def check(self, subject: Subject) -> Answer:
        """Compare the fewest transfers per barrier with the limit."""
        assert subject.kernels is not None
        kernels = kernels_of(subject.kernels)
        if isinstance(kernels, str):
            return not_measured(kernels)
        ratios = sorted(_ratios(kernels), key=lambda ratio: (ratio.transfers, ratio.what))
        if not ratios:
            return not_applicable("no program has more than one barrier on a core")
        fewest = ratios[0].transfers
        if fewest >= self.transfers:
            return clean(fewest, limit=self.transfers, unit=_UNIT)
        return found(
            f"{ratios[0].what} have a barrier after every {fewest:.1f} transfers",
            value=fewest,
            limit=self.transfers,
            unit=_UNIT,
            evidence=(
                Evidence(each.what, each.transfers, _UNIT)
                for each in ratios
                if each.transfers < self.transfers
            ),
        )


class _Ratio(NamedTuple):
    """Transfers per barrier, of reads or writes of a program."""

    what: str
    transfers: float


def _ratios(kernels: Iterable[Kernel]) -> Iterator[_Ratio]:
    for kernel in kernels:
        program = kernel.program
        for kind, told, transfers in (
            ("reads", program.read_barriers, kernel.reads),
            ("writes", program.write_barriers, kernel.writes),
        ):
            if told is not None and transfers and told.barriers > program.cores:
                yield _Ratio(f"{kind} of {kernel}", transfers / told.barriers)
