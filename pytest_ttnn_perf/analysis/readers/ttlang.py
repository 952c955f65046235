"""Logs of tt-lang: profiles among other output."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import LARGEST_COUNT, Value
from pytest_ttnn_perf.core.errors import DecodeError, InputError
from pytest_ttnn_perf.core.files import loads, parse_json, reading, unpacked, with_plain_ends

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


class Bytes(NamedTuple):
    """A number of bytes, right ``within`` as many."""

    bytes: int
    within: int = 0


class Transfers(NamedTuple):
    """Bytes in all or of each transfer; None if not counted."""

    size: Bytes
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


class Barriers(NamedTuple):
    """Barriers, and how many transfers each has; None if unknown."""

    barriers: int
    transfers_each: int | None = None


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
    read_barriers: Barriers | None = None
    write_barriers: Barriers | None = None
    dram_channels: int | None = None
    kernel_times: tuple[KernelTime, ...] = ()


class PerfSummary(Struct, frozen=True):
    """A perf summary of all programs found, older runs included.

    ``arch``, ``clock_mhz`` and ``max_compute_cores`` are None where tt-lang did not know the chip.
    ``exact`` is of JSON; text rounds bytes and times. ``complete`` says that nothing is missing.
    """

    programs: tuple[ProgramPerf, ...]
    arch: str | None = None
    clock_mhz: float | None = None
    max_compute_cores: int | None = None
    exact: bool = False
    complete: bool = True


class LineOp(NamedTuple):
    """An op of a source line; ``implicit`` if not spelled out."""

    op: str
    cycles: int
    hits: int = 1
    implicit: bool = False


class Wait(NamedTuple):
    """A line that waits for another kernel's ``line``."""

    awaited: str
    line: int
    kernel: str
    cycles: int | None = None


class LineProfile(Struct, frozen=True):
    """A source line of a kernel, with its cycles if it ran.

    ``hits`` is None where the line has ``ops``. ``barriers`` are the circular buffers
    that it is a DMA barrier for.
    """

    line: int
    source: str
    percent: float | None = None
    shortest_cycles: int | None = None
    longest_cycles: int | None = None
    average_cycles: float | None = None
    total_cycles: int | None = None
    hits: int | None = None
    ops: tuple[LineOp, ...] = ()
    waits: tuple[Wait, ...] = ()
    barriers: tuple[int, ...] = ()


class ThreadTotal(NamedTuple):
    """A thread's share; cycles are sums over cores and iterations."""

    thread: str
    kernel: str | None
    ops: int
    cycles: int
    percent: float


class ThreadProfile(NamedTuple):
    """A thread line by line; None without source."""

    total: ThreadTotal
    lines: tuple[LineProfile, ...] | None


class ThreadWork(NamedTuple):
    """A thread's cycles without those it waited in."""

    thread: str
    total_cycles: int
    sync_cycles: int
    work_cycles: int


class Roofline(Struct, frozen=True):
    """The bound of a kernel: memory, compute or balanced."""

    bound: str | None = None
    bound_percent: int | None = None
    memory_cycles: int | None = None
    memory_thread: str | None = None
    compute_cycles: int | None = None
    compute_thread: str | None = None
    threads: tuple[ThreadWork, ...] = ()


class AutoProfile(Struct, frozen=True):
    """An auto-profile report; ``buffers`` are circular buffers."""

    total_operations: int | None
    longest_thread_cycles: int | None
    buffers: tuple[int, ...]
    threads: tuple[ThreadProfile, ...]
    summary: tuple[ThreadTotal, ...]
    roofline: Roofline | None
    complete: bool


class Signpost(NamedTuple):
    """A named zone of a kernel."""

    name: str
    thread: str
    total_cycles: int
    hits: int
    average_cycles: int
    shortest_cycles: int
    longest_cycles: int


class SignpostProfile(NamedTuple):
    """A table of signposts; complete if its closing line is there."""

    signposts: tuple[Signpost, ...]
    complete: bool


class GraphOp(NamedTuple):
    """An operation on a circular buffer; ``line`` may be unknown."""

    kernel: str
    thread: str
    line: int | None
    op: str


class CircularBuffer(NamedTuple):
    """Producers and consumers of a circular buffer, by kernel and line."""

    number: int
    producers: tuple[GraphOp, ...]
    consumers: tuple[GraphOp, ...]


#: The circular buffers of a kernel, by number.
FlowGraph = tuple[CircularBuffer, ...]


class Pipe(NamedTuple):
    """A transfer from a core to a rectangle of cores."""

    source: tuple[int, int]
    first_target: tuple[int, int]
    last_target: tuple[int, int]
    receiver_buffer: int


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

    @property
    def is_empty(self) -> bool:
        return self == TtlangLog()


class SimTensor(NamedTuple):
    """The counters of one tensor in a simulation."""

    name: str
    counters: Mapping[str, int]


class SimCounters(Struct, frozen=True):
    """Counters of the simulator by name; equal in every run.

    They depend on the grid and the scheduler, and say nothing about time.
    """

    counters: Mapping[str, int]
    tensors: tuple[SimTensor, ...] = ()


# The lines of a tt-lang log, without colours, and a reader that collects problems.

PERF_SUMMARY: Final = "=== PERF SUMMARY ==="
FLOW_GRAPHS: Final = ("=== CB FLOW GRAPH ===", "=== DFB FLOW GRAPH ===")
PIPE_GRAPH: Final = "=== PIPE GRAPH ==="
AUTO_PROFILE: Final = "TTLANG AUTO-PROFILE REPORT"
SIGNPOST_PROFILE: Final = "SIGNPOST PROFILE"
#: Whole lines: compiler dumps are full of other ``===``.
HEADINGS: Final = frozenset({
    PERF_SUMMARY, *FLOW_GRAPHS, PIPE_GRAPH, AUTO_PROFILE, SIGNPOST_PROFILE,
})  # fmt: skip
#: So many lines in a row that are not understood end a section.
_MOST_UNREAD: Final = 3
_SHORTEST_RULE: Final = 60
_MOST_SHOWN_UNREAD: Final = 80
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]{0,100}m")
#: Numbers as patterns: short enough for any count, so that no text is too long to convert.
WHOLE: Final = r"[0-9][0-9,]{0,25}"
DECIMAL: Final = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
LARGEST_FILE: Final = 2**28


def bounded_text(file: Path, *, largest: int = LARGEST_FILE) -> str:
    with reading(file):
        with unpacked(file) as stream:
            content = stream.read(largest + 1)
        if len(content) > largest:
            raise InputError(file, f"too large: more than {largest:,} bytes")
        text = with_plain_ends(content.decode("utf-8"))
    if not text.strip():
        raise InputError(file, "the file is empty")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(file, "expected text, found a NUL byte", line=line)
    return text


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
    """The lines of a log, read once.

    ``problems`` gathers what is wrong. A section stops reading where ``ends`` says so: at the end
    of the log, at the next section, or after several lines that it does not understand.
    """

    def __init__(self, numbered: list[tuple[int, str]], *, last_is_whole: bool = True) -> None:
        """``last_is_whole``: the last line has its line end."""
        self._numbered = numbered
        self.last_is_whole = last_is_whole
        self._at = 0
        self._unread_in_a_row = 0
        self.problems: list[Problem] = []

    def peek(self) -> str | None:
        return self._numbered[self._at][1] if self._at < len(self._numbered) else None

    @property
    def number(self) -> int:
        at = min(self._at, len(self._numbered) - 1)
        return self._numbered[at][0] if self._numbered else 1

    def take(self, count: int = 1) -> None:
        self._at += count
        self._unread_in_a_row = 0

    def take_if(self, section: str, *, understood: bool) -> None:
        """Go on to the next line; report it unless understood."""
        if understood:
            self.take()
            return
        shown = (self.peek() or "").strip()[:_MOST_SHOWN_UNREAD]
        self.report(ProblemKind.UNREAD, f"{section}: not understood: {shown}")
        self._at += 1
        self._unread_in_a_row += 1

    @property
    def gave_up(self) -> bool:
        """True after too many lines in a row that were not understood."""
        return self._unread_in_a_row >= _MOST_UNREAD

    def ends(self) -> bool:
        line = self.peek()
        return line is None or line in HEADINGS or self.gave_up

    def report(self, kind: ProblemKind, text: str, *, line: int | None = None) -> None:
        """Note a problem, of the next line unless another one is given."""
        self.problems.append(Problem(self.number if line is None else line, kind, text))

    def rest_of_section(self) -> list[str]:
        """Return the lines up to the next heading, without going on."""
        found = []
        for at in range(self._at, len(self._numbered)):
            line = self._numbered[at][1]
            if line in HEADINGS:
                break
            found.append(line)
        return found


# The auto-profile report: threads line by line, their summary, the roofline.

_THREAD_TITLE: Final = re.compile(
    r"THREAD: (\S{1,100}) +(?:\[([^\]]*)\] )?"
    rf"\(({WHOLE}) ops, ({WHOLE}) cycles, ({DECIMAL})% of total\)"
)
_COLUMN_TITLES: Final = ["LINE", "%TIME", "CYCLES", "SOURCE"]
_NO_SOURCE: Final = re.compile(r" *\(no source available for kernel '.*'\)")
_HIT: Final = re.compile(rf"([0-9]{{1,9}}) +({DECIMAL})%  (({WHOLE})(?:-({WHOLE}))?)( .*)?")
_NOT_HIT: Final = re.compile(r"([0-9]{1,9})(?: (.*))?")
#: How wide tt-lang makes the columns before the source, where their text is not longer.
_CYCLES_WIDTH: Final = 10
_SOURCE_AT: Final = 26
_SUM: Final = re.compile(
    rf"  \(x({WHOLE})(?: = ({WHOLE}) cycles|, avg=({DECIMAL}), total=({WHOLE}))\)"
)
_BRANCHES: Final = ("├─ ", "╰─ ")
_OP: Final = re.compile(rf"({WHOLE}) (\S+)( \(implicit\))?(?: \(x({WHOLE})\))?")
_WAIT: Final = re.compile(
    rf"(?:({WHOLE}) cycles )?waiting for (\S+) @ line (-?[0-9]{{1,9}}) \((.*)\)"
)
_BARRIER: Final = re.compile(r"DMA barrier for CB\[([0-9]{1,9})\]")
_REPORT: Final = "AUTO-PROFILE REPORT"
_OPERATIONS: Final = re.compile(rf"Total operations: ({WHOLE})")
_LONGEST: Final = re.compile(rf"Longest thread: ({WHOLE}) cycles")
_COLOURS: Final = re.compile(r"CB Colors:((?: +CB\[[0-9]{1,9}\])*)")
_BUFFER: Final = re.compile(r"CB\[([0-9]{1,9})\]")
_TOTAL: Final = re.compile(
    rf"  (\S{{1,100}}) +(?:\[([^\]]*)\] +)?({WHOLE}) cycles \( *({WHOLE}) ops\) \[ *({DECIMAL})%\]"
)
_WORK: Final = re.compile(rf"  (\S{{1,100}}) +({WHOLE}) +- +({WHOLE}) +=  *(-?{WHOLE})")
_WORK_TITLES: Final = ["Thread", "Total", "-", "Sync", "Waits", "=", "Work"]
_SIDE: Final = re.compile(rf"  (Memory|Compute): +(-?{WHOLE}) cycles +\((\S+)\)")
_BOUND: Final = re.compile(r"  ([0-9]{1,3})% (memory|compute) bound")
_BALANCED: Final = "  Perfectly balanced!"
_BAR: Final = re.compile(r"  Compute ├[─●]{1,200}┤ Memory")
_BAR_CYCLES: Final = re.compile(rf" +(-?{WHOLE}) cycles +(-?{WHOLE}) cycles")


def read_auto_profile(lines: Lines) -> AutoProfile:
    """Read a report from its title on, up to its closing line.

    It is complete if that line is there and the summary has the threads that were listed.
    """
    start = lines.number
    report = _Report()
    lines.take()
    while not lines.ends() and not report.closed:
        line = lines.peek() or ""
        lines.take_if(_REPORT, understood=not line or report.read(line))
    record = report.record()
    if not record.complete:
        problem = f"{_REPORT}: ends early, or lacks threads that its summary has"
        lines.report(ProblemKind.CUT, problem, line=start)
    return record


class _Report:
    """Collects an auto-profile report from its lines."""

    def __init__(self) -> None:
        self.closed = False
        self._read_part = self._read_head
        # A title has a rule below it; any other rule in the last parts closes the report.
        self._below_title = True
        self._operations: int | None = None
        self._longest: int | None = None
        self._buffers: tuple[int, ...] = ()
        self._threads: list[tuple[ThreadTotal, list[LineProfile]]] = []
        self._without_source: set[int] = set()
        self._summary: list[ThreadTotal] = []
        self._work: list[ThreadWork] = []
        # Each entry becomes a field of the record, which has the types.
        self._bound: dict[str, Any] = {}
        self._bar_begun = False

    def read(self, line: str) -> bool:
        """Take in a line; False for one that is not understood."""
        in_threads = self._read_part in {self._read_head, self._read_thread}
        thread = _THREAD_TITLE.fullmatch(line)
        if is_rule(line):
            self.closed = not in_threads and not self._below_title
            self._below_title = False
            return True
        if thread is not None and in_threads:
            name, kernel, ops, cycles, percent = thread.groups()
            total = ThreadTotal(name, kernel, whole(ops), whole(cycles), float(percent))
            self._threads.append((total, []))
            self._read_part = self._read_thread
        elif line == "THREAD SUMMARY":
            self._read_part = self._read_summary
        elif line == "ROOFLINE ANALYSIS" and self._read_part == self._read_summary:
            self._read_part = self._read_roofline
        else:
            return self._read_part(line)
        self._below_title = True
        return True

    def _read_head(self, line: str) -> bool:
        operations, longest = _OPERATIONS.fullmatch(line), _LONGEST.fullmatch(line)
        colours = _COLOURS.fullmatch(line)
        if operations is not None:
            self._operations = whole(operations[1])
        elif longest is not None:
            self._longest = whole(longest[1])
        elif colours is not None:
            self._buffers = tuple(int(number) for number in _BUFFER.findall(colours[1]))
        return bool(operations or longest or colours)

    def _read_thread(self, line: str) -> bool:
        if not line.strip("- ") or line.split() == _COLUMN_TITLES:
            return True
        _, lines = self._threads[-1]
        row = line.lstrip()
        if row.startswith(_BRANCHES):
            below = _with_branch(lines[-1], row[len(_BRANCHES[0]) :]) if lines else None
            if below is not None:
                lines[-1] = below
            return below is not None
        if _NO_SOURCE.fullmatch(line):
            self._without_source.add(len(self._threads) - 1)
            return True
        profile = _hit(line) or _not_hit(line)
        if profile is not None:
            lines.append(profile)
        return profile is not None

    def _read_summary(self, line: str) -> bool:
        found = _TOTAL.fullmatch(line)
        if found is None:
            return False
        thread, kernel, cycles, ops, percent = found.groups()
        self._summary.append(ThreadTotal(thread, kernel, whole(ops), whole(cycles), float(percent)))
        return True

    def _read_roofline(self, line: str) -> bool:
        work, side = _WORK.fullmatch(line), _SIDE.fullmatch(line)
        bound, cycles = _BOUND.fullmatch(line), _BAR_CYCLES.fullmatch(line)
        if work is not None:
            self._work.append(ThreadWork(work[1], *map(whole, work.group(2, 3, 4))))
        elif side is not None:
            name = side[1].lower()
            self._bound |= {f"{name}_cycles": whole(side[2]), f"{name}_thread": side[3]}
        elif bound is not None:
            self._bound |= {"bound": bound[2], "bound_percent": int(bound[1])}
        elif line == _BALANCED:
            self._bound |= {"bound": "balanced", "bound_percent": 0}
        elif _BAR.fullmatch(line):
            self._bar_begun = True
        elif cycles is not None and self._bar_begun:
            self._bar_begun = False
            # The numbers below the bar repeat those above it, where there are any.
            below = {"compute_cycles": whole(cycles[1]), "memory_cycles": whole(cycles[2])}
            agree = all(self._bound.get(name, value) == value for name, value in below.items())
            self._bound |= below
            return agree
        else:
            return line.split() == _WORK_TITLES or not line.strip("-= ")
        return True

    def record(self) -> AutoProfile:
        threads = tuple(
            ThreadProfile(total, None if at in self._without_source else tuple(lines))
            for at, (total, lines) in enumerate(self._threads)
        )
        roofline = Roofline(threads=tuple(self._work), **self._bound)
        has_cycles = "memory_cycles" in self._bound or "compute_cycles" in self._bound
        return AutoProfile(
            self._operations,
            self._longest,
            self._buffers,
            threads,
            tuple(self._summary),
            None if roofline == Roofline() else roofline,
            complete=self.closed
            and None not in (self._operations, self._longest)
            and [thread.total for thread in threads] == self._summary
            and not self._bar_begun
            and ("bound" in self._bound) == has_cycles,
        )


def _with_branch(line: LineProfile, row: str) -> LineProfile | None:
    """Add a row below a source line; None if not understood."""
    wait, barrier, op = _WAIT.fullmatch(row), _BARRIER.fullmatch(row), _OP.fullmatch(row)
    if wait is not None:
        cycles = None if wait[1] is None else whole(wait[1])
        waits = (*line.waits, Wait(wait[2], int(wait[3]), wait[4], cycles))
        return replace(line, waits=waits)
    if barrier is not None:
        return replace(line, barriers=(*line.barriers, int(barrier[1])))
    if op is None:
        return None
    hits = 1 if op[4] is None else whole(op[4])
    ops = (*line.ops, LineOp(op[2], whole(op[1]), hits, implicit=op[3] is not None))
    # The one number of a line with ops is their sum.
    return replace(line, ops=ops, shortest_cycles=None, longest_cycles=None, hits=None)


def _hit(line: str) -> LineProfile | None:
    found = _HIT.fullmatch(line)
    if found is None:
        return None
    number, percent, cycles, shortest, longest, rest = found.groups()
    # The source keeps its own indentation: only the padding of the column goes.
    source = (rest or "")[max(_CYCLES_WIDTH - len(cycles), 0) + 1 :]
    least, most = whole(shortest), whole(longest or shortest)
    average: float | None = None
    hits, total = 1, least
    at = source.rfind("  (x")
    sums = _SUM.fullmatch(source, at) if at >= 0 else None
    if sums is not None:
        source, hits = source[:at], whole(sums[1])
        total = whole(sums[2] or sums[4])
        average = None if sums[3] is None else float(sums[3])
    return LineProfile(int(number), source, float(percent), least, most, average, total, hits)


def _not_hit(line: str) -> LineProfile | None:
    found = _NOT_HIT.fullmatch(line)
    if found is None or line[len(found[1]) : _SOURCE_AT].strip():
        return None
    return LineProfile(int(found[1]), line[_SOURCE_AT:])


# The section PERF SUMMARY.

_CHIP: Final = re.compile(
    rf"arch: (\S{{1,100}}), freq: ({DECIMAL}) MHz, max_compute_cores: ({WHOLE})"
)
_COUNT: Final = re.compile(rf"programs: ({WHOLE})(?: \(.*\))?")
_PROGRAM: Final = re.compile(r"--- Program (-?[0-9]{1,20})(?: \((.*)\))? ---")
_REQUIRED: Final = ("grid", "duration", "dram_read", "dram_write")
#: The last line that a program can have.
_LAST_THREAD: Final = "TRISC_2"
#: The arch of a chip that tt-lang does not know, with a clock and a core count it made up.
_UNKNOWN_ARCH: Final = "unknown"
_SUMMARY: Final = "PERF SUMMARY"
_SIZE: Final = rf"({DECIMAL}) (B|KB|MB)"
_SPAN: Final = rf"({WHOLE}) cycles \(({DECIMAL}) (us|ms)\)"
_ONE_SIZE: Final = re.compile(rf"{_SIZE} \(uniform\)")
_COUNTED_SIZE: Final = re.compile(rf"{_SIZE}x({WHOLE})")
_KERNEL_TIME: Final = re.compile(rf"    ([A-Z]{{1,20}}(?:_[0-9])?) +{_SPAN}(?: - {_SPAN})?")
_MOVED: Final = {
    "DRAM read": "dram_read",
    "DRAM write": "dram_write",
    "L1 read": "l1_read",
    "L1 write": "l1_write",
    "L1 multicast": "multicast",
}
_Fields = dict[str, Any]


def _bytes(number: str, unit: str) -> Bytes:
    """Read a size; KB and MB are binary, with one decimal.

    >>> _bytes("512.0", "KB"), _bytes("64", "B")
    (Bytes(bytes=524288, within=52), Bytes(bytes=64, within=0))
    """
    if unit == "B":
        return Bytes(round(float(number)))
    factor = 2**10 if unit == "KB" else 2**20
    return Bytes(round(float(number) * factor), -(-factor // 20))


def _span(cycles: str, time: str, unit: str) -> Span:
    return Span(whole(cycles), float(time) * (1000 if unit == "ms" else 1))


def _grid(x: str, y: str, cores: str) -> _Fields:
    return {"grid": (whole(x), whole(y)), "cores": whole(cores)}


def _moved(what: str, number: str, unit: str, transfers: str) -> _Fields:
    return {_MOVED[what]: Transfers(_bytes(number, unit), whole(transfers))}


def _sizes(text: str) -> _Fields:
    one = _ONE_SIZE.fullmatch(text)
    if one is not None:
        return {"transfer_sizes": (Transfers(_bytes(*one.groups()), None),)}
    parts = [_COUNTED_SIZE.fullmatch(part) for part in text.split(", ")]
    sizes = [Transfers(_bytes(part[1], part[2]), whole(part[3])) for part in parts if part]
    return {"transfer_sizes": tuple(sizes)} if len(sizes) == len(parts) else {}


def _barriers(reads: str, each_read: str | None, writes: str, each_write: str | None) -> _Fields:
    return {
        "read_barriers": Barriers(whole(reads), whole(each_read) if each_read else None),
        "write_barriers": Barriers(whole(writes), whole(each_write) if each_write else None),
    }


#: Lines that say nothing of what a program costs.
_NOT_READ: Final = re.compile(r"  (?:L1 targets|semaphores|noc reads|noc writes):(?: +\S.*)?")
#: No two adjacent quantifiers match the same: time grows with length, no faster.
_FIELDS: Final[tuple[tuple[re.Pattern[str], Callable[..., _Fields]], ...]] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (rf"grid: ({WHOLE})x({WHOLE}) \(({WHOLE}) (?:cores|nodes)\)", _grid),
        (rf"duration: {_SPAN}", lambda *span: {"duration": _span(*span)}),
        (rf"  ({'|'.join(_MOVED)}): +{_SIZE} +\(({WHOLE}) transfers(?:, pipe)?\)", _moved),
        (
            rf"  effective BW: +({DECIMAL}) GB/s(?: \(.*\))?",
            lambda number: {"bandwidth_gb_s": float(number)},
        ),
        (r"  transfer sizes?: +(\S.*)", _sizes),
        (
            rf"  barriers: +({WHOLE}) read(?: \(1 per ({WHOLE}) reads\))?,"
            rf" ({WHOLE}) write(?: \(1 per ({WHOLE}) writes\))?",
            _barriers,
        ),
        (rf"  DRAM channels: +({WHOLE})", lambda n: {"dram_channels": whole(n)}),
        (r"  kernel time:", lambda: {"kernel_times": ()}),
    )
)


def _is_program(line: str) -> bool:
    """Return whether a line begins a program, as in partial logs."""
    return _PROGRAM.fullmatch(line) is not None


def read_perf_summary(lines: Lines) -> PerfSummary:
    """Read a summary from its heading or first program on.

    A program that lacks a line is left out, and the summary is not complete.
    """
    start, heading = lines.number, lines.peek() or ""
    section = _Section()
    lines.take(0 if _is_program(heading) else 1)
    while not lines.ends():
        line = lines.peek() or ""
        if is_rule(line) or section.is_over(line):
            break
        lines.take_if(_SUMMARY, understood=section.read(line))
    if lines.peek() is not None:
        section.close(sure=not lines.gave_up)
    else:
        section.close(sure=lines.last_is_whole and section.ends_with_last_thread)
    summary = section.record(needs_chip=heading == PERF_SUMMARY)
    if not summary.complete:
        problem = (
            f"{_SUMMARY}: ends early or lacks lines: {len(summary.programs)} of "
            f"{section.announced} programs are whole"
        )
        lines.report(ProblemKind.CUT, problem, line=start)
    if section.chip is not None and summary.arch is None:
        problem = f"{_SUMMARY}: tt-lang did not find the device log: clock and cores are made up"
        lines.report(ProblemKind.UNKNOWN_CHIP, problem, line=start)
    return summary


class _Section:
    """Collects the programs of a summary from its lines."""

    def __init__(self) -> None:
        self.chip: tuple[str, float, int] | None = None
        self._count: int | None = None
        #: Each entry becomes a field of the record, which has the types.
        self._programs: list[_Fields] = []
        self._open = False
        self._whole: list[ProgramPerf] = []
        self._last_line = ""

    @property
    def announced(self) -> int:
        """The number of programs that there should be."""
        return max(self._count or 0, len(self._programs))

    @property
    def ends_with_last_thread(self) -> bool:
        return self._last_line.strip().startswith(_LAST_THREAD)

    def is_over(self, line: str) -> bool:
        """Return whether a line comes after the section."""
        return bool(line and self._programs) and not self._open and not _is_program(line)

    def read(self, line: str) -> bool:
        """Take in a line; False if not understood, or repeated."""
        found = _PROGRAM.fullmatch(line)
        if not line or found is not None:
            self.close(sure=True)
        if found is not None:
            self._programs.append({"program_id": int(found[1]), "name": found[2]})
            self._open = True
        understood = not line or bool(found) or self._read_content(line)
        self._last_line = line if understood else ""
        return understood

    def _read_content(self, line: str) -> bool:
        if self._programs:
            if _NOT_READ.fullmatch(line):
                return True
            values = self._programs[-1]
            new = _kernel_time(line, values.get("kernel_times")) or {}
            for pattern, read in _FIELDS if not new else ():
                found = pattern.fullmatch(line)
                if found is not None:
                    new = read(*found.groups())
                    new = {} if new.keys() & values.keys() else new
                    break
            values |= new
            return bool(new)
        chip, count = _CHIP.fullmatch(line), _COUNT.fullmatch(line)
        if chip is not None and self.chip is None:
            self.chip = chip[1], float(chip[2]), whole(chip[3])
            return True
        if count is not None and self._count is None:
            self._count = whole(count[1])
            return True
        return False

    def close(self, *, sure: bool) -> None:
        """End the last program; count it if ``sure`` that it is whole."""
        if self._open and sure and all(name in self._programs[-1] for name in _REQUIRED):
            self._whole.append(ProgramPerf(**self._programs[-1]))
        self._open = self._open and not sure

    def record(self, *, needs_chip: bool) -> PerfSummary:
        complete = bool(self._programs) and len(self._whole) == len(self._programs)
        if needs_chip:
            complete = complete and None not in (self.chip, self._count)
        complete = complete and self._count in {None, len(self._programs)}
        if self.chip is None or self.chip[0] == _UNKNOWN_ARCH or not self.chip[1]:
            return PerfSummary(tuple(self._whole), complete=complete)
        return PerfSummary(tuple(self._whole), *self.chip, complete=complete)


def _kernel_time(line: str, known: tuple[KernelTime, ...] | None) -> _Fields | None:
    found = _KERNEL_TIME.fullmatch(line)
    if known is None or found is None:
        return None
    thread = found[1]
    if any(time.thread == thread for time in known):
        return None
    shortest = _span(*found.group(2, 3, 4))
    longest = shortest if found[5] is None else _span(*found.group(5, 6, 7))
    return {"kernel_times": (*known, KernelTime(thread, shortest, longest))}


def is_perf_summary_json(head: str) -> bool:
    start = head.lstrip("\ufeff \t\r\n")
    return start.startswith("{") and '"freq_mhz"' in head and '"max_compute_cores"' in head


def read_perf_summary_json(file: Path) -> PerfSummary:
    """Read the exact form. It has no kernel times, semaphores or bandwidth."""
    return parse_json(bounded_text(file), _summary, file=file)


def _summary(document: object) -> PerfSummary:
    root = Value(document)
    programs = tuple(_program(program) for program in root.field("programs").array())
    arch = root.field("arch").string()
    clock_mhz = root.field("freq_mhz").number()
    cores = root.field("max_compute_cores").integer()
    if arch == _UNKNOWN_ARCH or clock_mhz <= 0:
        return PerfSummary(programs, exact=True)
    return PerfSummary(programs, arch, clock_mhz, cores, exact=True)


def _program(program: Value) -> ProgramPerf:
    def count(name: str) -> int:
        return program.field(name).integer()

    def moved(bytes_: str, transfers: str) -> Transfers:
        return Transfers(Bytes(count(bytes_)), count(transfers))

    name = program.optional("name")
    return ProgramPerf(
        program_id=program.field("program_id").integer(at_least=-LARGEST_COUNT),
        name=None if name is None else name.string(),
        grid=_grid_of_json(program.field("grid")),
        cores=count("num_cores"),
        duration=Span(count("duration_cycles"), program.field("duration_us").number()),
        dram_read=moved("dram_bytes_read", "dram_read_count"),
        dram_write=moved("dram_bytes_written", "dram_write_count"),
        l1_read=moved("l1_bytes_read", "l1_read_count"),
        l1_write=moved("l1_bytes_written", "l1_write_count"),
        multicast=Transfers(Bytes(count("multicast_bytes")), None),
        transfer_sizes=_sizes_of_json(program.field("transfer_sizes")),
        read_barriers=Barriers(count("read_barriers")),
        write_barriers=Barriers(count("write_barriers")),
        dram_channels=count("dram_channels"),
    )


def _grid_of_json(value: Value) -> tuple[int, int]:
    extents = [extent.integer() for extent in value.array()]
    if len(extents) != 2:
        raise value.refusal("two extents of the grid")
    return extents[0], extents[1]


def _sizes_of_json(value: Value) -> tuple[Transfers, ...]:
    sizes = []
    for size, transfers in value.items():
        if not (size.isascii() and size.isdigit() and len(size) <= 15):
            raise transfers.refusal("a size in bytes as the name of this count")
        sizes.append(Transfers(Bytes(int(size)), transfers.integer()))
    return tuple(sorted(sizes))


_COLUMNS: Final = ["NAME", "THREAD", "COUNT", "TOTAL", "AVG", "MIN", "MAX"]
_THREAD_NAME: Final = re.compile(r"[A-Z][A-Z0-9]{0,20}(?:_[0-9]{1,3})?")
_NUMBER: Final = re.compile(WHOLE)


def read_signposts(lines: Lines) -> SignpostProfile:
    """Read a table of signposts from its title on."""
    start = lines.number
    found: list[Signpost] = []
    titled = closed = False
    lines.take()
    while not lines.ends() and not closed:
        line = lines.peek() or ""
        understood = True
        if is_rule(line):
            closed = titled
        elif not titled and line.split() == _COLUMNS:
            titled = True
        elif line.strip("- "):
            signpost = _row(line) if titled else None
            understood = signpost is not None
            found += [] if signpost is None else [signpost]
        lines.take_if(SIGNPOST_PROFILE, understood=understood)
    if not closed:
        lines.report(ProblemKind.CUT, f"{SIGNPOST_PROFILE}: no closing line", line=start)
    return SignpostProfile(tuple(found), closed)


def _row(line: str) -> Signpost | None:
    """Read a row from its right end: names may have spaces."""
    name, *cells = line.rsplit(None, len(_COLUMNS) - 1)
    if len(cells) != len(_COLUMNS) - 1 or not line.startswith("  "):
        return None
    thread, *numbers = cells
    if not _THREAD_NAME.fullmatch(thread) or not all(map(_NUMBER.fullmatch, numbers)):
        return None
    count, total, average, shortest, longest = map(whole, numbers)
    return Signpost(name.strip(), thread, total, count, average, shortest, longest)


G = TypeVar("G")
_FINDER: Final = json.JSONDecoder()


def _read_graph(lines: Lines, decode: Callable[[Value], G], *, what: str) -> G | None:
    """Read the graph below its heading; None if it is damaged."""
    start = lines.number
    lines.take()
    while lines.peek() == "":
        lines.take()
    if not (lines.peek() or "").startswith("{"):
        lines.report(ProblemKind.CUT, f"{what}: expected JSON below the heading", line=start)
        return None
    # The document ends before the next line of output, or the next heading, wherever that is.
    text = "\n".join(lines.rest_of_section())
    try:
        _, end = _FINDER.raw_decode(text)
        graph = decode(Value(loads(text[:end])))
    except (ValueError, RecursionError, DecodeError) as cause:
        problem = cause.msg if isinstance(cause, json.JSONDecodeError) else str(cause)
        lines.report(ProblemKind.CUT, f"{what}: cannot be read: {problem}", line=start)
        lines.take()
        return None
    lines.take(text.count("\n", 0, end) + 1)
    return graph


def _flow_graph(root: Value) -> FlowGraph:
    buffers = [_buffer(buffer) for buffer in root.field("circular_buffers").array()]
    # The compiler's order changes from run to run.
    return tuple(sorted(buffers, key=lambda buffer: buffer.number))


def _buffer(value: Value) -> CircularBuffer:
    def ops(name: str) -> tuple[GraphOp, ...]:
        found = [_op(op) for op in value.field(name).array()]
        return tuple(sorted(found, key=lambda op: (op.kernel, op.line or -1, op.op)))

    return CircularBuffer(value.field("cb_index").integer(), ops("producers"), ops("consumers"))


def _op(value: Value) -> GraphOp:
    line = value.field("line").integer(at_least=-1)
    return GraphOp(
        value.field("kernel").string(),
        value.field("thread").string(),
        None if line < 0 else line,
        value.field("op").string(),
    )


def _pipe_graph(root: Value) -> tuple[Pipe, ...]:
    return tuple(_pipe(pipe) for pipe in root.field("pipes").array())


def _pipe(value: Value) -> Pipe:
    def core(prefix: str) -> tuple[int, int]:
        return value.field(f"{prefix}X").integer(), value.field(f"{prefix}Y").integer()

    buffer = value.field("receiverCBIndex").integer(at_least=-1)
    return Pipe(core("src"), core("dstStart"), core("dstEnd"), buffer)


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
    **dict.fromkeys(
        FLOW_GRAPHS,
        ("flow_graphs", partial(_read_graph, decode=_flow_graph, what="FLOW GRAPH")),
    ),
    PIPE_GRAPH: ("pipe_graphs", partial(_read_graph, decode=_pipe_graph, what="PIPE GRAPH")),
    AUTO_PROFILE: ("auto_profiles", read_auto_profile),
    SIGNPOST_PROFILE: ("signpost_profiles", read_signposts),
}


def is_ttlang_log(head: str) -> bool:
    return any(
        line in HEADINGS or _is_program(line) or _admission(line) is not None
        for line in plain_lines(head)
    )


def read_ttlang_log(file: Path) -> TtlangLog:
    log = parse_ttlang(bounded_text(file), file)
    if log.is_empty:
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
        section = _SECTIONS.get(PERF_SUMMARY if _is_program(heading) else heading)
        if section is None:
            lines.take()
        elif (record := section[1](lines)) is not None:
            found[section[0]].append(record)
    problems = sorted([*admitted, *lines.problems], key=lambda problem: problem.line)
    sections: dict[str, Any] = {name: tuple(records) for name, records in found.items()}
    return TtlangLog(problems=tuple(problems), **sections)


def _admission(line: str) -> ProblemKind | None:
    for start, kind in _ADMISSIONS:
        if line.startswith(start):
            return kind
    if _DROPPED in line:
        return ProblemKind.DROPPED
    return ProblemKind.NO_PROFILE if _IGNORED_SIGNPOST.search(line) else None
