"""What TTNN itself recorded of a program: its report database, or a capture of its graph.

Times are of the host, and include what it compiled. Nothing here is a time of the device.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


class BufferType(Enum):
    """Where a buffer lives. OTHER is a kind that this version does not know."""

    DRAM = "DRAM"
    L1 = "L1"
    SYSTEM_MEMORY = "SYSTEM_MEMORY"
    L1_SMALL = "L1_SMALL"
    TRACE = "TRACE"
    OTHER = "OTHER"


class Reshard(Enum):
    """Whether an op moved a tensor from one sharding to another.

    Moves between interleaved and sharded are no reshards. UNKNOWN: the op's graph was not captured.
    """

    NONE = "none"
    EXPLICIT = "explicit"
    HIDDEN = "hidden"
    UNKNOWN = "unknown"


class Scope(Enum):
    """Against what a tensor was compared.

    LOCAL: the op alone, on the device's own inputs. GLOBAL: the whole program up to here.
    """

    LOCAL = "local"
    GLOBAL = "global"


class CoreRange(NamedTuple):
    """A rectangle of cores; both corners belong to it."""

    x0: int
    y0: int
    x1: int
    y1: int


class Shard(NamedTuple):
    """How a tensor is cut."""

    shape: tuple[int, ...]
    grid: tuple[CoreRange, ...]


class Device(NamedTuple):
    """One row of the report's devices: a chip may have two. Sizes are None where not told.

    ``cb_limit_bytes`` is what a core has for circular buffers and L1 buffers together.
    """

    id: int
    compute_cores: int | None
    l1_bank_bytes: int | None
    total_l1_bytes: int | None
    cb_limit_bytes: int | None


class TensorRecord(NamedTuple):
    """A tensor. ``shape`` is logical: no report tells the padded one.

    ``dtype`` and ``layout`` are bare names, e.g. BFLOAT8_B and TILE; a tensor of torch has a dtype
    of torch and the layout STRIDED. ``memory`` is e.g. L1_HEIGHT_SHARDED, and None on the host.
    ``device`` is the id of the mesh. Device and address may be None for a tensor on a device.
    """

    id: int
    shape: tuple[int, ...] | None
    dtype: str | None
    layout: str | None
    memory: str | None
    shard: Shard | None
    device: int | None
    address: int | None


class ConvConfig(NamedTuple):
    """What a convolution was asked to do; None where the configuration does not say.

    ``act_block_h_override`` 0 leaves the choice to TTNN, as does a ``shard_layout`` of None.
    """

    weights_dtype: str | None
    activation: str | None
    shard_layout: str | None
    output_layout: str | None
    act_block_h_override: int | None
    act_block_w_div: int | None
    enable_act_double_buffer: bool | None
    enable_weights_double_buffer: bool | None
    deallocate_activation: bool | None
    reallocate_halo_output: bool | None
    reshard_if_not_optimal: bool | None
    override_sharding_config: bool | None
    transpose_shards: bool | None
    config_tensors_in_dram: bool | None
    enable_activation_reuse: bool | None
    full_inner_dim: bool | None


@dataclass(frozen=True, slots=True)
class Operation:
    """A call of the program, with what ran inside it.

    ``inputs`` and ``outputs`` are ids of tensors. ``device_operations`` are in the order of their
    calls. ``cb_bytes_per_core`` is what the fullest core held in circular buffers of their own
    memory at one time; those laid over a tensor are counted with the buffers. It is a lower bound:
    not every device operation tells, and None says that none did. ``fidelity`` is that of the
    matmuls and convolutions inside, or else of whatever tells one; None if they differ.
    ``bytes_per_bank`` sums all buffers alive at this op, per bank. ``l1_by_core`` are the bytes of
    tensors in the L1 of each core, by x and y, of the fullest device; empty where not told.
    ``queues`` are the command queues of its programs, one for each execution.
    """

    id: int
    name: str
    duration_s: float | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    device_operations: tuple[str, ...] = ()
    cb_bytes_per_core: int | None = None
    fidelity: str | None = None
    conv: ConvConfig | None = None
    reshard: Reshard = Reshard.UNKNOWN
    bytes_per_bank: Mapping[BufferType, int] = field(default_factory=dict)
    l1_by_core: Mapping[tuple[int, int], int] = field(default_factory=dict)
    queues: tuple[int, ...] = ()


class Edge(NamedTuple):
    """A tensor on its way: ids of the tensor and of the two operations."""

    tensor: int
    producer: int
    consumer: int


class Comparison(NamedTuple):
    """A tensor held against what it should be."""

    scope: Scope
    tensor: int
    desired_pcc: float | None
    actual_pcc: float | None


class OperationError(NamedTuple):
    """An operation that failed; ``reason`` is the one line of its message that says why."""

    operation: int | None
    name: str | None
    kind: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """One rank of a report database, or a captured graph.

    ``edges`` lead from the last operation before it that gave the tensor. Tensors that came in from
    the host have no producer.
    """

    ranks: tuple[int, ...]
    rank: int
    devices: tuple[Device, ...]
    operations: tuple[Operation, ...]
    tensors: Mapping[int, TensorRecord]
    edges: tuple[Edge, ...]
    comparisons: tuple[Comparison, ...]
    errors: tuple[OperationError, ...]

    @property
    def completed(self) -> tuple[Operation, ...]:
        """The operations that neither failed nor were left off; others gave nothing to judge."""
        failed = {error.operation for error in self.errors}
        return tuple(each for each in self.operations if each.id not in failed)

    @property
    def program_count(self) -> int | None:
        """How many programs devices were given, about; None where that is not told."""
        return sum(len(each.device_operations) for each in self.operations) or None

    @property
    def peak_bytes_per_bank(self) -> Mapping[BufferType, int]:
        """The most that was alive at one op, per type; each op lists all that is alive."""
        return _peaks(self.operations)


def _peaks(operations: tuple[Operation, ...]) -> dict[BufferType, int]:
    peaks: dict[BufferType, int] = {}
    for operation in operations:
        for kind, size in operation.bytes_per_bank.items():
            peaks[kind] = max(size, peaks.get(kind, 0))
    return peaks


@dataclass(frozen=True, slots=True)
class ProgramTime:
    """One execution of a program on one device, from its first kernel's start to the last's end.

    Times are None where a marker is missing: the profiler dropped it, or the log is cut.
    """

    device: int
    run_host_id: int
    trace: int | None
    replay: int | None
    start_cycle: int | None
    kernel_ns: float | None
    cores: int

    @property
    def complete(self) -> bool:
        """Whether every kernel has its start and its end."""
        return self.kernel_ns is not None


@dataclass(frozen=True, slots=True)
class DeviceLog:
    """A raw device log. Programs are by device, and in the order in which they began."""

    arch: str
    clock_mhz: float
    max_compute_cores: int | None
    rows: int
    programs: tuple[ProgramTime, ...]

    @property
    def complete(self) -> bool:
        """Whether no program lacks a marker."""
        return all(program.complete for program in self.programs)


@dataclass(frozen=True, slots=True)
class Board:
    """A board as tt-smi sees it at one moment; None where it says nothing, or ``N/A``.

    ``firmware`` is the version of the bundle. ``throttler`` is not 0 where it held itself back.
    """

    board_type: str | None = None
    firmware: str | None = None
    clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttler: int | None = None


@dataclass(frozen=True, slots=True)
class TtSmi:
    """A snapshot of tt-smi. ``processes`` counts those that hold a device; None where unknown."""

    boards: tuple[Board, ...]
    driver: str | None = None
    tt_smi: str | None = None
    processes: int | None = None
