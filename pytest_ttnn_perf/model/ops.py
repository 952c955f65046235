"""The operations that ran on a device, as a profiler recorded them.

A table holds columns, not a record per row: captures reach a million rows, most of which differ
only in their numbers. What repeats, the signature of an operation, is stored once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: The device of an op that ran on the host; no device has that number.
HOST: Final = -1


class Tensor(NamedTuple):
    """An operand. Shapes are W, Z, Y, X; ``logical`` is None where a capture does not tell.

    ``memory`` is without the mesh device it names, e.g. ``L1_HEIGHT_SHARDED``.
    """

    padded: tuple[int, ...]
    logical: tuple[int, ...] | None
    layout: str
    dtype: str
    memory: str


class Signature(NamedTuple):
    """What makes two rows the same operation: its code and its operands."""

    op: str
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()


class Signpost(NamedTuple):
    """A mark that the program left; ``position`` is the number of kept ops before it."""

    name: str
    position: int


class Unread(NamedTuple):
    """A row of an op that ran on a device, without a time that can be true; ``reason`` says why.

    ``signposts`` is the number of signposts before it.
    """

    line: int
    reason: str
    signposts: int = 0


class Op(NamedTuple):
    """One row of a table. Times in nanoseconds; None where the capture says nothing.

    ``gap_ns`` is from the end of the device's previous kernel. ``ideal_ns`` is None as well where
    the profiler has no model of the op. ``replay`` counts executions of a ``trace``. ``attributes``
    is the profiler's own text. ``host`` marks a fallback on the host: its ``device`` is HOST and no
    kernel ran, so its ``kernel_ns`` is 0. ``core_min_ns`` and ``core_max_ns`` are the kernel times
    of the cores that worked least and most.
    """

    signature: Signature
    device: int
    kernel_ns: float
    fw_ns: float | None
    gap_ns: float | None
    ideal_ns: float | None
    cores: int | None
    fidelity: str | None
    attributes: str
    trace: int | None
    replay: int | None
    start_cycle: int | None
    host: bool
    core_min_ns: float | None = None
    core_max_ns: float | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """The kept ops of a table, column by column, in the order of the host's calls.

    The ops of one replay of a trace are in the order in which their device began them.
    ``signature``, ``fidelity`` and ``attributes`` are indices into the table's own lists (-1 for
    none). The others are as in ``Op``; None where nothing was recorded. Most captures tell nothing
    of single cores: these columns are then empty.
    """

    signature: Sequence[int] = ()
    device: Sequence[int] = ()
    kernel_ns: Sequence[float] = ()
    fw_ns: Sequence[float | None] = ()
    gap_ns: Sequence[float | None] = ()
    ideal_ns: Sequence[float | None] = ()
    cores: Sequence[int | None] = ()
    fidelity: Sequence[int] = ()
    attributes: Sequence[int] = ()
    trace: Sequence[int | None] = ()
    replay: Sequence[int | None] = ()
    start_cycle: Sequence[int | None] = ()
    host: Sequence[bool] = ()
    core_min_ns: Sequence[float | None] = ()
    core_max_ns: Sequence[float | None] = ()

    def at(self, places: Sequence[int]) -> Columns:
        """Return the rows at some places, in that order."""
        columns = ((name, getattr(self, name)) for name in Columns.__dataclass_fields__)
        return Columns(
            **{name: [column[at] for at in places] if column else () for name, column in columns}
        )


@dataclass(frozen=True, slots=True)
class TraceReplays:
    """The executions of one trace on one device; complete if all ran the same ops."""

    device: int
    trace: int
    replays: int
    complete: bool


@dataclass(frozen=True, slots=True)
class OpTable:
    """A capture of one program. Nothing is dropped in silence: ``dropped`` counts rows by reason.

    ``unread`` are those of them that are ops of a device: without them no sum of times is whole.

    ``rows`` is what the file holds, signposts included; ``format`` names its version, and
    ``kernel_time`` the column that ``kernel_ns`` was taken from: times of different columns are
    different quantities. ``windowed``: it holds measured calls and nothing around them. ``calls``
    are the places at which these begin, where there are several.
    """

    format: str
    rows: int
    columns: Columns
    signatures: Sequence[Signature] = ()
    fidelities: Sequence[str] = ()
    attribute_texts: Sequence[str] = ()
    signposts: tuple[Signpost, ...] = ()
    traces: tuple[TraceReplays, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
    arch: str | None = None
    available_cores: int | None = None
    kernel_time: str = "DEVICE KERNEL DURATION [ns]"
    windowed: bool = False
    calls: tuple[int, ...] = ()
    #: What others worked out from the table; kept with it, so that it lives no longer.
    derived: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.columns.kernel_ns)

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices that ran anything, in ascending order; the host is none."""
        return tuple(sorted(set(self.columns.device) - {HOST}))

    @property
    def kernel_ns_by_device(self) -> Mapping[int, float]:
        """The kernel time of all kept ops, per device."""
        totals: dict[int, float] = dict.fromkeys((*self.devices, HOST), 0.0)
        for device, kernel_ns in zip(self.columns.device, self.columns.kernel_ns, strict=True):
            totals[device] += kernel_ns
        del totals[HOST]
        return totals

    def op(self, index: int) -> Op:
        """Return one row."""
        c = self.columns
        fidelity, attributes = c.fidelity[index], c.attributes[index]
        return Op(
            signature=self.signatures[c.signature[index]],
            device=c.device[index],
            kernel_ns=c.kernel_ns[index],
            fw_ns=c.fw_ns[index],
            gap_ns=c.gap_ns[index],
            ideal_ns=c.ideal_ns[index],
            cores=c.cores[index],
            fidelity=None if fidelity < 0 else self.fidelities[fidelity],
            attributes="" if attributes < 0 else self.attribute_texts[attributes],
            trace=c.trace[index],
            replay=c.replay[index],
            start_cycle=c.start_cycle[index],
            host=c.host[index],
            core_min_ns=c.core_min_ns[index] if c.core_min_ns else None,
            core_max_ns=c.core_max_ns[index] if c.core_max_ns else None,
        )

    def __iter__(self) -> Iterator[Op]:
        return map(self.op, range(len(self)))

    def select(self, indices: Sequence[int]) -> OpTable:
        """Return the table of some of its ops, in that order; signposts and traces are left out."""
        return OpTable(
            self.format,
            len(indices),
            self.columns.at(indices),
            self.signatures,
            self.fidelities,
            self.attribute_texts,
            arch=self.arch,
            available_cores=self.available_cores,
            kernel_time=self.kernel_time,
        )
