"""The calls of operations that tt-lang's perf summaries are of, and what each program did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.model.ttlang import ProblemKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pytest_ttnn_perf.model.ttlang import PerfSummary, ProgramPerf


class Measured(NamedTuple):
    """What one program did; None where that is not known."""

    time_ns: float | None
    read_bytes: float
    write_bytes: float
    transfers: float | None
    barriers: float | None


class Call(NamedTuple):
    """A call of an operation, and the programs that it ran, in the order of their ids."""

    name: str | None
    programs: tuple[Measured, ...]


def calls_of(summaries: Sequence[PerfSummary], doubts: Collection[ProblemKind]) -> Iterator[Call]:
    """Yield the calls that summaries were printed after; ``doubts`` is what is wrong with the log.

    Traces of earlier calls stay, so each summary repeats them; what it repeats is left out.
    """
    seen: set[ProgramPerf] = set()
    for summary in summaries:
        # The name of the operation stands at the program whose trace sorts first as text, 10240
        # before 2048: it names the call, and no program of it.
        names = {program.name for program in summary.programs if program.name is not None}
        nameless = [replace(program, name=None) for program in summary.programs]
        new = [program for program in nameless if program not in seen]
        seen.update(new)
        if new:
            new.sort(key=lambda program: program.program_id)
            measured = [_measured(program, summary.clock_mhz, doubts) for program in new]
            yield Call(names.pop() if len(names) == 1 else None, tuple(measured))


def _measured(
    program: ProgramPerf, clock_mhz: float | None, doubts: Collection[ProblemKind]
) -> Measured:
    read, write = program.dram_read, program.dram_write
    counts = (read.transfers, write.transfers)
    waits = (program.read_barriers, program.write_barriers)
    # A log has no line of barriers where there are none, or where it was not understood.
    known = ProblemKind.UNREAD not in doubts or None not in waits
    return Measured(
        _time_ns(program, clock_mhz, doubts),
        read.size.bytes,
        write.size.bytes,
        None if None in counts else sum(count or 0 for count in counts),
        sum(wait.barriers for wait in waits if wait is not None) if known else None,
    )


def _time_ns(
    program: ProgramPerf, clock_mhz: float | None, doubts: Collection[ProblemKind]
) -> float | None:
    if clock_mhz is not None:
        return program.duration.cycles * 1000 / clock_mhz
    # Of a log that begins below the line of the clock, the time as it was printed.
    return None if ProblemKind.UNKNOWN_CHIP in doubts else program.duration.us * 1000
