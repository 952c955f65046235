"""Recorded ops of a device, and groups of them.

A table holds columns, not a record per row: captures reach a million rows, most of which differ
only in their numbers. What repeats, the signature of an operation, is stored once.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.codec import Value


#: The ``kernel_time`` of a list of calls, which have none: of a captured graph.
CALLS: Final = "calls"
#: The device of an op that ran on the host; no device has that number.
HOST: Final = -1


class Tensor(NamedTuple):
    """An operand; shapes are W, Z, Y, X, ``logical`` may be unknown.

    ``memory`` is without the mesh device it names, e.g. ``L1_HEIGHT_SHARDED``.
    """

    padded: tuple[int, ...]
    logical: tuple[int, ...] | None
    layout: str
    dtype: str
    memory: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.logical or self.padded


class Signature(NamedTuple):
    """The code and the operands of an operation."""

    op: str
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()

    @property
    def code(self) -> str:
        return short_code(self.op)

    @property
    def category(self) -> Category:
        return category_of(self.op)


class Signpost(NamedTuple):
    """A mark of the program, after ``position`` kept ops."""

    name: str
    position: int


class Unread(NamedTuple):
    """A row of a device op without a plausible time.

    ``signposts`` is the number of signposts before it.
    """

    line: int
    reason: str
    signposts: int = 0


class Utilisation(NamedTuple):
    """Fractions that counters and the network's monitor measured; None if unknown.

    Those of processors are of the cycles of all cores; ``congestion`` is what it cost.
    """

    dram: float | None = None
    noc: float | None = None
    multicast: float | None = None
    ethernet: float | None = None
    congestion: float | None = None
    fpu: float | None = None
    sfpu: float | None = None


class Op(NamedTuple):
    """One row of a table, times in nanoseconds; None if not recorded.

    ``gap_ns`` is from the end of the device's previous kernel. ``ideal_ns`` is None as well where
    the profiler has no model of the op. ``replay`` counts executions of a ``trace``. ``attributes``
    is the profiler's own text. ``host`` marks a fallback on the host: its ``device`` is HOST and no
    kernel ran, so its ``kernel_ns`` is 0. ``number`` is its place in the whole capture, from 1.
    ``line`` is where the file has it, ``call`` its GLOBAL CALL COUNT, ``host_ns`` the call's time.
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
    number: int = 0
    line: int = 0
    call: int | None = None
    host_ns: float | None = None
    measured: Utilisation | None = None
    sub_device: int | None = None


class Columns(Struct, frozen=True):
    """The columns of a table, in the order of the host's calls.

    The ops of one replay of a trace are in the order in which their device began them.
    ``signature``, ``fidelity`` and ``attributes`` are indices into the table's own lists (-1 for
    none). The others are as in ``Op``. Those with a default there are empty in most captures,
    ``number`` in a whole one.
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
    number: Sequence[int] = ()
    line: Sequence[int] = ()
    call: Sequence[int | None] = ()
    host_ns: Sequence[float | None] = ()
    measured: Sequence[Utilisation | None] = ()
    sub_device: Sequence[int | None] = ()

    def at(self, places: Sequence[int]) -> Columns:
        columns = ((name, getattr(self, name)) for name in Columns.__struct_fields__)
        return Columns(
            **{name: [column[at] for at in places] if column else () for name, column in columns}
        )


class TraceReplays(Struct, frozen=True):
    """Replays of a trace on a device; ``alike`` ran what most did."""

    device: int
    trace: int
    replays: int
    alike: int

    @property
    def complete(self) -> bool:
        """True if all ran the same."""
        return self.alike == self.replays


class OpTable(Struct, frozen=True, dict=True):
    """A capture of one program; ``dropped`` counts left-out rows by reason.

    ``unread`` are dropped ops of a device: without them no sum of times is whole. ``rows`` counts
    the file's, signposts included; ``kernel_time`` is the column of ``kernel_ns``: times of
    different columns are different quantities. ``windowed``: it holds measured calls only,
    ``calls`` are their beginnings, where there are several, of ``region``. ``processors``: some
    kernel of a single processor has a time; None without such columns. ``clock_mhz`` is by its
    cycles and times. ``board`` is what a user names, as no capture does.
    """

    format: str
    rows: int
    columns: Columns
    signatures: Sequence[Signature] = ()
    fidelities: Sequence[str] = ()
    attribute_texts: Sequence[str] = ()
    signposts: tuple[Signpost, ...] = ()
    traces: tuple[TraceReplays, ...] = ()
    dropped: Mapping[str, int] = {}
    unread: tuple[Unread, ...] = ()
    arch: str | None = None
    available_cores: int | None = None
    kernel_time: str = "DEVICE KERNEL DURATION [ns]"
    windowed: bool = False
    calls: tuple[int, ...] = ()
    region: str = ""
    processors: bool | None = None
    clock_mhz: float | None = None
    board: str | None = None

    @cached_property
    def derived(self) -> dict[object, Any]:
        """Results worked out from the table, kept as long as it is."""
        return {}

    def __len__(self) -> int:
        return len(self.columns.kernel_ns)

    @property
    def devices(self) -> tuple[int, ...]:
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
            number=c.number[index] if c.number else index + 1,
            line=c.line[index] if c.line else 0,
            call=c.call[index] if c.call else None,
            host_ns=c.host_ns[index] if c.host_ns else None,
            measured=c.measured[index] if c.measured else None,
            sub_device=c.sub_device[index] if c.sub_device else None,
        )

    def __iter__(self) -> Iterator[Op]:
        return map(self.op, range(len(self)))

    def select(self, indices: Sequence[int]) -> OpTable:
        """Return a table of some ops, without signposts and traces."""
        numbers = self.columns.number or range(1, len(self) + 1)
        return OpTable(
            self.format,
            len(indices),
            replace(self.columns.at(indices), number=[numbers[at] for at in indices]),
            self.signatures,
            self.fidelities,
            self.attribute_texts,
            arch=self.arch,
            available_cores=self.available_cores,
            kernel_time=self.kernel_time,
            processors=self.processors,
            clock_mhz=self.clock_mhz,
            board=self.board,
        )


class OpGroup(Struct, frozen=True):
    """Ops of one signature and setting, in one execution on one device.

    Of several devices, ``count`` is that of the device that runs most of them, ``total_ns`` the
    mean. ``settings`` decide how fast the op is, as ``key=value``.
    """

    signature: Signature
    cores: int | None
    fidelity: str | None
    settings: str
    count: int
    total_ns: float
    median_ns: float
    region: str = ""


class OpGroups(Struct, frozen=True):
    """The sorted groups of a table; ``kernel_time`` is their column."""

    kernel_time: str
    groups: tuple[OpGroup, ...]

    @property
    def is_timed(self) -> bool:
        return self.kernel_time != CALLS

    @property
    def regions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(group.region for group in self.groups))

    def of(self, region: str) -> OpGroups:
        own = tuple(group for group in self.groups if group.region == region)
        return OpGroups(self.kernel_time, own)


class Category(Enum):
    """Kinds of work; ``OTHER`` is what no pattern matches."""

    MATMUL = "matmul"
    CONV = "conv"
    ATTENTION = "attention"
    ELEMENTWISE = "elementwise"
    NORM = "norm and reduce"
    COLLECTIVE = "collective"
    LAYOUT = "layout"
    MOVEMENT = "movement"
    HOST = "host"
    OTHER = "other"


#: Looked for in this order, so that a name which holds two words counts by its work: a fused
#: matmul and gather is a matmul, a reduce-scatter no reduce, and a padded slice no pad.
_PATTERNS: Final[Mapping[Category, str]] = {
    Category.HOST: r"^\(torch\)",
    Category.CONV: r"conv\d|conv_|ConvNew|^Conv$|DepthwiseConv",
    Category.MATMUL: r"matmul|linear|^Moreh.*Dot|^bmm",
    Category.COLLECTIVE: r"all_?gather|all_?reduce|reduce_?scatter|all_?to_?all|all_?broadcast|"
    r"send|recv|point_?to_?point|barrier|mesh_?partition",
    Category.LAYOUT: r"tilize|to_?layout|typecast",
    Category.ATTENTION: r"sdpa|attention|rotary|kv_?cache|update_?cache|fill_?cache|fused_?update|"
    r"qkv|heads",
    Category.NORM: r"norm|softmax|reduce|accumulation|top_?k|arg_?max|sum|mean|pool|int_?img|"
    r"sampling",
    Category.MOVEMENT: r"reshard|interleaved_?to|sharded_?to|move|copy|reshape|view|slice|concat|"
    r"permute|transpose|pad|split|repeat|halo|fold|clone|assign|scatter|gather|stack|upsample|"
    r"grid_?sample|embedding|non_?zero|fill|full|bcast",
    Category.ELEMENTWISE: r"binary|unary|ternary|eltwise|where|activation|gelu|relu|silu",
}


@lru_cache(maxsize=4096)
def category_of(op: str) -> Category:
    """Return the category of an op's code.

    >>> category_of("MatmulDeviceOperation"), category_of("ReduceScatterDeviceOperation")
    (<Category.MATMUL: 'matmul'>, <Category.COLLECTIVE: 'collective'>)
    """
    for kind, pattern in _PATTERNS.items():  # compiled with the first op: many runs see none
        if re.search(pattern, op, re.IGNORECASE):
            return kind
    return Category.OTHER


#: What the cells of a row are.
COLUMNS: Final = (
    "op", "inputs", "outputs", "cores", "fidelity", "settings", "count", "total_ns", "median_ns",
)  # fmt: skip
#: The last one, where some group is of a region that has a name.
REGION: Final = "region"
#: Ends a shape of which the capture does not tell the part that is padding.
_UNKNOWN: Final = "?"
_NOTHING: Final = "-"
_BETWEEN: Final = "; "
_DIMENSION: Final = re.compile(r"(\d{1,18})(?:\[(\d{1,18})\])?")


def encode_groups(ops: OpGroups) -> dict[str, object]:
    columns = columns_of(ops)
    return {
        "time": ops.kernel_time,
        "columns": list(columns),
        "rows": [group_cells(group)[: len(columns)] for group in ops.groups],
    }


def columns_of(ops: OpGroups) -> tuple[str, ...]:
    """Return the names of the cells; most captures have no region's name."""
    return (*COLUMNS, REGION) if any(ops.regions) else COLUMNS


def decode_groups(value: Value) -> OpGroups:
    rows = value.field("rows").array()
    return OpGroups(value.field("time").string(), tuple(decode_group(row) for row in rows))


def group_cells(group: OpGroup) -> list[str | float | None]:
    """Return a group as a row, its region last."""
    signature = group.signature
    return [
        signature.op,
        _operands_text(signature.inputs),
        _operands_text(signature.outputs),
        group.cores,
        group.fidelity,
        group.settings,
        group.count,
        group.total_ns,
        group.median_ns,
        group.region,
    ]


def decode_group(row: Value) -> OpGroup:
    cells = list(row.array())
    if not len(COLUMNS) <= len(cells) <= len(COLUMNS) + 1:
        raise row.refusal(f"a row of {len(COLUMNS)} cells, or one more for its region")
    op, inputs, outputs, cores, fidelity, settings, count, total, median, *region = cells
    for time in (total, median):
        if time.number() < 0:
            raise time.refusal("a time of at least 0")
    return OpGroup(
        Signature(op.string(), _operands(inputs), _operands(outputs)),
        None if cores.raw is None else cores.integer(),
        None if fidelity.raw is None else fidelity.string(),
        settings.string(),
        count.integer(at_least=1),
        total.number(),
        median.number(),
        region[0].string() if region else "",
    )


def _operands_text(tensors: tuple[Tensor, ...]) -> str:
    return _BETWEEN.join(map(_tensor_text, tensors))


def _tensor_text(tensor: Tensor) -> str:
    """Return e.g. ``1x1x32[1]x4096 TILE BFLOAT16 L1_INTERLEAVED``: 1, padded to 32."""
    formats = (tensor.layout, tensor.dtype, tensor.memory)
    words = ["_".join(word.replace(";", " ").split()) or _NOTHING for word in formats]
    return " ".join([_shape_text(tensor), *words])


def _shape_text(tensor: Tensor) -> str:
    padded, logical = tensor.padded, tensor.logical
    if logical is None or len(logical) != len(padded):
        return "x".join(map(str, padded)) + _UNKNOWN
    dimensions = zip(padded, logical, strict=True)
    return "x".join(f"{p}" if p == n else f"{p}[{n}]" for p, n in dimensions) or _NOTHING


def _operands(value: Value) -> tuple[Tensor, ...]:
    text = value.string()
    return tuple(_tensor(part, value) for part in text.split(_BETWEEN)) if text else ()


def _tensor(text: str, value: Value) -> Tensor:
    shape, *formats = text.split(" ")
    dimensions = [_DIMENSION.fullmatch(d) for d in shape.removesuffix(_UNKNOWN).split("x") if d]
    if shape == _NOTHING:
        dimensions = []
    if len(formats) != 3 or None in dimensions:
        raise value.refusal("operands such as '1x1x32[1]x64 TILE BFLOAT16 L1_INTERLEAVED'")
    found = [match for match in dimensions if match is not None]
    layout, dtype, memory = ("" if word == _NOTHING else word for word in formats)
    padded = tuple(int(match[1]) for match in found)
    logical = tuple(int(match[2] or match[1]) for match in found)
    return Tensor(padded, None if shape.endswith(_UNKNOWN) else logical, layout, dtype, memory)


#: How TTNN ends the codes of its device operations, the longest first.
_SUFFIXES: Final = ("DeviceOperation", "Operation", "DeviceOp")


@lru_cache(maxsize=4096)
def short_code(op: str) -> str:
    """Return an op's code without namespaces and the word operation.

    >>> short_code("ttnn::operations::conv::Conv2dDeviceOperation")
    'Conv2d'
    """
    name = op.rpartition("::")[2]
    return next((name[: -len(end)] for end in _SUFFIXES if name.endswith(end)), name) or op
