"""Kernels of tt-lang: cores, transfers, bounds, waiting threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.operands import by_weight
from pytest_ttnn_perf.analysis.checklist.savings import LAUNCH_NS
from pytest_ttnn_perf.analysis.ops.roofline import board_of_arch
from pytest_ttnn_perf.analysis.readers.ttlang import ProblemKind
from pytest_ttnn_perf.core.finding import Answer, Evidence, Input, Limit, Severity, rule
from pytest_ttnn_perf.core.text import counted, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.analysis.readers.ttlang import (
        ProgramPerf,
        Roofline,
        Transfers,
        TtlangLog,
    )


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
        return self.program.dram_read.bytes + self.program.dram_write.bytes

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
        for line in thread.lines:
            cycles = line.total_cycles or 0
            source = line.source.strip()
            if cycles and (thread.thread, source) not in found:
                part = cycles / thread.cycles if thread.cycles else 0.0
                hot = HotLine(thread.thread, thread.kernel, line.line, source, cycles, part)
                found[thread.thread, source] = hot
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
        for line in thread.lines:
            waits = {op.op: op.cycles for op in line.ops if op.op in _WAITS}
            for op, cycles in waits.items():
                # Graphs count from the first line of the kernel's function.
                at = line.line - thread.lines[0].line + 1
                buffer = _buffer_at(log, thread.kernel, at, op)
                remark = next((f"by {w.awaited} at line {w.line} of {w.kernel}"
                               for w in line.waits if op == "cb_wait"), None)  # fmt: skip
                awaited = _pipe_into(log, buffer) or remark
                name = thread.thread
                found.append(Stall(name, line.line, cycles, _WAITS[op], buffer, awaited))
    return sorted(found, key=lambda stall: (-stall.cycles, stall.thread, stall.line))


def _buffer_at(log: TtlangLog, kernel: str | None, line: int, op: str) -> int | None:
    places = {
        buffer.number
        for buffer in (log.flow_graphs[-1] if log.flow_graphs else ())
        for used in (*buffer.producers, *buffer.consumers)
        if (used.kernel, used.line, used.op) == (kernel, line, op)
    }
    return places.pop() if len(places) == 1 else None


def _pipe_into(log: TtlangLog, buffer: int | None) -> str | None:
    """Say which pipe fills a buffer, if one does."""
    for graph in log.pipe_graphs[-1:]:
        for pipe in graph:
            if buffer is not None and pipe.receiver_buffer == buffer:
                return f"by a pipe from core {pipe.source[0]},{pipe.source[1]}"
    return None


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

    Finds the cores that programs use, as a share of those that the chip has for kernels, weighted
    by how long each program runs; and programs on a grid of 1x1, whatever the chip. On half of the
    cores, a kernel takes up to twice as long.

    ## What to do
    Give the operation a larger grid, up to `grid="auto"`, and cut the work into as many parts as
    there are cores: smaller blocks, or another dimension to cut along.

    ## When it is no problem
    A problem with fewer tiles than cores, or a kernel that saturates DRAM from few cores. Programs
    whose cores move less than 1 GB/s each are left out: more of them would wait as well.
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
    known_time = sum(kernel.program.duration.cycles for kernel in known)
    used = sum(_used(kernel) * kernel.program.duration.cycles for kernel in known)
    part = used / known_time if known_time else None
    if part is not None and part < share.value:
        sentence = f"programs run on {percent(part)} of the cores, weighted by their time{apart}"
        return _with_saving(share.found(part, sentence, _on_cores(known)), known)
    single = [kernel for kernel in programs if kernel.program.cores == 1]
    alone = sum(kernel.program.duration.cycles for kernel in single) / whole
    if alone > one_core.value:
        grid = f"{counted(len(single), 'program')} on a grid of 1x1"
        sentence = f"{percent(alone)} of the time goes into {grid}{apart}"
        return _with_saving(one_core.found(alone, sentence, _on_cores(single)), single)
    return Answer.not_measured(_NO_CORES) if part is None else share.clean(part)


def _used(kernel: Kernel) -> float:
    return min(1.0, kernel.program.cores / (kernel.cores_there or 1))


def _on_cores(kernels: Sequence[Kernel]) -> Iterator[Evidence]:
    """Yield programs on their cores, the one that wastes most first."""

    def wasted(kernel: Kernel) -> tuple[float, int]:
        idle = (1 - _used(kernel)) * kernel.program.duration.cycles
        return -idle, kernel.program.program_id

    for kernel in sorted(kernels, key=wasted):
        of = f" of {kernel.cores_there}" if kernel.cores_there else ""
        noun = "core" if (kernel.cores_there or kernel.program.cores) == 1 else "cores"
        yield Evidence(f"{kernel} on {kernel.program.cores}{of} {noun}", kernel.time_ns, "ns")


def _with_saving(found: Answer, kernels: Sequence[Kernel]) -> Answer:
    saved = 0.0
    for kernel in kernels:
        if kernel.cores_there:
            cores, board = kernel.program.cores, board_of_arch(kernel.arch)
            possible = min(kernel.cores_there, kernel.writes or kernel.cores_there)
            moving_ns = kernel.dram_bytes / board.dram_gb_s if board else 0.0
            shortest = max(kernel.time_ns * cores / max(possible, cores), moving_ns, LAUNCH_NS)
            saved += max(0.0, kernel.time_ns - shortest)
    arithmetic = "time − the longest of time × cores ÷ possible, DRAM bytes ÷ peak and 2 µs"
    return found.saving({}, arithmetic, waiting_ns=saved) if saved else found


#: The bytes of a tile: of bfloat4_b, bfloat8_b, bfloat16.
_TILES: Final = frozenset({576, 1088, 2048})


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

    Finds the share of small transfers among those of all programs: less than a tile, or one tile in
    a program that waits after every two transfers or fewer. Each transfer costs the same to start,
    whatever its size.

    ## What to do
    Move whole tiles, and keep more transfers in flight: start several copies before waiting for the
    first. Read what lies side by side in memory at once.

    ## When it is no problem
    Kernels that move little, or that are bound by compute (TTP804). An interleaved tensor has one
    tile on each page, and pages lie in turn in all banks: no transfer of it moves more than a tile,
    however large a block is.
    """
    programs = kernels_of(kernels)
    if isinstance(programs, str):
        return Answer.not_measured(programs)
    sizes = [
        (kernel, one, kernel.reads + kernel.writes if count is None else count)
        for kernel in programs
        for one, count in kernel.program.transfer_sizes
    ]
    whole = sum(count for _, _, count in sizes)
    if not whole and any(kernel.reads + kernel.writes for kernel in programs):
        return Answer.not_measured("the PERF SUMMARY does not give the sizes of transfers")
    if whole < many.value:
        return Answer.not_applicable(f"there are few transfers: {whole}")

    def waits_often(kernel: Kernel) -> bool:
        told = kernel.program.read_barriers
        if told is None or told <= kernel.program.cores:  # once on each core
            return False
        return kernel.reads <= in_flight.value * told

    small = [
        (kernel, one, count)
        for kernel, one, count in sizes
        if one <= size.value and (one not in _TILES or waits_often(kernel))
    ]
    part = sum(count for _, _, count in small) / whole
    named = ((f"{kernel}: of {one} B", count) for kernel, one, count in small)
    return share.at_most(
        part,
        f"{percent(part)} of {whole} transfers move less than a tile, or a tile in programs that "
        f"wait after every {in_flight.value:g} transfers or fewer",
        by_weight(named, unit="transfers"),
    )


#: What takes longer, and what shorter.
_SIDES: Final = {"memory": ("moving data", "computing"), "compute": ("computing", "moving data")}


@rule("TTP804", "bound", Severity.INFO, Input.KERNELS)
def bound(
    kernels: TtlangLog,
    *,
    imbalance: Limit = Limit(0.1, "of the longer work", "a choice: within a tenth is balanced"),
    waiting: Limit = Limit(
        0.5, "of its cycles", "a choice: who waits for most of them is not busy"
    ),
) -> Answer:
    """A kernel is bound by memory or by compute.

    Finds which threads of a kernel work longer without waiting, those that move data or those that
    compute, and by how much: (longer - shorter) / longer. Only work on the longer side makes the
    kernel faster.

    ## What to do
    Bound by memory: larger transfers (TTP803), fewer barriers (TTP805), read each tile once and
    share it between cores. Bound by compute: more cores (TTP801), a lower math fidelity, fused ops.

    ## When it is no problem
    Every kernel is bound by something; within the limit it is called balanced. Where even the
    busiest thread waits for most of its cycles (TTP808), neither side binds.
    """
    line = roofline_of(kernels)
    if isinstance(line, str):
        return Answer.not_measured(line)
    least = waiting_part(line)
    if least is not None and least > waiting.value:
        told = f"every thread waits for {percent(least)} or more of its cycles (TTP808)"
        return Answer.not_applicable(f"{told}: neither moving data nor computing binds")
    apart = (line.bound_percent or 0) / 100
    longer, shorter = _SIDES["compute" if line.bound == "compute" else "memory"]
    waits = "" if line.threads else "; this version of tt-lang counts waiting as work"
    evidence = [
        Evidence(f"{side} ({thread})" if thread else side, cycles, "cycles")
        for side, thread, cycles in (
            ("memory", line.memory_thread, line.memory_cycles),
            ("compute", line.compute_thread, line.compute_cycles),
        )
        if cycles is not None
    ]
    programs = kernels_of(kernels)
    evidence += [
        Evidence(f"{kernel}: bandwidth", kernel.program.bandwidth_gb_s, "GB/s")
        for kernel in ([] if isinstance(programs, str) else programs)
        if kernel.program.bandwidth_gb_s is not None
    ]
    return imbalance.at_most(
        apart,
        f"{line.bound}-bound: {shorter} takes {percent(apart)} fewer cycles than {longer}{waits}",
        evidence,
    )


@rule("TTP805", "barrier-per-transfer", Severity.WARNING, Input.KERNELS)
def barrier_per_transfer(
    kernels: TtlangLog,
    *,
    transfers: Limit = Limit(2, "transfers per barrier", "tt-lang's guide: about 1 is a fault"),
) -> Answer:
    """Kernels wait after every transfer.

    Finds programs with about as many barriers as transfers, of reads or of writes. The network then
    carries one transfer at a time, and the latency of each is paid in full.

    ## What to do
    Start several copies before waiting for the first: in tt-lang, call `ttl.copy` for a whole block
    or for several, then `wait`. Use a dataflow buffer of two blocks, so that the next one is on its
    way while the last one is used.

    ## When it is no problem
    Kernels whose cores have one barrier each: they transfer once.
    """
    programs = kernels_of(kernels)
    if isinstance(programs, str):
        return Answer.not_measured(programs)
    ratios = sorted(
        (count / told, f"{kind} of {kernel}")
        for kernel in programs
        for kind, told, count in (
            ("reads", kernel.program.read_barriers, kernel.reads),
            ("writes", kernel.program.write_barriers, kernel.writes),
        )
        if told is not None and count and told > kernel.program.cores
    )
    if not ratios:
        return Answer.not_applicable("no program has more than one barrier on a core")
    fewest, what = ratios[0]
    return transfers.at_least(
        fewest,
        f"{what} have a barrier after every {fewest:.1f} transfers",
        (
            Evidence(name, ratio, transfers.unit)
            for ratio, name in ratios
            if ratio < transfers.value
        ),
    )


#: What good kernels reach of the peak.
_REACHED: Final = 0.75


@rule("TTP806", "low-dram-bandwidth", Severity.WARNING, Input.KERNELS)
def low_dram_bandwidth(
    kernels: TtlangLog,
    *,
    share: Limit = Limit(0.5, "of the DRAM bandwidth", "a choice; good kernels reach 75 %"),
) -> Answer:
    """A kernel is bound by memory, and DRAM is far from busy.

    Finds the bytes that programs move from and to DRAM, over their time, as a share of the
    bandwidth of the chip. A kernel that is bound by memory at a tenth of the bandwidth waits for
    single transfers.

    ## What to do
    Keep more transfers in flight: several copies before a wait (TTP805), dataflow buffers of two
    blocks (TTP808), and more cores that read (TTP801). Move whole tiles (TTP803), and read from all
    channels of DRAM.

    ## When it is no problem
    Kernels that compute, or that run so briefly that starting them takes most of their time.
    Without a ROOFLINE ANALYSIS, which tells whether memory binds, it is for information.
    """
    programs = kernels_of(kernels)
    if isinstance(programs, str):
        return Answer.not_measured(programs)
    line = roofline_of(kernels)
    if not isinstance(line, str) and line.bound == "compute":
        return Answer.not_applicable("the kernel is bound by compute (TTP804)")
    boards = {kernel: board_of_arch(kernel.arch) for kernel in programs if kernel.time_ns}
    peaks = {kernel: board.dram_gb_s for kernel, board in boards.items() if board is not None}
    if not peaks:
        return Answer.not_measured("the bandwidth of the chip is not known: the log names no chip")
    possible = sum(kernel.time_ns * peak for kernel, peak in peaks.items())
    part = sum(kernel.dram_bytes for kernel in peaks) / possible
    reached = {kernel: kernel.dram_bytes / kernel.time_ns / peak for kernel, peak in peaks.items()}
    answer = share.at_least(
        part,
        f"programs move {percent(part)} of what DRAM could move in that time",
        (
            Evidence(f"{kernel}: {percent(reached[kernel])} of {peaks[kernel]:g} GB/s",
                     kernel.dram_bytes / kernel.time_ns, "GB/s")
            for kernel in sorted(peaks, key=lambda kernel: -kernel.time_ns)
        ),
    )  # fmt: skip
    if isinstance(line, str):
        return replace(answer, severity=Severity.INFO)  # it may well compute
    if len(programs) > 1:
        return answer  # the profile is of one of them, and does not say of which
    saved = (
        kernel.time_ns - kernel.dram_bytes / (_REACHED * peak) for kernel, peak in peaks.items()
    )
    waiting_ns = sum(max(0.0, each) for each in saved)
    return answer.saving({}, "time − DRAM bytes / (0.75 × peak)", waiting_ns=waiting_ns)


@rule("TTP807", "uneven-cores", Severity.WARNING, Input.KERNELS)
def uneven_cores(
    kernels: TtlangLog,
    *,
    skew: Limit = Limit(1.5, "x the quickest core", "practice: a skew above 1.5 is uneven work"),
) -> Answer:
    """The cores of a kernel do not finish together.

    Finds how much longer a thread's kernel runs on the slowest core than on the quickest, of the
    program and thread where that is most. A program is over when its last core is.

    ## What to do
    Give each core the same number of blocks: cut the work so that it divides by the number of
    cores, or let the cores that have fewer blocks take the larger ones.

    ## When it is no problem
    Kernels in which one core serves the others, as the sender of a pipe does.
    """
    programs = kernels_of(kernels)
    if isinstance(programs, str):
        return Answer.not_measured(programs)
    times = [
        (time.longest.cycles / time.shortest.cycles, kernel, time)
        for kernel in programs
        for time in kernel.program.kernel_times
        if time.shortest.cycles > 0
    ]
    if not times:
        return Answer.not_measured("the output does not give kernel times of single cores")
    times.sort(key=lambda each: -each[0])
    worst, kernel, time = times[0]
    evidence = (
        Evidence(f"{time.thread} of {kernel}", ratio, skew.unit)
        for ratio, kernel, time in times
        if ratio > skew.value
    )
    saved_ns = 0.0
    for program in programs:
        own = [time for _, kernel, time in times if kernel is program]
        cycles = program.program.duration.cycles
        if own and cycles:
            longest = max(own, key=lambda time: time.longest.cycles)
            spare = (longest.longest.cycles - longest.shortest.cycles) / 2
            saved_ns += program.time_ns * min(spare / cycles, 1.0)
    return skew.at_most(
        worst,
        f"{time.thread} of {kernel} runs {worst:.2f} x as long on the slowest core",
        evidence,
    ).saving(
        {}, "half of what the slowest core takes longer than the quickest", waiting_ns=saved_ns
    )


@rule("TTP808", "threads-take-turns", Severity.WARNING, Input.KERNELS)
def threads_take_turns(
    kernels: TtlangLog,
    *,
    share: Limit = Limit(0.3, "of its cycles", "a choice: the busiest thread should hardly wait"),
) -> Answer:
    """All threads of a kernel wait for each other.

    Finds the share of its cycles in which the thread that waits least waits for a dataflow buffer:
    to be filled (`cb_wait`) or to be emptied (`cb_reserve`). In a kernel that overlaps moving and
    computing, one thread is always busy.

    ## What to do
    Give the buffers that are named two blocks or more (`block_count=2`), so that one is filled
    while the other is used. Start the next copy before waiting for the last one. Where a pipe fills
    the buffer, send earlier.

    ## When it is no problem
    Kernels with so few blocks that filling the first and writing the last is most of their time.
    """
    line = roofline_of(kernels)
    if isinstance(line, str):
        return Answer.not_measured(line)
    threads = [thread for thread in line.threads if thread.total_cycles > 0]
    if not threads:
        return Answer.not_measured("this version of tt-lang does not separate waiting from working")
    least = min(threads, key=lambda thread: thread.sync_cycles / thread.total_cycles)
    part = least.sync_cycles / least.total_cycles
    told = f"even {least.thread}, which waits least, waits for {percent(part)} of its cycles"
    evidence = [Evidence(str(stall), stall.cycles, "cycles") for stall in stalls_of(kernels)]
    answer = share.at_most(part, told, evidence)
    programs = kernels_of(kernels)
    if isinstance(programs, str) or len(programs) > 1:
        return answer  # of several, it is not told which one was profiled
    longest = max(thread.total_cycles for thread in threads)
    work = max(thread.work_cycles for thread in threads)
    saved_ns = programs[0].time_ns * max(0.0, 1 - work / longest)
    return answer.saving(
        {}, "time × (1 − most work / longest thread): no thread would wait", waiting_ns=saved_ns
    )


_WAYS: Final = ("read", "write")


@rule("TTP809", "tiles-read-again", Severity.INFO, Input.KERNELS)
def tiles_read_again(
    kernels: TtlangLog,
    *,
    reads: Limit = Limit(4, "read per written", "a choice: three inputs for an output, and a bias"),
) -> Answer:
    """A kernel reads far more from DRAM than it writes there.

    Finds what is read from DRAM for each tile, or byte, that is written there, of the program where
    that is most. A kernel that reads many more tiles than it writes may read the same ones again
    for each block of its output.

    ## What to do
    Make the blocks of the output larger, so that a tile serves more of them, or let one core read
    and send tiles to the others through a pipe.

    ## When it is no problem
    Sums over many tiles, and products with a long inner dimension, read much for what they write,
    each tile once. The sizes of tensors are unknown: compare with them.
    """
    if kernels.sim is not None:
        read, written = (kernels.sim.counters.get(f"dram_{way}_tiles", 0) for way in _WAYS)
        ratios = [(read / written, "the simulated program")] if written else []
        unit = "tiles"
        of = {each.name: each.counters.get("dram_read_tiles", 0) for each in kernels.sim.tensors}
        evidence = [
            Evidence(f"tensor {name}", of[name], "tiles read")
            for name in sorted(of, key=lambda name: (-of[name], name))
            if of[name]
        ]
    else:
        programs = kernels_of(kernels)
        if isinstance(programs, str):
            return Answer.not_measured(programs)
        ratios = [
            (each.program.dram_read.bytes / each.program.dram_write.bytes, str(each))
            for each in programs
            if each.program.dram_write.bytes
        ]
        ratios.sort(key=lambda each: -each[0])
        unit = "bytes"
        evidence = [Evidence(name, r, reads.unit) for r, name in ratios if r > reads.value]
    if not ratios:
        return Answer.not_applicable("nothing is written to DRAM")
    worst, what = ratios[0]
    return reads.at_most(
        worst, f"{what} reads {worst:.1f} {unit} from DRAM for each that it writes", evidence
    )
