"""Small outputs of tt-lang for rules."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.readers.ttlang import (
    AutoProfile,
    PerfSummary,
    Problem,
    ProblemKind,
    ProgramPerf,
    Roofline,
    Span,
    Transfers,
    TtlangLog,
)
from pytest_ttnn_perf.core.finding import Subject


def program(
    number: int = 1024,
    *,
    name: str | None = "kernel",
    cores: int = 64,
    cycles: int = 1000,
    reads: int = 256,
    writes: int = 256,
    bytes_read: int = 1 << 20,
    bytes_written: int = 1 << 20,
    sizes: dict[int, int | None] | None = None,
    read_barriers: int | None = None,
    write_barriers: int | None = None,
    bandwidth: float | None = None,
) -> ProgramPerf:
    """Return a program; a size without a count is that of all transfers."""
    return ProgramPerf(
        number,
        name,
        (cores, 1),
        cores,
        Span(cycles, cycles / 1000),
        Transfers(bytes_read, reads),
        Transfers(bytes_written, writes),
        bandwidth_gb_s=bandwidth,
        transfer_sizes=tuple(Transfers(size, count) for size, count in (sizes or {}).items()),
        read_barriers=read_barriers,
        write_barriers=write_barriers,
    )


def printed(
    *programs: ProgramPerf,
    cores: int | None = 64,
    roofline: Roofline | None = None,
    problem: ProblemKind | None = None,
) -> Subject:
    """Return a log with a perf summary if there are programs, and a profile if a roofline."""
    summaries = (PerfSummary(programs, max_compute_cores=cores),) if programs else ()
    profiles = (AutoProfile(None, (), roofline, complete=True),) if roofline else ()
    problems = (Problem(1, problem, "…"),) if problem else ()
    return Subject(kernels=TtlangLog(summaries, profiles, problems=problems))
