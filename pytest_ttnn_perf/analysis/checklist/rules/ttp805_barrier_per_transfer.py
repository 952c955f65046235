"""Kernels that wait for every single transfer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.analysis.checklist.kernels import Kernel, kernels_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ttnn_perf.records.ttlang import TtlangLog


@rule("TTP805", "barrier-per-transfer", Severity.WARNING, Input.KERNELS)
def barrier_per_transfer(
    kernels: TtlangLog,
    *,
    transfers: Limit = Limit(2, "transfers per barrier", "tt-lang's guide: about 1 is a fault"),
) -> Answer:
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
    programs = kernels_of(kernels)
    if isinstance(programs, str):
        return Answer.not_measured(programs)
    ratios = sorted(_ratios(programs), key=lambda ratio: (ratio.transfers, ratio.what))
    if not ratios:
        return Answer.not_applicable("no program has more than one barrier on a core")
    fewest = ratios[0].transfers
    return transfers.at_least(
        fewest,
        f"{ratios[0].what} have a barrier after every {fewest:.1f} transfers",
        (
            Evidence(ratio.what, ratio.transfers, transfers.unit)
            for ratio in ratios
            if ratio.transfers < transfers.value
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
