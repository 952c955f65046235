"""The programs of a tt-lang log, their rooflines, hot lines and stalls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.readers.ttlang import ProblemKind

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.readers.ttlang import ProgramPerf, Roofline, Transfers, TtlangLog


_NO_SUMMARY: Final = "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1"
_SIMULATED: Final = "a simulator counts what is moved, and has no times"
_NO_ROOFLINE: Final = "the output has no ROOFLINE ANALYSIS: set TTLANG_AUTO_PROFILE=1"
#: Problems after which no number is what it seems to be.
_UNTRUSTED: Final = {
    ProblemKind.DROPPED: "the profiler dropped data: no number of this output can be trusted",
    ProblemKind.STALE: "the numbers may be of an earlier run",
}


#: A core that moves less than that waits, or computes long on little.
_MOVES_GB_S: Final = 1.0


class Kernel(NamedTuple):
    """A program of a log, with cores and clock of its chip."""

    program: ProgramPerf
    cores_there: int | None
    arch: str | None = None
    clock_mhz: float | None = None

    def __str__(self) -> str:
        name = f" ({self.program.name})" if self.program.name else ""
        return f"program {self.program.program_id}{name}"

    @property
    def time_ns(self) -> float:
        """The run time; without a clock, as it was printed."""
        duration = self.program.duration
        return duration.cycles * 1000 / self.clock_mhz if self.clock_mhz else duration.us * 1000

    @property
    def dram_bytes(self) -> int:
        """The bytes moved from and to DRAM."""
        return self.program.dram_read.size.bytes + self.program.dram_write.size.bytes

    @property
    def waits(self) -> bool:
        """True if its cores move next to nothing: more would wait, too."""
        return self.dram_bytes < _MOVES_GB_S * self.time_ns * self.program.cores

    @property
    def reads(self) -> int:
        """The number of transfers in."""
        return _count(self.program.dram_read) + _count(self.program.l1_read)

    @property
    def writes(self) -> int:
        """The number of transfers out."""
        out = (self.program.dram_write, self.program.l1_write, self.program.multicast)
        return sum(map(_count, out))


def kernels_of(log: TtlangLog) -> list[Kernel] | str:
    """Return the programs, or why there are none to judge."""
    problem = _distrust(log)
    if problem is not None:
        return problem
    kernels = {
        program.program_id: Kernel(
            program, summary.max_compute_cores or None, summary.arch, summary.clock_mhz
        )
        for summary in log.perf_summaries
        for program in summary.programs
    }
    # The two profile the same kernels, each in its own way: tt-lang must not be asked for both.
    alone = ", and unset TTLANG_AUTO_PROFILE" if log.auto_profiles else ""
    return list(kernels.values()) or _NO_SUMMARY + alone


def roofline_of(log: TtlangLog) -> Roofline | str:
    """Return the roofline of the longest kernel, or why it is missing."""
    problem = _distrust(log)
    if problem is not None:
        return problem
    lines = [profile.roofline for profile in log.auto_profiles if profile.roofline is not None]
    bounded = [line for line in lines if line.bound is not None]
    if not bounded and log.auto_profiles:
        return "the auto-profile has no ROOFLINE ANALYSIS that names a bound"
    alone = ", and unset TTLANG_PERF_DUMP" if log.perf_summaries else ""
    if not bounded:
        return _NO_ROOFLINE + alone
    return max(bounded, key=lambda line: max(line.memory_cycles or 0, line.compute_cycles or 0))


def _distrust(log: TtlangLog) -> str | None:
    if log.sim is not None:
        return _SIMULATED
    return next(
        (_UNTRUSTED[problem.kind] for problem in log.problems if problem.kind in _UNTRUSTED), None
    )


def waiting_part(line: Roofline) -> float | None:
    """Fraction of its cycles that the busiest thread waits; None if unknown."""
    threads = [thread for thread in line.threads if thread.total_cycles > 0]
    return min((thread.sync_cycles / thread.total_cycles for thread in threads), default=None)


def _count(moved: Transfers | None) -> int:
    return (moved.transfers or 0) if moved is not None else 0


class HotLine(NamedTuple):
    """A source line with its cycles, and their share of its thread."""

    thread: str
    kernel: str | None
    line: int
    source: str
    cycles: int
    share: float

    def __str__(self) -> str:
        return f"{self.thread} line {self.line}: {self.source}"


def hot_lines(log: TtlangLog) -> list[HotLine]:
    """Return the source lines that were hit, those with most cycles first.

    Cycles are sums over cores and iterations, with what the profiler adds. Lines of one thread that
    read alike are told as one by tt-lang, each time with all their cycles: the first stands for
    them.
    """
    found: dict[tuple[str, str], HotLine] = {}
    for thread in log.auto_profiles[-1].threads if log.auto_profiles else ():
        total = thread.total
        for line in thread.lines or ():
            cycles = line.total_cycles or line.longest_cycles or 0
            source = line.source.strip()
            if cycles and (total.thread, source) not in found:
                part = cycles / total.cycles if total.cycles else 0.0
                hot = HotLine(total.thread, total.kernel, line.line, source, cycles, part)
                found[total.thread, source] = hot
    return sorted(found.values(), key=lambda hot: (-hot.cycles, hot.thread, hot.line))


#: What a thread does while it waits for a buffer, and what it waits for.
_WAITS: Final = {"cb_wait": "to be filled", "cb_reserve": "to be emptied"}


class Stall(NamedTuple):
    """A line in which a thread waits for a buffer, if known."""

    thread: str
    line: int
    cycles: int
    what: str
    buffer: int | None
    awaited: str | None

    def __str__(self) -> str:
        name = "a buffer" if self.buffer is None else f"CB[{self.buffer}]"
        behind = f", {self.awaited}" if self.awaited else ""
        return f"{self.thread} line {self.line}: {name} {self.what}{behind}"


def stalls_of(log: TtlangLog) -> list[Stall]:
    """Return the waits for buffers of the last auto-profile, longest first."""
    found: list[Stall] = []
    for thread in log.auto_profiles[-1].threads if log.auto_profiles else ():
        lines = thread.lines or ()
        for line in lines:
            waits = {op.op: op.cycles for op in line.ops if op.op in _WAITS}
            for op, cycles in waits.items():
                # Graphs count from the first line of the kernel's function.
                at = line.line - lines[0].line + 1
                buffer = _buffer_at(log, thread.total.kernel, at, op)
                remark = next((f"by {w.awaited} at line {w.line} of {w.kernel}"
                               for w in line.waits if op == "cb_wait"), None)  # fmt: skip
                awaited = _pipe_into(log, buffer) or remark
                name = thread.total.thread
                found.append(Stall(name, line.line, cycles, _WAITS[op], buffer, awaited))
    return sorted(found, key=lambda stall: (-stall.cycles, stall.thread, stall.line))


def _buffer_at(log: TtlangLog, kernel: str | None, line: int, op: str) -> int | None:
    graph = log.flow_graphs[-1] if log.flow_graphs else None
    places = {
        buffer.number
        for buffer in (graph.buffers if graph else ())
        for used in (*buffer.producers, *buffer.consumers)
        if (used.kernel, used.line, used.op) == (kernel, line, op)
    }
    return places.pop() if len(places) == 1 else None


def _pipe_into(log: TtlangLog, buffer: int | None) -> str | None:
    """Say which pipe fills a buffer, if one does."""
    for graph in log.pipe_graphs[-1:]:
        for pipe in graph.pipes:
            if buffer is not None and pipe.receiver_buffer == buffer:
                return f"by a pipe from core {pipe.source[0]},{pipe.source[1]}"
    return None
