"""What tt-lang prints about a kernel."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


class ProblemKind(Enum):
    """What a log says, or fails to say, beside its numbers."""

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
    """A number of bytes; the true one lies ``within`` as many of it, 0 where it is exact."""

    bytes: int
    within: int = 0


class Transfers(NamedTuple):
    """What was moved; ``transfers`` is None where only the bytes are told."""

    size: Bytes
    transfers: int | None


class TransferSize(NamedTuple):
    """How many transfers had a size; ``transfers`` is None where all had it."""

    size: Bytes
    transfers: int | None


class Span(NamedTuple):
    """A time in cycles, and in microseconds as printed: rounded, except in JSON."""

    cycles: int
    us: float


class KernelTime(NamedTuple):
    """How long the kernels of a thread ran: on the quickest and on the slowest core."""

    thread: str
    shortest: Span
    longest: Span


class NocCount(NamedTuple):
    """Transfers over one of the networks, e.g. NOC_0."""

    noc: str
    transfers: int


class Barriers(NamedTuple):
    """Barriers, and after how many transfers there was one; None where none is told."""

    barriers: int
    transfers_each: int | None = None


@dataclass(frozen=True, slots=True)
class ProgramPerf:
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
    l1_targets: int | None = None
    l1_target_grid: tuple[int, int] | None = None
    multicast: Transfers | None = None
    bandwidth_gb_s: float | None = None
    transfer_sizes: tuple[TransferSize, ...] = ()
    read_barriers: Barriers | None = None
    write_barriers: Barriers | None = None
    semaphore_events: int | None = None
    noc_reads: tuple[NocCount, ...] = ()
    noc_writes: tuple[NocCount, ...] = ()
    dram_channels: int | None = None
    kernel_times: tuple[KernelTime, ...] = ()


@dataclass(frozen=True, slots=True)
class PerfSummary:
    """A perf summary: of every program whose traces were found, older runs' included.

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
    """A part of what a source line did; ``implicit`` where the line does not spell it out."""

    op: str
    cycles: int
    hits: int = 1
    implicit: bool = False


class Wait(NamedTuple):
    """A remark: the line waits for another kernel's. ``line`` counts in that kernel's function."""

    awaited: str
    line: int
    kernel: str
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class LineProfile:
    """A source line of a kernel. A line that was not hit has only its number and source.

    ``hits`` is None where the line is told by its ``ops``. ``barriers`` are the circular buffers
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
    """A thread's share: cycles are sums over cores and iterations, with the profiler's own."""

    thread: str
    kernel: str | None
    ops: int
    cycles: int
    percent: float


class ThreadProfile(NamedTuple):
    """A thread, line by line; ``lines`` is None where tt-lang had no source."""

    total: ThreadTotal
    lines: tuple[LineProfile, ...] | None


class ThreadWork(NamedTuple):
    """A thread's cycles without those it waited in."""

    thread: str
    total_cycles: int
    sync_cycles: int
    work_cycles: int


@dataclass(frozen=True, slots=True)
class Roofline:
    """What bounds a kernel: memory, compute or balanced. Early ones lack threads, count waits."""

    bound: str | None = None
    bound_percent: int | None = None
    memory_cycles: int | None = None
    memory_thread: str | None = None
    compute_cycles: int | None = None
    compute_thread: str | None = None
    threads: tuple[ThreadWork, ...] = ()


@dataclass(frozen=True, slots=True)
class AutoProfile:
    """An auto-profile report. ``buffers`` are the circular buffers its colours tell apart."""

    total_operations: int | None
    longest_thread_cycles: int | None
    buffers: tuple[int, ...]
    threads: tuple[ThreadProfile, ...]
    summary: tuple[ThreadTotal, ...]
    roofline: Roofline | None
    complete: bool


class Signpost(NamedTuple):
    """A zone that the kernel's author named. Early tables have only the total."""

    name: str
    thread: str
    total_cycles: int
    hits: int | None = None
    average_cycles: int | None = None
    shortest_cycles: int | None = None
    longest_cycles: int | None = None


class SignpostProfile(NamedTuple):
    """A table of signposts; complete if its closing line is there."""

    signposts: tuple[Signpost, ...]
    complete: bool


class GraphOp(NamedTuple):
    """An operation on a circular buffer; ``line`` is None where tt-lang does not know it."""

    kernel: str
    thread: str
    line: int | None
    op: str
    direction: str | None = None


class CircularBuffer(NamedTuple):
    """Who fills and who empties a circular buffer. The order is by kernel and line."""

    number: int
    producers: tuple[GraphOp, ...]
    consumers: tuple[GraphOp, ...]
    dma_ops: tuple[GraphOp, ...]
    wait_ops: tuple[GraphOp, ...]


class FlowGraph(NamedTuple):
    """The circular buffers of a kernel, by number."""

    buffers: tuple[CircularBuffer, ...]


class Pipe(NamedTuple):
    """A transfer from a core to a rectangle of cores."""

    source: tuple[int, int]
    first_target: tuple[int, int]
    last_target: tuple[int, int]
    receiver_buffer: int
    runtime_arg_slot: int
    net: int | None = None


class PipeGraph(NamedTuple):
    """The pipes of a kernel."""

    runtime_args: int
    pipes: tuple[Pipe, ...]


@dataclass(frozen=True, slots=True)
class TtlangLog:
    """All that tt-lang printed in one log, each kind in the order of its calls.

    ``sim`` is what its simulator counted instead, which tells no times.
    """

    perf_summaries: tuple[PerfSummary, ...] = ()
    auto_profiles: tuple[AutoProfile, ...] = ()
    signpost_profiles: tuple[SignpostProfile, ...] = ()
    flow_graphs: tuple[FlowGraph, ...] = ()
    pipe_graphs: tuple[PipeGraph, ...] = ()
    problems: tuple[Problem, ...] = ()
    sim: SimCounters | None = None

    @property
    def is_empty(self) -> bool:
        """Whether tt-lang printed nothing at all, not even that something went wrong."""
        return self == TtlangLog()


class SimTensor(NamedTuple):
    """The counters of one tensor in a simulation."""

    name: str
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SimCounters:
    """What the simulator counted, by name: the same in every run of the same program.

    They depend on the grid and the scheduler, and say nothing about time.
    """

    counters: Mapping[str, int]
    tensors: tuple[SimTensor, ...] = ()
