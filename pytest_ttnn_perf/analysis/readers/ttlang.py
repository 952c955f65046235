"""Logs of tt-lang: profiles among other output."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgspec import Struct

from pytest_ttnn_perf.core.codec import LARGEST_COUNT, Value
from pytest_ttnn_perf.core.errors import DecodeError, InputError
from pytest_ttnn_perf.core.files import loads, parse_json, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


# What tt-lang prints about a kernel.


class ProblemKind(Enum):
    """Kinds of problems of a log."""

    #: The profiler lost data: no number of this log can be trusted.
    DROPPED = "dropped"
    #: A profile that was asked for was not made.
    NO_PROFILE = "no profile"
    #: The numbers may be of an earlier run.
    STALE = "stale"
    WARNING = "warning"
    #: tt-lang did not know the chip: the clock it printed is a guess.
    UNKNOWN_CHIP = "unknown chip"
    CUT = "cut"
    #: A line inside a section that was not understood.
    UNREAD = "unread"


class Problem(NamedTuple):
    """A trouble of a log, with the line it stands on."""

    line: int
    kind: ProblemKind
    text: str


class Transfers(NamedTuple):
    """Bytes in all, or of each transfer; None if not counted."""

    bytes: int
    transfers: int | None


class Span(NamedTuple):
    """A time in cycles, and in microseconds as printed."""

    cycles: int
    us: float


class KernelTime(NamedTuple):
    """Times of a thread on its quickest and slowest core."""

    thread: str
    shortest: Span
    longest: Span


class ProgramPerf(Struct, frozen=True):
    """One program of a perf summary. None where the summary says nothing.

    ``grid`` is of the cores that sent anything. ``bandwidth_gb_s`` is in decimal gigabytes.
    """

    program_id: int
    name: str | None
    grid: tuple[int, int]
    cores: int
    duration: Span
    dram_read: Transfers
    dram_write: Transfers
    l1_read: Transfers | None = None
    l1_write: Transfers | None = None
    multicast: Transfers | None = None
    bandwidth_gb_s: float | None = None
    transfer_sizes: tuple[Transfers, ...] = ()
    read_barriers: int | None = None
    write_barriers: int | None = None
    dram_channels: int | None = None
    kernel_times: tuple[KernelTime, ...] = ()


#: A core that moves less than that waits, or computes long on little.
_MOVES_GB_S: Final = 1.0


class Kernel(NamedTuple):
    """A program of a log, with cores and clock of its chip.

    Pages, goals, rules, plans, metrics and comparisons are made of it.
    """

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
    def gb_s(self) -> float:
        """The bandwidth to DRAM, L1 and pipes: as printed, or worked out."""
        program = self.program
        if program.bandwidth_gb_s is not None:
            return program.bandwidth_gb_s
        inside = (program.l1_read, program.l1_write, program.multicast)
        moved = self.dram_bytes + sum(each.bytes for each in inside if each is not None)
        return moved / self.time_ns if self.time_ns else 0.0

    @property
    def tile_bytes(self) -> int:
        """The size of its transfers that are most, as tiles are."""
        sizes = self.program.transfer_sizes
        return max(sizes, key=lambda one: one.transfers or 0).bytes if sizes else 2048

    @property
    def waits(self) -> bool:
        """True if its cores move next to nothing: more would wait, too."""
        return self.dram_bytes < _MOVES_GB_S * self.time_ns * self.program.cores

    @property
    def reads(self) -> int:
        """The number of transfers in."""
        return _transfers_of(self.program.dram_read, self.program.l1_read)

    @property
    def writes(self) -> int:
        """The number of transfers out."""
        one = self.program
        return _transfers_of(one.dram_write, one.l1_write, one.multicast)

    @property
    def tiles_per_wait(self) -> dict[str, float]:
        """The transfers for each barrier, of reads (r) and of writes (w)."""
        one = self.program
        moved = {"r": (self.reads, one.read_barriers), "w": (self.writes, one.write_barriers)}
        return {way: count / waits for way, (count, waits) in moved.items() if waits}

    @property
    def barriers(self) -> int | None:
        """The number of barriers; who transfers has some: None if uncounted."""
        return (self.program.read_barriers or 0) + (self.program.write_barriers or 0) or None


def _transfers_of(*moved: Transfers | None) -> int:
    return sum((each.transfers or 0) for each in moved if each is not None)


class PerfSummary(Struct, frozen=True):
    """A perf summary of all programs found, older runs included.

    ``arch``, ``clock_mhz`` and ``max_compute_cores`` are None where tt-lang did not know the chip.
    ``complete`` says that nothing is missing.
    """

    programs: tuple[ProgramPerf, ...]
    arch: str | None = None
    clock_mhz: float | None = None
    max_compute_cores: int | None = None
    complete: bool = True

    @property
    def kernels(self) -> list[Kernel]:
        chip = self.max_compute_cores or None, self.arch, self.clock_mhz
        return [Kernel(program, *chip) for program in self.programs]


class LineOp(NamedTuple):
    """An op of a source line."""

    op: str
    cycles: int
    hits: int = 1


class Wait(NamedTuple):
    """A line that waits for another kernel's ``line``."""

    awaited: str
    line: int
    kernel: str


class LineProfile(NamedTuple):
    """A source line of a kernel; cycles are sums."""

    line: int
    source: str
    total_cycles: int | None = None
    ops: tuple[LineOp, ...] = ()
    waits: tuple[Wait, ...] = ()


class ThreadProfile(NamedTuple):
    """A thread line by line; cycles are sums over cores and iterations."""

    thread: str
    kernel: str | None
    cycles: int
    lines: tuple[LineProfile, ...] = ()


class ThreadWork(NamedTuple):
    """A thread's cycles without those it waited in."""

    thread: str
    total_cycles: int
    sync_cycles: int
    work_cycles: int

    @property
    def waiting(self) -> float:
        """The part of its cycles in which it waits."""
        return self.sync_cycles / self.total_cycles


class Roofline(Struct, frozen=True):
    """The bound of a kernel: memory, compute or balanced."""

    bound: str | None = None
    bound_percent: int | None = None
    memory_cycles: int | None = None
    memory_thread: str | None = None
    compute_cycles: int | None = None
    compute_thread: str | None = None
    threads: tuple[ThreadWork, ...] = ()

    @property
    def busiest(self) -> ThreadWork | None:
        """The thread that waits least; None in older reports."""
        ran = (thread for thread in self.threads if thread.total_cycles > 0)
        return min(ran, key=lambda thread: thread.waiting, default=None)


class AutoProfile(Struct, frozen=True):
    """An auto-profile report."""

    longest_thread_cycles: int | None
    threads: tuple[ThreadProfile, ...]
    roofline: Roofline | None
    complete: bool


class Signpost(NamedTuple):
    """A named zone of a kernel."""

    name: str
    thread: str
    hits: int
    total_cycles: int
    average_cycles: int


class SignpostProfile(NamedTuple):
    """A table of signposts; complete if its closing line is there."""

    signposts: tuple[Signpost, ...]
    complete: bool


class GraphOp(NamedTuple):
    """An operation on a circular buffer; ``line`` may be unknown."""

    kernel: str
    line: int | None
    op: str


class CircularBuffer(NamedTuple):
    """Producers and consumers of a circular buffer, and who copies DRAM."""

    number: int
    producers: tuple[GraphOp, ...]
    consumers: tuple[GraphOp, ...]
    copies: tuple[GraphOp, ...] = ()


#: The circular buffers of a kernel, by number.
FlowGraph = tuple[CircularBuffer, ...]


class Pipe(NamedTuple):
    """A transfer from a core into a buffer of other cores."""

    source: tuple[int, int]
    receiver_buffer: int
    first: tuple[int, int] | None = None
    last: tuple[int, int] | None = None


class KernelCode(NamedTuple):
    """Tiles of the blocks of each buffer, from a kernel's C++."""

    kernel: str
    blocks: Mapping[int, int]
    tile_bytes: int | None


class L1Overflow(NamedTuple):
    """The L1 that buffers of a core ask for, and its budget."""

    asked_bytes: int
    budget_bytes: int


class TtlangLog(Struct, frozen=True):
    """The output of tt-lang in one log, in order of calls.

    ``sim`` are the counters of its simulator, which has no times.
    """

    perf_summaries: tuple[PerfSummary, ...] = ()
    auto_profiles: tuple[AutoProfile, ...] = ()
    signpost_profiles: tuple[SignpostProfile, ...] = ()
    flow_graphs: tuple[FlowGraph, ...] = ()
    pipe_graphs: tuple[tuple[Pipe, ...], ...] = ()
    problems: tuple[Problem, ...] = ()
    sim: SimCounters | None = None
    codes: tuple[KernelCode, ...] = ()
    l1_overflow: L1Overflow | None = None

    @property
    def kernels(self) -> list[Kernel]:
        """The programs; what a later summary repeats is in it once."""
        kernels = (kernel for summary in self.perf_summaries for kernel in summary.kernels)
        return list({kernel.program.program_id: kernel for kernel in kernels}.values())

    @property
    def is_instrumented(self) -> bool:
        """True if an auto-profile slowed what the summary timed."""
        return bool(self.perf_summaries and self.auto_profiles)


class SimTensor(NamedTuple):
    """The counters of one tensor in a simulation."""

    name: str
    counters: Mapping[str, int]


class SimBuffer(NamedTuple):
    """A dataflow buffer of one node, and how full it was.

    ``tiles`` are of a block, ``blocks`` were put into it. Name, shape, count and bytes are what was
    declared, and unknown where the trace does not list that.
    """

    tiles: int
    blocks: int = 0
    fullest: int = 0
    name: str | None = None
    shape: tuple[int, ...] = ()
    block_count: int | None = None
    bytes: int | None = None


class SimUse(NamedTuple):
    """A tensor of a simulated operation; ``distinct`` of its tiles were read.

    Tensors of one ``identity`` are the same, whatever operations call them.
    """

    name: str
    identity: int
    shape: tuple[int, ...]
    dtype: str
    tiles: int
    distinct: int
    read: int = 0
    written: int = 0


class SimOperation(Struct, frozen=True):
    """A simulated call of an operation.

    ``node_tiles`` are the tiles that each node took out of its buffers, ``blocks`` the most that
    went into one of them. ``in_flight`` are the most copies at once of threads that read several
    tensors; None if there are none. ``declared`` and ``tensors`` are empty where unknown. ``full``:
    the grid is all that the simulator has.
    """

    name: str | None
    node_tiles: tuple[int, ...]
    copies: int
    copied_tiles: int
    in_flight: int | None
    buffers: tuple[SimBuffer, ...]
    declared: tuple[SimBuffer, ...] = ()
    tensors: tuple[SimUse, ...] = ()
    grid: tuple[int, ...] = ()
    full: bool = False

    def __str__(self) -> str:
        return self.name or "the simulated operation"

    @property
    def nodes(self) -> int:
        return len(self.node_tiles)

    @property
    def tiles(self) -> int:
        return sum(self.node_tiles)

    @property
    def blocks(self) -> int:
        return max((buffer.blocks for buffer in self.buffers), default=0)

    @property
    def nodes_working(self) -> int:
        return sum(tiles > 0 for tiles in self.node_tiles)


class SimCounters(Struct, frozen=True):
    """Counters of the simulator by name; equal in every run.

    They depend on the grid and the scheduler, and say nothing about time.
    """

    counters: Mapping[str, int]
    tensors: tuple[SimTensor, ...] = ()
    operations: tuple[SimOperation, ...] = ()


# The lines of a tt-lang log, without colours, and a reader that collects problems.

PERF_SUMMARY: Final = "=== PERF SUMMARY ==="
FLOW_GRAPH: Final = "=== CB FLOW GRAPH ==="
PIPE_GRAPH: Final = "=== PIPE GRAPH ==="
AUTO_PROFILE: Final = "TTLANG AUTO-PROFILE REPORT"
SIGNPOST_PROFILE: Final = "SIGNPOST PROFILE"
#: Whole lines: compiler dumps are full of other ``===``.
HEADINGS: Final = frozenset({
    PERF_SUMMARY, FLOW_GRAPH, PIPE_GRAPH, AUTO_PROFILE, SIGNPOST_PROFILE,
})  # fmt: skip
#: So many lines in a row that are not understood end a section.
_MOST_UNREAD: Final = 3
_SHORTEST_RULE: Final = 60
_MOST_SHOWN_UNREAD: Final = 80
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]{0,100}m")
#: Numbers as patterns: short enough for any count, so that no text is too long to convert.
WHOLE: Final = r"[0-9][0-9,]{0,25}"
DECIMAL: Final = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_LARGEST_FILE: Final = 2**28


def plain_lines(text: str) -> list[str]:
    """Return the lines of a text without colours and trailing space."""
    return [line.rstrip() for line in _COLOUR.sub("", text).split("\n")]


def whole(digits: str) -> int:
    """Read what ``WHOLE`` matches.

    >>> whole("2,225,426")
    2225426
    """
    return int(digits.replace(",", ""))


def is_rule(line: str) -> bool:
    """Return whether a line is a rule around a title."""
    return len(line) >= _SHORTEST_RULE and not line.strip("=")


class Lines:
    """The lines of a log, read once; ``problems`` gathers what is wrong."""

    def __init__(self, numbered: list[tuple[int, str]], *, last_is_whole: bool) -> None:
        """``last_is_whole``: the last line has its line end."""
        self._numbered = numbered
        self.last_is_whole = last_is_whole
        self._at = 0
        self.problems: list[Problem] = []

    def peek(self) -> str | None:
        return self._numbered[self._at][1] if self._at < len(self._numbered) else None

    @property
    def number(self) -> int:
        return self._numbered[min(self._at, len(self._numbered) - 1)][0]

    def take(self, count: int = 1) -> None:
        self._at += count

    def read_section(self, title: str, read: Callable[[str], bool | None]) -> bool:
        """Give lines to ``read`` up to a heading; False if given up.

        ``read`` returns True for a line, False if it does not understand it, None behind the end.
        """
        unread = 0
        while (line := self.peek()) is not None and line not in HEADINGS:
            understood = read(line)
            if understood is None:
                break
            if not understood:
                shown = line.strip()[:_MOST_SHOWN_UNREAD]
                self.report(ProblemKind.UNREAD, f"{title}: not understood: {shown}", self.number)
            self.take()
            unread = 0 if understood else unread + 1
            if unread == _MOST_UNREAD:
                return False
        return True

    def report(self, kind: ProblemKind, text: str, line: int) -> None:
        self.problems.append(Problem(line, kind, text))

    def rest_of_section(self) -> str:
        """Return the lines up to the next heading, without going on."""
        rest = [line for _, line in self._numbered[self._at :]]
        end = next((at for at, line in enumerate(rest) if line in HEADINGS), len(rest))
        return "\n".join(rest[:end])


# The auto-profile report: threads line by line, their summary, the roofline.

_THREAD: Final = re.compile(
    r"THREAD: (\S{1,100}) +(?:\[([^\]]*)\] )?"
    rf"\({WHOLE} ops, ({WHOLE}) cycles, {DECIMAL}% of total\)"
)
_TITLES: Final = (
    ["LINE", "%TIME", "CYCLES", "SOURCE"],
    ["Thread", "Total", "-", "Sync", "Waits", "=", "Work"],
)
#: Lines of which nothing is kept.
_DECORATION: Final = re.compile(
    rf"Total operations: {WHOLE}|CB Colors:.*|  Compute ├[─●]{{1,200}}┤ Memory"
    rf"| +-?{WHOLE} cycles +-?{WHOLE} cycles"
    rf"|  \S{{1,100}} +(?:\[[^\]]*\] +)?{WHOLE} cycles \( *{WHOLE} ops\) \[ *{DECIMAL}%\]"
    r"|[-= ]*| *\(no source available for kernel '.*'\)| *[├╰]─ DMA barrier for CB\[[0-9]{1,9}\]"
)
_HIT: Final = re.compile(rf"([0-9]{{1,9}}) +{DECIMAL}%  (({WHOLE})(?:-{WHOLE})?)( .*)?")
_NOT_HIT: Final = re.compile(r"([0-9]{1,9})(?: (.*))?")
#: How wide tt-lang makes the columns before the source, where their text is not longer.
_CYCLES_WIDTH: Final = 10
_SOURCE_AT: Final = 26
_SUM: Final = re.compile(rf"  \(x{WHOLE}(?: = ({WHOLE}) cycles|, avg={DECIMAL}, total=({WHOLE}))\)")
_OP: Final = re.compile(rf" *[├╰]─ ({WHOLE}) (\S+)(?: \(implicit\))?(?: \(x({WHOLE})\))?")
_WAIT: Final = re.compile(
    rf" *[├╰]─ (?:{WHOLE} cycles )?waiting for (\S+) @ line (-?[0-9]{{1,9}}) \((.*)\)"
)
_LONGEST: Final = re.compile(rf"Longest thread: ({WHOLE}) cycles")
_WORK: Final = re.compile(rf"  (\S{{1,100}}) +({WHOLE}) +- +({WHOLE}) +=  *(-?{WHOLE})")
_SIDE: Final = re.compile(rf"  (Memory|Compute): +(-?{WHOLE}) cycles +\((\S+)\)")
_BOUND: Final = re.compile(r"  ([0-9]{1,3})% (memory|compute) bound")
_BALANCED: Final = "  Perfectly balanced!"


def read_auto_profile(lines: Lines) -> AutoProfile:
    """Read a report from its title on, up to its closing line.

    It is complete if that line is there, and the longest thread.
    """
    start, title = lines.number, "AUTO-PROFILE REPORT"
    report = _Report()
    lines.take()
    lines.read_section(title, report.read)
    record = report.record()
    if not record.complete:
        problem = f"{title}: ends early, or lacks its longest thread"
        lines.report(ProblemKind.CUT, problem, start)
    return record


class _Report:
    """Collects an auto-profile report from its lines."""

    def __init__(self) -> None:
        self._closed = False
        self._in_threads = True
        # A title has a rule below it; any other rule behind the threads closes the report.
        self._below_title = True
        self._longest: int | None = None
        self._threads: list[tuple[tuple[str, str | None, int], list[LineProfile]]] = []
        self._work: list[ThreadWork] = []
        # Each entry becomes a field of the record, which has the types.
        self._bound: dict[str, Any] = {}

    def read(self, line: str) -> bool | None:
        """Take in a line; False if not understood, None behind the end."""
        if self._closed:
            return None
        if is_rule(line):
            self._closed = not self._in_threads and not self._below_title
            self._below_title = False
            return True
        thread = _THREAD.fullmatch(line) if self._in_threads else None
        self._below_title = thread is not None or line in {"THREAD SUMMARY", "ROOFLINE ANALYSIS"}
        if thread is not None:
            self._threads.append(((thread[1], thread[2], whole(thread[3])), []))
        elif self._below_title:
            self._in_threads = False
        elif not _DECORATION.fullmatch(line) and line.split() not in _TITLES:
            return self._read_line(line) if self._in_threads else self._read_end(line)
        return True

    def _read_line(self, line: str) -> bool:
        longest = _LONGEST.fullmatch(line)
        if longest is not None:
            self._longest = whole(longest[1])
            return True
        lines = self._threads[-1][1] if self._threads else []
        wait, op, profile = _WAIT.fullmatch(line), _OP.fullmatch(line), _source_line(line)
        if profile is not None and self._threads:
            lines.append(profile)
        elif wait is not None and lines:
            waits = (*lines[-1].waits, Wait(wait[1], int(wait[2]), wait[3]))
            lines[-1] = lines[-1]._replace(waits=waits)
        elif op is not None and lines:
            one = LineOp(op[2], whole(op[1]), whole(op[3] or "1"))
            lines[-1] = lines[-1]._replace(ops=(*lines[-1].ops, one))
        else:
            return False
        return True

    def _read_end(self, line: str) -> bool:
        work, side, bound = (each.fullmatch(line) for each in (_WORK, _SIDE, _BOUND))
        if work is not None:
            self._work.append(ThreadWork(work[1], *map(whole, work.group(2, 3, 4))))
        elif side is not None:
            name = side[1].lower()
            self._bound |= {f"{name}_cycles": whole(side[2]), f"{name}_thread": side[3]}
        elif bound is not None:
            self._bound |= {"bound": bound[2], "bound_percent": int(bound[1])}
        elif line == _BALANCED:
            self._bound |= {"bound": "balanced", "bound_percent": 0}
        return any((work, side, bound, line == _BALANCED))

    def record(self) -> AutoProfile:
        roofline = Roofline(threads=tuple(self._work), **self._bound)
        complete = (
            self._closed
            and self._longest is not None
            and (roofline.bound is None) == (roofline.memory_cycles is None)
        )
        return AutoProfile(
            self._longest,
            tuple(ThreadProfile(*total, tuple(lines)) for total, lines in self._threads),
            None if roofline == Roofline() else roofline,
            complete,
        )


def _source_line(line: str) -> LineProfile | None:
    hit, other = _HIT.fullmatch(line), _NOT_HIT.fullmatch(line)
    if hit is None:
        if other is None or line[len(other[1]) : _SOURCE_AT].strip():
            return None
        return LineProfile(int(other[1]), line[_SOURCE_AT:])
    number, cycles, least, rest = hit.groups()
    # The source keeps its own indentation: only the padding of the column goes.
    source = (rest or "")[max(_CYCLES_WIDTH - len(cycles), 0) + 1 :]
    at = source.rfind("  (x")
    sums = _SUM.fullmatch(source, at) if at >= 0 else None
    if sums is None:
        return LineProfile(int(number), source, whole(least))
    return LineProfile(int(number), source[:at], whole(sums[1] or sums[2]))


# The section PERF SUMMARY.

_CHIP: Final = re.compile(
    rf"arch: (\S{{1,100}}), freq: ({DECIMAL}) MHz, max_compute_cores: ({WHOLE})"
)
_COUNT: Final = re.compile(rf"programs: ({WHOLE})(?: \(.*\))?")
_PROGRAM: Final = re.compile(r"--- Program (-?[0-9]{1,20})(?: \((.*)\))? ---")
_REQUIRED: Final = frozenset({"grid", "duration", "dram_read", "dram_write"})
#: The last line that a program can have.
_LAST_THREAD: Final = "    TRISC_2"
#: The arch of a chip that tt-lang does not know, with a clock and a core count it made up.
_UNKNOWN_ARCH: Final = "unknown"
_SUMMARY: Final = "PERF SUMMARY"
NO_CHIP: Final = "tt-lang did not find the device log: clock and cores are made up"
_SIZE: Final = rf"({DECIMAL}) (B|KB|MB)"
_SPAN: Final = rf"({WHOLE}) cycles \(({DECIMAL}) (us|ms)\)"
_SIZES: Final = re.compile(rf"{_SIZE}(?: \(uniform\)|x({WHOLE}))")
#: Units are binary, as tt-lang prints them.
_UNITS: Final = {"B": 1, "KB": 2**10, "MB": 2**20}
_MOVED: Final = {
    "DRAM read": "dram_read",
    "DRAM write": "dram_write",
    "L1 read": "l1_read",
    "L1 write": "l1_write",
    "L1 multicast": "multicast",
}
_Fields = dict[str, Any]


def _transfers(number: str, unit: str, count: str | None) -> Transfers:
    """Read a size; KB and MB have one decimal.

    >>> _transfers("512.0", "KB", "2")
    Transfers(bytes=524288, transfers=2)
    """
    size = round(float(number) * _UNITS[unit])
    return Transfers(size, None if count is None else whole(count))


def _span(cycles: str, time: str, unit: str) -> Span:
    return Span(whole(cycles), float(time) * (1000 if unit == "ms" else 1))


def _sizes(text: str) -> _Fields:
    parts = [_SIZES.fullmatch(part) for part in text.split(", ")]
    sizes = [_transfers(*part.groups()) for part in parts if part]
    return {"transfer_sizes": tuple(sizes)} if len(sizes) == len(parts) else {}


#: Lines that say nothing of what a program costs.
_NOT_READ: Final = re.compile(
    r"  (?:L1 targets|semaphores|noc reads|noc writes):(?: +\S.*)?|  kernel time:"
)
_KERNEL_TIME: Final = re.compile(rf"    ([A-Z]{{1,20}}(?:_[0-9])?) +{_SPAN}(?: - {_SPAN})?")
#: No two adjacent quantifiers match the same: time grows with length, no faster.
_FIELDS: Final[tuple[tuple[re.Pattern[str], Callable[..., _Fields]], ...]] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (
            rf"grid: ({WHOLE})x({WHOLE}) \(({WHOLE}) (?:cores|nodes)\)",
            lambda x, y, cores: {"grid": (whole(x), whole(y)), "cores": whole(cores)},
        ),
        (rf"duration: {_SPAN}", lambda *span: {"duration": _span(*span)}),
        (
            rf"  ({'|'.join(_MOVED)}): +{_SIZE} +\(({WHOLE}) transfers(?:, pipe)?\)",
            lambda what, *moved: {_MOVED[what]: _transfers(*moved)},
        ),
        (
            rf"  effective BW: +({DECIMAL}) GB/s(?: \(.*\))?",
            lambda number: {"bandwidth_gb_s": float(number)},
        ),
        (r"  transfer sizes?: +(\S.*)", _sizes),
        (
            rf"  barriers: +({WHOLE}) read(?: \(1 per {WHOLE} reads\))?,"
            rf" ({WHOLE}) write(?: \(1 per {WHOLE} writes\))?",
            lambda r, w: {"read_barriers": whole(r), "write_barriers": whole(w)},
        ),
        (rf"  DRAM channels: +({WHOLE})", lambda n: {"dram_channels": whole(n)}),
    )
)


def read_perf_summary(lines: Lines) -> PerfSummary:
    """Read a summary from its heading or first program on.

    A program that lacks a line is left out, and the summary is not complete.
    """
    start, heading = lines.number, lines.peek()
    section = _Section()
    lines.take(1 if heading == PERF_SUMMARY else 0)
    sure = lines.read_section(_SUMMARY, section.read)
    if lines.peek() is None:
        sure = lines.last_is_whole and section.last_line.startswith(_LAST_THREAD)
    section.close(sure=sure)
    summary = section.record(needs_chip=heading == PERF_SUMMARY)
    if not summary.complete:
        problem = (
            f"{_SUMMARY}: ends early or lacks lines: {len(summary.programs)} of "
            f"{max(section.announced or 0, section.begun)} programs are whole"
        )
        lines.report(ProblemKind.CUT, problem, start)
    if section.chip is not None and summary.arch is None:
        lines.report(ProblemKind.UNKNOWN_CHIP, NO_CHIP, start)
    return summary


class _Section:
    """Collects the programs of a summary from its lines."""

    def __init__(self) -> None:
        self.chip: tuple[str, float, int] | None = None
        self.announced: int | None = None
        self.begun = 0
        self.last_line = ""
        #: Each entry becomes a field of the record, which has the types.
        self._open: _Fields | None = None
        self._whole: list[ProgramPerf] = []

    def read(self, line: str) -> bool | None:
        """Take in a line; False if not understood, None behind the end."""
        program = _PROGRAM.fullmatch(line)
        if is_rule(line) or (line and self.begun and self._open is None and program is None):
            return None
        if not line or program is not None:
            self.close(sure=True)
        if program is not None:
            self._open = {"program_id": int(program[1]), "name": program[2]}
            self.begun += 1
        understood = not line or program is not None or self._read_content(line)
        self.last_line = line if understood else ""
        return understood

    def _read_content(self, line: str) -> bool:
        chip, count = _CHIP.fullmatch(line), _COUNT.fullmatch(line)
        if self._open is None:
            if chip is not None:
                self.chip = chip[1], float(chip[2]), whole(chip[3])
            elif count is not None:
                self.announced = whole(count[1])
            return bool(chip or count)
        time = _KERNEL_TIME.fullmatch(line)
        if time is not None:
            shortest = _span(*time.group(2, 3, 4))
            longest = shortest if time[5] is None else _span(*time.group(5, 6, 7))
            known = self._open.get("kernel_times", ())
            self._open["kernel_times"] = (*known, KernelTime(time[1], shortest, longest))
            return True
        for pattern, read in _FIELDS:
            found = pattern.fullmatch(line)
            if found is not None:
                new = read(*found.groups())
                repeated = new.keys() & self._open.keys()
                self._open |= {} if repeated else new
                return bool(new) and not repeated
        return _NOT_READ.fullmatch(line) is not None

    def close(self, *, sure: bool) -> None:
        """End the last program; count it if ``sure`` that it is whole."""
        if sure and self._open is not None and self._open.keys() >= _REQUIRED:
            self._whole.append(ProgramPerf(**self._open))
        self._open = None

    def record(self, *, needs_chip: bool) -> PerfSummary:
        complete = 0 < self.begun == len(self._whole) and self.announced in {None, self.begun}
        if needs_chip:
            complete = complete and None not in (self.chip, self.announced)
        if self.chip is None or self.chip[0] == _UNKNOWN_ARCH or not self.chip[1]:
            return PerfSummary(tuple(self._whole), complete=complete)
        return PerfSummary(tuple(self._whole), *self.chip, complete=complete)


def is_perf_summary_json(head: str) -> bool:
    start = head.lstrip("\ufeff \t\r\n")
    return start.startswith("{") and '"freq_mhz"' in head and '"max_compute_cores"' in head


def read_perf_summary_json(file: Path) -> PerfSummary:
    """Read the exact form. It has no kernel times, semaphores or bandwidth."""
    return parse_json(read_text(file, most_bytes=_LARGEST_FILE), _summary, file=file)


def _summary(document: object) -> PerfSummary:
    root = Value(document)
    programs = tuple(_program(program) for program in root.field("programs").array())
    arch = root.field("arch").string()
    clock_mhz = root.field("freq_mhz").number()
    cores = root.field("max_compute_cores").integer()
    if arch == _UNKNOWN_ARCH or clock_mhz <= 0:
        return PerfSummary(programs)
    return PerfSummary(programs, arch, clock_mhz, cores)


def _program(program: Value) -> ProgramPerf:
    def count(name: str) -> int:
        return program.field(name).integer()

    def moved(bytes_: str, transfers: str) -> Transfers:
        return Transfers(count(bytes_), count(transfers))

    name, grid = program.optional("name"), program.field("grid")
    extents = [extent.integer() for extent in grid.array()]
    if len(extents) != 2:
        raise grid.refusal("two extents of the grid")
    sizes = []
    for size, transfers in program.field("transfer_sizes").items():
        if not (size.isascii() and size.isdigit() and len(size) <= 15):
            raise transfers.refusal("a size in bytes as the name of this count")
        sizes.append(Transfers(int(size), transfers.integer()))
    return ProgramPerf(
        program_id=program.field("program_id").integer(at_least=-LARGEST_COUNT),
        name=None if name is None else name.string(),
        grid=(extents[0], extents[1]),
        cores=count("num_cores"),
        duration=Span(count("duration_cycles"), program.field("duration_us").number()),
        dram_read=moved("dram_bytes_read", "dram_read_count"),
        dram_write=moved("dram_bytes_written", "dram_write_count"),
        l1_read=moved("l1_bytes_read", "l1_read_count"),
        l1_write=moved("l1_bytes_written", "l1_write_count"),
        multicast=Transfers(count("multicast_bytes"), None),
        transfer_sizes=tuple(sorted(sizes)),
        read_barriers=count("read_barriers"),
        write_barriers=count("write_barriers"),
        dram_channels=count("dram_channels"),
    )


_COLUMNS: Final = ["NAME", "THREAD", "COUNT", "TOTAL", "AVG", "MIN", "MAX"]
#: From the right end: names may have spaces.
_SIGNPOST: Final = re.compile(
    r"  (.*\S) +([A-Z][A-Z0-9]{0,20}(?:_[0-9]{1,3})?)" + rf" +({WHOLE})" * 5
)


def read_signposts(lines: Lines) -> SignpostProfile:
    """Read a table of signposts from its title on."""
    start = lines.number
    found: list[Signpost] = []
    titled = closed = False

    def read(line: str) -> bool | None:
        nonlocal titled, closed
        if closed:
            return None
        if is_rule(line):
            closed = titled
        elif line.split() == _COLUMNS:
            titled = True
        elif line.strip("- "):
            row = _SIGNPOST.fullmatch(line) if titled else None
            if row is None:
                return False
            found.append(Signpost(row[1].strip(), row[2], *map(whole, row.groups()[2:5])))
        return True

    lines.take()
    lines.read_section(SIGNPOST_PROFILE, read)
    if not closed:
        lines.report(ProblemKind.CUT, f"{SIGNPOST_PROFILE}: no closing line", start)
    return SignpostProfile(tuple(found), closed)


G = TypeVar("G")
_FINDER: Final = json.JSONDecoder()


def _read_graph(lines: Lines, decode: Callable[[Value], G], *, what: str) -> G | None:
    """Read the graph below its heading; None if it is damaged."""
    start = lines.number
    lines.take()
    while lines.peek() == "":
        lines.take()
    # The document ends before the next line of output, or the next heading, wherever that is.
    text = lines.rest_of_section()
    problem = "expected JSON below the heading"
    try:
        if text.startswith("{"):
            _, end = _FINDER.raw_decode(text)
            graph = decode(Value(loads(text[:end])))
            lines.take(text.count("\n", 0, end) + 1)
            return graph
    except (ValueError, RecursionError, DecodeError) as cause:
        reason = cause.msg if isinstance(cause, json.JSONDecodeError) else str(cause)
        problem = f"cannot be read: {reason}"
    lines.report(ProblemKind.CUT, f"{what}: {problem}", start)
    return None


def _flow_graph(root: Value) -> FlowGraph:
    def ops(value: Value) -> tuple[GraphOp, ...]:
        found = [
            (op.field("kernel").string(), op.field("line").integer(at_least=-1),
             op.field("op").string())
            for op in value.array()
        ]  # fmt: skip
        return tuple(GraphOp(kernel, None if line < 0 else line, op) for kernel, line, op in found)

    # The compiler's order changes from run to run.
    buffers = (
        CircularBuffer(
            value.field("cb_index").integer(),
            ops(value.field("producers")),
            ops(value.field("consumers")),
            ops(value.field("dma_ops")),
        )
        for value in root.field("circular_buffers").array()
    )
    return tuple(sorted(buffers, key=lambda buffer: buffer.number))


def _pipe_graph(root: Value) -> tuple[Pipe, ...]:
    return tuple(
        Pipe(
            (pipe.field("srcX").integer(), pipe.field("srcY").integer()),
            pipe.field("receiverCBIndex").integer(at_least=-1),
            (pipe.field("dstStartX").integer(), pipe.field("dstStartY").integer()),
            (pipe.field("dstEndX").integer(), pipe.field("dstEndY").integer()),
        )
        for pipe in root.field("pipes").array()
    )


_CODE: Final = re.compile(r"=== (\S{1,200}) kernel written to \S.* ===")
_CONSTANT: Final = re.compile(r"\b(v[0-9]{1,6}) = ([0-9]{1,9});")
_BLOCK: Final = re.compile(
    r"\bcb_(?:reserve_back|wait_front)\(get_compile_time_arg_val\(([0-9]{1,3})\), (v?[0-9]{1,9})\)"
)
_ACCESSOR: Final = re.compile(r"\bTensorAccessor\(.{1,100}, (v?[0-9]{1,9})\);")
_OVERFLOW: Final = re.compile(
    r"\b(?:circular buffer|DFB) allocation \(([0-9]{1,12}) bytes\) exceeds L1 budget "
    r"\(([0-9]{1,12}) bytes\)"
)


def _read_code(lines: Lines) -> KernelCode:
    """Read the C++ of a kernel, up to the rule below it."""
    heading = _CODE.fullmatch(lines.peek() or "")
    known: dict[str, int] = {}
    blocks: dict[int, int] = {}
    tile_bytes = None
    lines.take()
    while (line := lines.peek()) is not None and line not in HEADINGS and not is_rule(line):
        known |= {name: int(value) for name, value in _CONSTANT.findall(line)}
        for buffer, tiles in _BLOCK.findall(line):
            number = int(tiles) if tiles.isdigit() else known.get(tiles, 0)
            blocks[int(buffer)] = max(blocks.get(int(buffer), 0), number)
        if (found := _ACCESSOR.search(line)) is not None:
            tile_bytes = int(found[1]) if found[1].isdigit() else known.get(found[1])
        lines.take()
    return KernelCode(heading[1] if heading else "", blocks, tile_bytes)


_MOST_SHOWN: Final = 300
#: How the lines begin in which tt-lang admits a failure; no program fails for it.
_ADMISSIONS: Final = (
    ("[Auto-profile] ", ProblemKind.NO_PROFILE),
    ("[signpost_profile] ", ProblemKind.NO_PROFILE),
    ("[perf_dump] WARNING", ProblemKind.STALE),
    ("[perf_summary] WARNING", ProblemKind.WARNING),
)
#: These stand anywhere in a line, behind a time or a file name.
_DROPPED: Final = "Profiler DRAM buffers were full, markers were dropped!"
_IGNORED_SIGNPOST: Final = re.compile(r"\bsignpost\([^)]{0,200}\) ignored: ")


#: The field of a log for each section, and its reader.
_SECTIONS: Final[Mapping[str, tuple[str, Callable[[Lines], object]]]] = {
    PERF_SUMMARY: ("perf_summaries", read_perf_summary),
    FLOW_GRAPH: ("flow_graphs", partial(_read_graph, decode=_flow_graph, what="FLOW GRAPH")),
    PIPE_GRAPH: ("pipe_graphs", partial(_read_graph, decode=_pipe_graph, what="PIPE GRAPH")),
    AUTO_PROFILE: ("auto_profiles", read_auto_profile),
    SIGNPOST_PROFILE: ("signpost_profiles", read_signposts),
}


def is_ttlang_log(head: str) -> bool:
    return any(
        line in HEADINGS
        or _PROGRAM.fullmatch(line)
        or _admission(line) is not None
        or _OVERFLOW.search(line)
        for line in plain_lines(head)
    )


def read_ttlang_log(file: Path) -> TtlangLog:
    text = read_text(file, most_bytes=_LARGEST_FILE)
    if not text.strip():
        raise InputError(file, "the file is empty")
    log = parse_ttlang(text, file)
    if log == TtlangLog():
        problem = f"no output of tt-lang: expected a section such as {PERF_SUMMARY!r}"
        raise InputError(file, problem)
    return log


def parse_ttlang(text: str, file: Path) -> TtlangLog:
    """Read the output of a program; damage is among the problems."""
    if "\0" in text:
        raise InputError(file, "expected text, found a NUL byte")
    numbered: list[tuple[int, str]] = []
    admitted: list[Problem] = []
    # The line end of the last line begins no other.
    for number, line in enumerate(plain_lines(text.removesuffix("\n")), start=1):
        kind = _admission(line)
        if kind is None:
            numbered.append((number, line))
        else:
            admitted.append(Problem(number, kind, line.strip()[:_MOST_SHOWN]))
    last_is_whole = text.endswith("\n")
    if numbered and not last_is_whole and not numbered[-1][1]:
        del numbered[-1]  # the indentation of a line that is cut off, not an empty line
    lines = Lines(numbered, last_is_whole=last_is_whole)
    found: dict[str, Any] = defaultdict(list)
    while (heading := lines.peek()) is not None:
        if _CODE.fullmatch(heading):
            found["codes"].append(_read_code(lines))
            continue
        section = _SECTIONS.get(PERF_SUMMARY if _PROGRAM.fullmatch(heading) else heading)
        if section is None:
            lines.take()
        elif (record := section[1](lines)) is not None:
            found[section[0]].append(record)
    problems = sorted([*admitted, *lines.problems], key=lambda problem: problem.line)
    sections: dict[str, Any] = {name: tuple(records) for name, records in found.items()}
    if (overflow := _OVERFLOW.search(text)) is not None:
        sections["l1_overflow"] = L1Overflow(int(overflow[1]), int(overflow[2]))
    return TtlangLog(problems=tuple(problems), **sections)


def _admission(line: str) -> ProblemKind | None:
    for start, kind in _ADMISSIONS:
        if line.startswith(start):
            return kind
    if _DROPPED in line:
        return ProblemKind.DROPPED
    return ProblemKind.NO_PROFILE if _IGNORED_SIGNPOST.search(line) else None
