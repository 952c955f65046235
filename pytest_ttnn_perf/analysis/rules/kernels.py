"""Kernels of tt-lang: cores, transfers, blocks, bounds, waiting threads."""

from __future__ import annotations

import re
from itertools import pairwise
from math import isqrt, prod
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.operands import by_weight
from pytest_ttnn_perf.analysis.checklist.savings import LAUNCH_NS
from pytest_ttnn_perf.analysis.ops.roofline import board_of_arch
from pytest_ttnn_perf.analysis.readers.ttlang import Kernel, ProblemKind
from pytest_ttnn_perf.core.finding import (
    Answer,
    Evidence,
    Input,
    Limit,
    Severity,
    UnmeasuredError,
    rule,
)
from pytest_ttnn_perf.core.hardware import BLACKHOLE, WORMHOLE, system_of
from pytest_ttnn_perf.core.text import counted, duration, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.readers.ttlang import (
        KernelTime,
        Roofline,
        SimOperation,
        TtlangLog,
    )
    from pytest_ttnn_perf.core.hardware import Scalar


_NO_SUMMARY: Final = (
    "the output has no PERF SUMMARY, as ttnn-perf run --profiler ttlang -- python K prints"
)
_SIMULATED: Final = "a simulator counts what is moved, and has no times"
_NO_ROOFLINE: Final = (
    "the output has no auto-profile, as ttnn-perf run --profiler lines -- python K prints"
)
_OLDER: Final = "the auto-profile is an older report: it names no bound"
#: Problems after which no number is what it seems to be.
_UNTRUSTED: Final = {
    ProblemKind.DROPPED: "the profiler dropped data: no number of this output can be trusted",
    ProblemKind.STALE: "the numbers may be of an earlier run",
}


def kernels_of(log: TtlangLog) -> list[Kernel]:
    """Return the programs of a log; none if it cannot be trusted."""
    return [] if _distrust(log) else log.kernels


def _asked(log: TtlangLog) -> list[Kernel]:
    if not (kernels := kernels_of(log)):
        raise UnmeasuredError(_distrust(log) or _NO_SUMMARY)
    return kernels


def roofline_of(log: TtlangLog) -> Roofline | None:
    """Return the roofline of the longest kernel that has a bound."""
    lines = (profile.roofline for profile in log.auto_profiles)
    bounded = [line for line in lines if line is not None and line.bound and not _distrust(log)]
    return max(bounded, default=None,
               key=lambda line: max(line.memory_cycles or 0, line.compute_cycles or 0))  # fmt: skip


def _asked_roofline(log: TtlangLog) -> Roofline:
    if (line := roofline_of(log)) is None:
        raise UnmeasuredError(_distrust(log) or (_OLDER if log.auto_profiles else _NO_ROOFLINE))
    return line


def _distrust(log: TtlangLog) -> str | None:
    if log.sim is not None:
        return _SIMULATED
    kinds = (problem.kind for problem in log.problems)
    return next((_UNTRUSTED[kind] for kind in kinds if kind in _UNTRUSTED), None)


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


_NO_CORES: Final = "how many cores the chip has is unknown: state the fact target, such as n150"
#: Cores for kernels of a chip, besides those that dispatch.
_CORES: Final = {WORMHOLE: 64, BLACKHOLE: 110}


def target_cores(facts: Mapping[str, Scalar]) -> int | None:
    """Return the cores of a target's chip; None if unknown."""
    system = system_of(str(facts.get("target") or ""))
    return None if system is None else _CORES.get(system[0])


class _Grid(NamedTuple):
    """The cores of a kernel; ``weight`` is its time, or its tiles."""

    kernel: Kernel | SimOperation
    cores: int
    there: int | None
    weight: float
    time_ns: float = 0.0
    waits: bool = False
    splits: bool = True

    @property
    def used(self) -> float:
        return min(1.0, self.cores / (self.there or 1))

    def evidence(self) -> Evidence:
        of = f" of {self.there}" if self.there else ""
        noun = "core" if (self.there or self.cores) == 1 else "cores"
        times = (self.time_ns, "ns") if self.time_ns else ()
        return Evidence(f"{self.kernel} on {self.cores}{of} {noun}", *times)


def _grids(log: TtlangLog, target: int | None) -> list[_Grid]:
    if log.sim is None:
        return [
            _Grid(each, each.program.cores, target or each.cores_there,
                  each.program.duration.cycles, each.time_ns, each.waits)
            for each in _asked(log)
        ]  # fmt: skip
    return [
        # The whole grid is all of any chip, and one block is not cut into more.
        _Grid(each, each.nodes, each.nodes if each.full else target, each.tiles,
              splits=each.blocks > 1)
        for each in log.sim.operations
    ]  # fmt: skip


@rule("TTP801", "grid-underused", Severity.WARNING, Input.KERNELS)
def grid_underused(
    kernels: TtlangLog,
    facts: Mapping[str, Scalar],
    *,
    share: Limit = Limit(0.5, "of the cores", "practice: fewer than half is under-parallelised"),
    one_core: Limit = Limit(0.1, "of the time", "a choice: a tenth on one core is worth a look"),
) -> Answer:
    """Kernels run on few of the cores that are there.

    Finds the cores that programs use, weighted by how long each program runs. It is a share of all
    cores of the chip: the fact `target`, or else the chip that was measured. Finds programs on a
    grid of 1x1, whatever the chip. On half of the cores, a kernel takes up to twice as long. In a
    simulation the nodes of a grid are the cores.

    ## What to do
    Give the operation a larger grid, up to `grid="full"`, and cut the work into as many parts as
    there are cores: smaller blocks, or another dimension to cut along.

    ## When it is no problem
    A problem with fewer tiles than cores, or a kernel that saturates DRAM from few cores. Programs
    whose cores move less than 1 GB/s each are left out: more of them would wait as well.
    """
    of = "time" if kernels.sim is None else "tiles"
    grids = _grids(kernels, target_cores(facts))
    whole = sum(grid.weight for grid in grids)
    if not whole:
        return Answer.not_measured("no program has a duration")
    waiting = sum(grid.waits for grid in grids)
    apart = f"; {counted(waiting, 'program')} below 1 GB/s per core not counted" if waiting else ""
    grids = sorted(
        (grid for grid in grids if not grid.waits), key=lambda grid: (grid.used - 1) * grid.weight
    )
    if not grids:
        return Answer.not_applicable(
            "no program moves 1 GB/s on each of its cores: more would wait"
        )
    known = [grid for grid in grids if grid.there]
    known_weight = sum(grid.weight for grid in known)
    part = sum(grid.used * grid.weight for grid in known) / known_weight if known_weight else None
    if part is not None and part < share.value:
        sentence = f"programs run on {percent(part)} of the cores, weighted by their {of}{apart}"
        return _with_saving(share.found(part, sentence, (each.evidence() for each in known)), known)
    single = [grid for grid in grids if grid.cores == 1 and grid.splits]
    alone = sum(grid.weight for grid in single) / whole
    if alone > one_core.value:
        sentence = (
            f"{percent(alone)} of the {of} goes into {counted(len(single), 'program')} on a grid "
            f"of 1x1{apart}"
        )
        found = one_core.found(alone, sentence, (each.evidence() for each in single))
        return _with_saving(found, single)
    return Answer.not_measured(_NO_CORES) if part is None else share.clean(part)


def least_ns(kernel: Kernel, there: int) -> float:
    """Return the least time of a kernel on so many cores."""
    cores, board = kernel.program.cores, board_of_arch(kernel.arch)
    possible = min(there, kernel.writes or there)
    moving_ns = kernel.dram_bytes / board.dram_gb_s if board else 0.0
    return max(kernel.time_ns * cores / max(possible, cores), moving_ns, LAUNCH_NS)


def _with_saving(found: Answer, grids: Sequence[_Grid]) -> Answer:
    saved = sum(
        max(0.0, grid.time_ns - least_ns(grid.kernel, grid.there))
        for grid in grids
        if grid.there and isinstance(grid.kernel, Kernel)
    )
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
    many: Limit = Limit(64, "transfers", "a choice: one for each core"),
) -> Answer:
    """Kernels move their data in small transfers.

    Finds the share of transfers that move less than a tile, among those of all programs. Each
    transfer costs the same to start, whatever its size.

    ## What to do
    Move whole tiles, and keep more transfers in flight: start several copies before waiting for the
    first. Read what lies side by side in memory at once.

    ## When it is no problem
    Kernels that move little, or that are bound by compute (TTP804). `ttl.copy` moves one tile per
    transfer, however large a block is: the size of blocks is TTP810.
    """
    programs = _asked(kernels)
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
    small = {
        f"{kernel}: of {one} B": count
        for kernel, one, count in sizes
        if one <= size.value and one not in _TILES
    }
    part = sum(small.values()) / whole
    return share.at_most(
        part,
        f"{percent(part)} of {whole} transfers move less than a tile",
        by_weight(small.items(), unit="transfers"),
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

    Finds which threads of a kernel work longer without waiting: the ones that move data, or the
    ones that compute, and by how much: (longer - shorter) / longer. Only work on the longer side
    makes the kernel faster.

    ## What to do
    Bound by memory: larger transfers (TTP803), fewer barriers (TTP805), read each tile once and
    share it between cores. Bound by compute: more cores (TTP801), a lower math fidelity, fused ops.

    ## When it is no problem
    Every kernel is bound by something; within the limit it is called balanced. Where even the
    busiest thread waits for most of its cycles (TTP808), neither side binds.
    """
    line = _asked_roofline(kernels)
    if line.busiest is not None and line.busiest.waiting > waiting.value:
        told = f"every thread waits for {percent(line.busiest.waiting)} or more of its cycles"
        return Answer.not_applicable(f"{told} (TTP808): neither moving data nor computing binds")
    apart = (line.bound_percent or 0) / 100
    longer, shorter = _SIDES["compute" if line.bound == "compute" else "memory"]
    evidence = [
        Evidence(f"{side} ({thread})" if thread else side, cycles, "cycles")
        for side, thread, cycles in (
            ("memory", line.memory_thread, line.memory_cycles),
            ("compute", line.compute_thread, line.compute_cycles),
        )
        if cycles is not None
    ]
    return imbalance.at_most(
        apart,
        f"{line.bound}-bound: {shorter} takes {percent(apart)} fewer cycles than {longer}",
        evidence,
    )


@rule("TTP805", "barrier-per-transfer", Severity.WARNING, Input.KERNELS)
def barrier_per_transfer(
    kernels: TtlangLog,
    *,
    transfers: Limit = Limit(2, "transfers per barrier", "tt-lang's guide: about 1 is a fault"),
) -> Answer:
    """Kernels wait after every transfer.

    Finds programs with about as many barriers as transfers, of reads or of writes; and simulated
    threads that read several tensors, and wait for each copy before they start the next. The
    network then carries one transfer at a time, and the latency of each is paid in full.

    ## What to do
    Start several copies before waiting for the first: in tt-lang, call `ttl.copy` for a whole block
    or for several, then `wait`. Use a dataflow buffer of two blocks, so that the next one is on its
    way while the last one is used.

    ## When it is no problem
    Kernels whose cores have one barrier each: they transfer once.
    """
    if kernels.sim is not None:
        in_turn = [each for each in kernels.sim.operations if each.in_flight == 1]
        if all(each.in_flight is None for each in kernels.sim.operations):
            return Answer.not_applicable("no thread reads several tensors")
        what = f"{', '.join(map(str, in_turn))}: each copy is awaited before the next begins"
        return transfers.at_least(1.0 if in_turn else transfers.value, what)
    programs = _asked(kernels)
    if not any(kernel.barriers for kernel in programs):
        return Answer.not_measured(NO_BARRIERS)
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


#: Said where the line of barriers is missing.
NO_BARRIERS: Final = "the output does not count barriers: ttnn 0.77 and newer leave them out"


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
    Without a ROOFLINE ANALYSIS, which says whether memory binds, it is for information.
    """
    programs, line = _asked(kernels), roofline_of(kernels)
    if line is not None and line.bound == "compute":
        return Answer.not_applicable("the kernel is bound by compute (TTP804)")
    boards = {kernel: board_of_arch(kernel.arch) for kernel in programs if kernel.time_ns}
    peaks = {kernel: board.dram_gb_s for kernel, board in boards.items() if board is not None}
    if not peaks:
        return Answer.not_measured("the bandwidth of the chip is not known: the log names no chip")
    possible = sum(kernel.time_ns * peak for kernel, peak in peaks.items())
    part = sum(kernel.dram_bytes for kernel in peaks) / possible
    answer = share.at_least(
        part,
        f"programs move {percent(part)} of what DRAM could move in that time",
        (
            Evidence(f"{kernel}: {percent(moved / peaks[kernel])} of {peaks[kernel]:g} GB/s",
                     moved, "GB/s")
            for kernel in sorted(peaks, key=lambda kernel: -kernel.time_ns)
            for moved in (kernel.dram_bytes / kernel.time_ns,)
        ),
    )  # fmt: skip
    if line is None:
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
    program and thread where that is most. A program is over when its last core is. In a simulation,
    finds how many tiles the busiest node takes out of its buffers, against the mean of all nodes.

    ## What to do
    Give each core the same number of blocks: cut the work so that it divides by the number of
    cores, or let the cores that have fewer blocks take the larger ones.

    ## When it is no problem
    Kernels in which one core serves the others, as the sender of a pipe does.
    """
    if kernels.sim is not None:
        busiest = [
            (max(each.node_tiles) * each.nodes / each.tiles, each)
            for each in kernels.sim.operations
            if each.nodes > 1 and each.tiles
        ]
        if not busiest:
            return Answer.not_applicable("no operation runs on several nodes")
        worst, one = max(busiest, key=itemgetter(0))
        working = f"{one.nodes_working} of {one.nodes} nodes take tiles"
        return skew.at_most(worst, f"{one}: {working}, the busiest {worst:.1f} x the mean")
    times = sorted(
        (
            (time.longest.cycles / time.shortest.cycles, kernel, time)
            for kernel in _asked(kernels)
            for time in kernel.program.kernel_times
            if time.shortest.cycles > 0
        ),
        key=lambda each: -each[0],
    )
    if not times:
        return Answer.not_measured("the output does not give kernel times of single cores")
    worst, kernel, time = times[0]
    longest: dict[Kernel, KernelTime] = {}
    for _, each, own in times:
        longest[each] = max(longest.get(each, own), own, key=lambda one: one.longest.cycles)
    spare = (
        (each, (own.longest.cycles - own.shortest.cycles) / 2 / each.program.duration.cycles)
        for each, own in longest.items()
        if each.program.duration.cycles
    )
    return skew.at_most(
        worst,
        f"{time.thread} of {kernel} runs {worst:.2f} x as long on the slowest core",
        (
            Evidence(f"{own.thread} of {each}", ratio, skew.unit)
            for ratio, each, own in times
            if ratio > skew.value
        ),
    ).saving(
        {},
        "half of what the slowest core takes longer than the quickest",
        waiting_ns=sum(each.time_ns * min(part, 1.0) for each, part in spare),
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
    computing, one thread is always busy. In a simulation, finds operations none of whose buffers
    ever holds two blocks.

    ## What to do
    Give the buffers that are named two blocks or more (`block_count=2`), so that one is filled
    while the other is used. Start the next copy before waiting for the last one. Where a pipe fills
    the buffer, send earlier.

    ## When it is no problem
    Kernels with so few blocks that filling the first and writing the last is most of their time.
    """
    if kernels.sim is not None:
        return _simulated_turns(kernels.sim.operations)
    line = _asked_roofline(kernels)
    least = line.busiest
    if least is None:
        return Answer.not_measured("this version of tt-lang does not separate waiting from working")
    told = f"even {least.thread}, which waits least, waits for {percent(least.waiting)}"
    evidence = (Evidence(str(stall), stall.cycles, "cycles") for stall in stalls_of(kernels))
    answer = share.at_most(least.waiting, f"{told} of its cycles", evidence)
    programs = kernels_of(kernels)
    if len(programs) != 1:
        return answer  # of several, it is not told which one was profiled
    longest = max(thread.total_cycles for thread in line.threads)
    work = max(thread.work_cycles for thread in line.threads)
    saved_ns = programs[0].time_ns * max(0.0, 1 - work / longest)
    return answer.saving(
        {}, "time × (1 − most work / longest thread): no thread would wait", waiting_ns=saved_ns
    )


def _simulated_turns(operations: Sequence[SimOperation]) -> Answer:
    several = [each for each in operations if each.blocks > 1]
    if not several:
        return Answer.not_applicable("no buffer gets a second block")
    # One that never held two is no proof: its reader may have been quick.
    single = [each for each in several if all(buffer.fullest < 2 for buffer in each.buffers)]
    if not single:
        return Answer.clean()
    evidence = (
        Evidence(f"{buffer.name} of {each}: block_count={buffer.block_count}")
        for each in single
        for buffer in each.declared
    )
    names = ", ".join(map(str, single))
    return Answer.found(f"{names}: no buffer ever holds two blocks", evidence=evidence)


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
    for each block of its output. Where a trace lists the tiles, it is clean if none is read twice,
    and a tensor of which some are read again and others never is found.

    ## What to do
    Make the blocks of the output larger, so that a tile serves more of them, or let one core read
    and send tiles to the others through a pipe.

    ## When it is no problem
    Sums over many tiles, and products with a long inner dimension, read much for what they write,
    each tile once. The sizes of tensors are unknown: compare with them.
    """
    if kernels.sim is not None:
        uses = [use for each in kernels.sim.operations for use in each.tensors if use.read]
        if uses and all(use.read == use.distinct for use in uses):
            return reads.clean(None, reason="no tile is read twice")
        parts = [use for use in uses if use.distinct < use.tiles <= use.read]
        if parts:
            sentence = (
                f"{use.name}: {use.read} tiles are read, and only {use.distinct} of its {use.tiles}"
                for use in parts
            )
            return reads.found(max(use.read / use.distinct for use in parts), "; ".join(sentence))
        read, written = (kernels.sim.counters.get(f"dram_{way}_tiles", 0) for way in _WAYS)
        moved = {"the simulated program": (read, written)}
        of = {f"tensor {one.name}": one.counters.get("dram_read_tiles", 0)
              for one in kernels.sim.tensors}  # fmt: skip
        evidence = [*by_weight(((n, k) for n, k in of.items() if k), unit="tiles read")]
    else:
        moved = {str(each): (each.program.dram_read.bytes, each.program.dram_write.bytes)
                 for each in _asked(kernels)}  # fmt: skip
        evidence = []
    ratios = {name: read / written for name, (read, written) in moved.items() if written}
    if not ratios:
        return Answer.not_applicable("nothing is written to DRAM")
    what = max(ratios, key=ratios.__getitem__)
    unit = "bytes" if kernels.sim is None else "tiles"
    return reads.at_most(
        ratios[what],
        f"{what} reads {ratios[what]:.1f} {unit} from DRAM for each that it writes",
        evidence
        or by_weight(
            ((name, ratio) for name, ratio in ratios.items() if ratio > reads.value),
            unit=reads.unit,
        ),
    )


# Blocks: what waiting for each costs, and how large one may be.

#: What a buffer's handshake takes of a core, and what a transfer takes to arrive: tt-lang's own.
_HANDSHAKE_NS: Final = {WORMHOLE: 160.0, BLACKHOLE: 90.0}
_LATENCY_CYCLES: Final = 293
_TILE_BYTES: Final = {
    "bfloat16": 2048, "uint16": 2048, "float32": 4096, "int32": 4096, "uint32": 4096,
    "bfloat8_b": 1088, "bfloat4_b": 576, "uint8": 1024,
}  # fmt: skip
#: What dataflow buffers may take of a core, where the device does not say.
L1_BUDGET_BYTES: Final = 1432 * 1024
#: An elementwise op takes so long for each tile of a core, which it makes of two others.
_TAKING_NS: Final = 650.0 / 3
#: So many blocks a buffer has, where nothing tells: one is filled while the other is used.
_USUAL_BLOCKS: Final = 2


def kib(count: float) -> str:
    """Return bytes as the budget of L1 is given."""
    return f"{count / 1024:,.0f} KiB"


class Blocks(NamedTuple):
    """The blocks of a kernel: the waits of a core, and L1.

    ``factor`` is how much larger they can be, ``shape`` what one is, if all are alike; ``least``:
    more L1 may be taken, by buffers that the output does not list.
    """

    name: str
    waits: float
    tiles: float
    time_ns: float
    handshake_ns: float
    latency_ns: float
    l1_bytes: float
    budget_bytes: int
    least: bool
    shape: tuple[int, ...] = ()
    factor: int = 1

    @property
    def least_ns(self) -> float:
        return self.waits * self.handshake_ns

    @property
    def most_ns(self) -> float:
        return self.waits * (self.handshake_ns + self.latency_ns)

    @property
    def larger(self) -> str:
        side = isqrt(self.factor)
        if len(self.shape) == 2 and side * side == self.factor:
            return f"{self.shape[0] * side}x{self.shape[1] * side} tiles"
        return f"blocks {self.factor} times as large"

    def grown(self, cores: int, tiles: float, facts: Mapping[str, Scalar]) -> Blocks:
        """Find how much larger blocks can be.

        They fit, divide, and leave all cores one. ``tiles`` are those of the largest tensor, as
        measured.
        """
        scale = (production_tiles(facts) or tiles) / tiles if tiles else 1.0
        own = int(self.waits * cores * scale / max(target_cores(facts) or cores, cores))
        room = int(self.budget_bytes / self.l1_bytes) if self.l1_bytes else 1
        fitting = [each for each in range(1, min(own, room) + 1) if own % each == 0]
        squares = [each for each in fitting if each > 1 and isqrt(each) ** 2 == each]
        return self._replace(factor=max(squares or fitting, default=1))


def blocks_of(log: TtlangLog, facts: Mapping[str, Scalar]) -> list[Blocks]:
    """Return the blocks of each kernel that says how often it waits."""
    budget = log.l1_overflow.budget_bytes if log.l1_overflow else L1_BUDGET_BYTES
    if log.sim is not None:
        arch = (system_of(str(facts.get("target") or "")) or (WORMHOLE,))[0]
        return [_blocks_of_operation(each, arch, facts, budget) for each in log.sim.operations]
    kernels = (kernel for kernel in kernels_of(log) if kernel.barriers)
    return [_blocks_of_program(each, log, facts, budget) for each in kernels]


def l1_of(one: SimOperation) -> int:
    """Return the bytes of a node's buffers; at least, if undeclared."""
    if one.declared:
        return sum(buffer.bytes or 0 for buffer in one.declared)
    return sum(b.tiles * b.fullest * _TILE_BYTES["bfloat16"] for b in one.buffers)


def _blocks_of_operation(
    one: SimOperation, arch: str, facts: Mapping[str, Scalar], budget: int
) -> Blocks:
    board, most = board_of_arch(arch), max(one.node_tiles, default=0)
    moving_ns = one.copied_tiles * _TILE_BYTES["bfloat16"] / board.dram_gb_s if board else 0.0
    shapes = {buffer.shape for buffer in one.declared}
    return Blocks(
        str(one), one.blocks, max((buffer.tiles for buffer in one.buffers), default=0),
        max(moving_ns, most * _TAKING_NS), _HANDSHAKE_NS.get(arch, 0.0), 0.0, l1_of(one), budget,
        least=not one.declared, shape=shapes.pop() if len(shapes) == 1 else (),
    ).grown(one.nodes, max((use.tiles for use in one.tensors), default=0), facts)  # fmt: skip


def _blocks_of_program(
    kernel: Kernel, log: TtlangLog, facts: Mapping[str, Scalar], budget: int
) -> Blocks:
    program, cores, tiles = kernel.program, kernel.program.cores, kernel.tiles_per_wait.values()
    # Kernels of one operation: with those of several, no block is known to be of this one.
    codes = log.codes if len({code.kernel for code in log.codes}) <= _THREADS else ()
    blocks: dict[int, int] = {}
    for code in codes:
        blocks |= {number: max(blocks.get(number, 0), n) for number, n in code.blocks.items()}
    largest = max((one.bytes for one in program.transfer_sizes), default=_TILE_BYTES["bfloat16"])
    tile = max((code.tile_bytes or 0 for code in codes), default=0) or largest
    return Blocks(
        str(kernel), max(program.read_barriers or 0, program.write_barriers or 0) / cores,
        max(blocks.values(), default=0) or max(tiles), kernel.time_ns,
        _HANDSHAKE_NS.get(kernel.arch or WORMHOLE, 0.0),
        _LATENCY_CYCLES * 1000 / (kernel.clock_mhz or 1000),
        _USUAL_BLOCKS * tile * float(sum(blocks.values()) or sum(tiles)), budget, least=True,
    ).grown(cores, program.dram_write.bytes // tile, facts)  # fmt: skip


#: The kernels of an operation: one computes, two move data.
_THREADS: Final = 3


@rule("TTP810", "small-blocks", Severity.WARNING, Input.KERNELS)
def small_blocks(
    kernels: TtlangLog,
    facts: Mapping[str, Scalar],
    *,
    share: Limit = Limit(0.05, "of the time", "a choice: less is within the noise"),
) -> Answer:
    """Kernels wait for many small blocks.

    Finds what the waits for dataflow buffers cost a core, where larger blocks fit into L1: 0.16 µs
    for each block on Wormhole, 0.09 µs on Blackhole. A block that fits divides the blocks of a core
    and leaves one for each core of the fact `target`; tiles are those of the fact
    `production_shape`, if it is stated. A simulation has no time: the least is taken that moving
    and computing its tiles can need.

    ## What to do
    Give dataflow buffers a larger `shape`, and loops fewer blocks. All buffers of a core have
    1432 KiB of L1, or what tt-lang says when they exceed it: rows x columns x `block_count` x bytes
    of a tile.

    ## What it saves
    The handshakes of the blocks that there are no more. Where moving and computing do not overlap
    (TTP808), each wait costs the latency of a transfer too, and more is saved.

    ## When it is no problem
    Kernels that leave cores idle (TTP801): more cores first, larger blocks then. For matmuls,
    larger blocks along K save waits alone, others also save reads (TTP809).
    """
    if kernels.l1_overflow and not kernels.perf_summaries:
        asked, budget = (f"{count:,} B" for count in kernels.l1_overflow)
        over = Answer.found(f"buffers ask for {asked} of a core, which has {budget}: nothing ran")
        return over.with_fix("Make `shape` or `block_count` of dataflow buffers smaller.")
    blocks = [each for each in blocks_of(kernels, facts) if each.time_ns]
    if not blocks:
        _asked(kernels)
        return Answer.not_measured(NO_BARRIERS)
    worst = max(blocks, key=lambda each: each.least_ns / each.time_ns)
    part = worst.least_ns / worst.time_ns
    where = measured_at(kernels, facts)
    apart = f"; {where}" if where else ""
    waits = f"{counted(round(worst.tiles), 'tile')} a wait, {worst.waits:,.0f} waits of a core"
    costs = f"{duration(worst.least_ns)}, {percent(part)} of its time"
    if part <= share.value or worst.factor == 1 or worst.least_ns < LAUNCH_NS:
        why = "no larger block fits and divides" if worst.factor == 1 else "larger ones save little"
        return share.clean(part, reason=f"{waits}: {costs}; {why}{apart}")
    taken = f"{kib(worst.l1_bytes * worst.factor)} of {kib(worst.budget_bytes)}"
    fits = f"up to {worst.larger} fit: {'at least ' if worst.least else ''}{taken} of L1"
    answer = share.found(
        part, f"{worst.name}: {waits} cost {costs}; {fits}{apart}",
        (Evidence(each.name, each.tiles, "tiles per wait") for each in blocks),
    )  # fmt: skip
    if kernels.sim is not None:
        return answer
    saved_ns = worst.least_ns * (1 - 1 / worst.factor)
    return answer.saving({}, "waits that go × handshake of a block", waiting_ns=saved_ns)


# Sizes in production: a test may be smaller.

_SHAPE: Final = re.compile(r"\s*([0-9]+(?:\s*[x×,]\s*[0-9]+)+)(?:\s+([a-z]\w*))?\s*", re.IGNORECASE)


def production_tiles(facts: Mapping[str, Scalar]) -> int | None:
    """Return the tiles of the stated production shape; None if unknown.

    >>> production_tiles({"production_shape": "8192x8192 bfloat16"}), production_tiles({})
    (65536, None)
    """
    found = _SHAPE.fullmatch(str(facts.get("production_shape") or ""))
    if found is None:
        return None
    extents = [int(extent) for extent in re.findall("[0-9]+", found[1])]
    return prod(extents[:-2]) * prod(-(-extent // 32) for extent in extents[-2:])


def measured_at(log: TtlangLog, facts: Mapping[str, Scalar]) -> str:
    """Return the part of the production size that was measured."""
    wanted = production_tiles(facts)
    if log.sim is not None:
        used = [use.tiles for each in log.sim.operations for use in each.tensors]
        tiles = max(used, default=log.sim.counters.get("tiles_written", 0))
    else:
        written = (each.program.dram_write.bytes for each in kernels_of(log))
        tiles = max(written, default=0) // _TILE_BYTES["bfloat16"]
    if wanted is None or not tiles or tiles >= wanted:
        return ""
    return f"measured at 1/{wanted / tiles:,.0f} of the production tiles"


_STATE_SHAPE: Final = "state the fact production_shape, such as '8192x8192 bfloat16'"


def tensors_fit_l1(log: TtlangLog, facts: Mapping[str, Scalar]) -> Answer:
    """Answer whether a kernel's tensors fit L1 at the production size."""
    wanted, cores = production_tiles(facts), target_cores(facts)
    if log.sim is None or not any(each.tensors for each in log.sim.operations):
        return Answer.not_measured("the sizes of tensors are not in the output")
    if wanted is None:
        return Answer.not_measured(f"sizes of a test prove nothing: {_STATE_SHAPE}")
    for each in log.sim.operations:
        largest = max((use.tiles for use in each.tensors), default=0)
        moved = sum(use.tiles * _TILE_BYTES.get(use.dtype, 4096) for use in each.tensors)
        scale = max(wanted / largest, 1.0) if largest else 1.0
        need = moved * scale / (cores or each.nodes) + l1_of(each)
        if largest and need <= L1_BUDGET_BYTES:
            sentence = (
                f"{each}: at the production size its tensors and buffers take {kib(need)} of "
                f"{kib(L1_BUDGET_BYTES)} of each core"
            )
            return replace(Answer.found(sentence), severity=Severity.INFO)
    return Answer.clean()


@rule("TTP811", "kernels-in-a-row", Severity.INFO, Input.KERNELS)
def kernels_in_a_row(kernels: TtlangLog) -> Answer:
    """A kernel writes to DRAM what the next one reads.

    Finds programs that read as many bytes as the program before them wrote, or a multiple: they may
    be fused. In a trace that lists tensors, finds operations that read a tensor which another one
    wrote, and which no third one reads: they are a pair that can be fused.

    ## What to do
    Let the first kernel do what the second does, block by block, before it writes: the tensor
    between them needs no DRAM, and one launch is left out.

    ## What it saves
    At most the bytes written and read, by the peak bandwidth of DRAM, and 2 µs for a launch.

    ## When it is no problem
    The tensor is returned or read elsewhere; the second kernel needs all of it before it begins, as
    a reduction does; or the buffers of both exceed L1. Equal bytes may be chance.
    """
    if kernels.sim is not None:
        return _simulated_row(kernels.sim.operations)
    programs = _asked(kernels)
    pairs = [(first, second) for first, second in pairwise(programs) if _hands_on(first, second)]
    if len(programs) < 2:
        return Answer.not_applicable("there is one program")
    if not pairs:
        return Answer.clean()
    saved_ns = 0.0
    evidence = []
    for first, second in pairs:
        board, moved = board_of_arch(first.arch), 2 * first.program.dram_write.bytes
        saved_ns += LAUNCH_NS + (moved / board.dram_gb_s if board else 0.0)
        evidence.append(Evidence(f"{first}, then {second}", moved, "B"))
    words = f"{counted(len(pairs), 'program')} may read what the one before wrote: as many bytes"
    found = Answer.found(words, evidence=evidence)
    return found.saving({}, "bytes ÷ peak + 2 µs", waiting_ns=saved_ns, at_most=True)


#: So many inputs of an equal size a kernel may have.
_MOST_INPUTS: Final = 3


def _hands_on(first: Kernel, second: Kernel) -> bool:
    written, read = first.program.dram_write.bytes, second.program.dram_read.bytes
    one, other = (
        (each.cores, each.dram_read, each.dram_write) for each in (first.program, second.program)
    )
    # The same kernel called twice reads and writes the same again.
    multiples = {written * count for count in range(1, _MOST_INPUTS + 1)}
    return bool(written) and one != other and read in multiples


def _simulated_row(operations: Sequence[SimOperation]) -> Answer:
    if len(operations) < 2 or not any(each.tensors for each in operations):
        return Answer.not_applicable("there is one operation, or the trace lists no tensors")
    pairs = []
    for at, (first, second) in enumerate(pairwise(operations)):
        made = {use.identity: use for use in first.tensors if use.written}
        for use in second.tensors:
            later = [each for one in operations[at + 2 :] for each in one.tensors if each.read]
            alone = all(each.identity != use.identity for each in later)
            if use.read and use.identity in made and alone:
                pairs.append((first, second, use))
    if not pairs:
        return Answer.clean()
    return Answer.found(
        f"{counted(len(pairs), 'tensor')} is written by one operation and read by the next alone",
        evidence=(
            Evidence(f"{one}, then {other} as {use.name}", use.tiles, "tiles")
            for one, other, use in pairs
        ),
    )
