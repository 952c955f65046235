"""TTNN's report database ``db.sqlite``, all schemas up to 3.5."""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter, defaultdict
from contextlib import contextmanager
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.analysis.ops.names import flag, setting
from pytest_ttnn_perf.analysis.ops.names import whole as whole_number
from pytest_ttnn_perf.analysis.ops.roofline import BYTES
from pytest_ttnn_perf.core.codec import Value, describe
from pytest_ttnn_perf.core.errors import DecodeError, EmptyReportError, InputError
from pytest_ttnn_perf.core.files import loads, open_file, reading
from pytest_ttnn_perf.core.ops import CALLS, OpGroup, OpGroups, Signature, Tensor

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence
    from pathlib import Path


# What TTNN itself recorded of a program: its report database, or a capture of its graph. Times are
# of the host, and include what it compiled.


class BufferType(Enum):
    """Places of buffers by TTNN's numbers; OTHER is unknown."""

    DRAM = "DRAM"
    L1 = "L1"
    SYSTEM_MEMORY = "SYSTEM_MEMORY"
    L1_SMALL = "L1_SMALL"
    TRACE = "TRACE"
    OTHER = "OTHER"


class Reshard(Enum):
    """Moves from one sharding to another; UNKNOWN without a captured graph."""

    NONE = "none"
    EXPLICIT = "explicit"
    HIDDEN = "hidden"
    UNKNOWN = "unknown"


class Scope(Enum):
    """Scopes of a comparison: an op alone, or all up to it."""

    LOCAL = "local"
    GLOBAL = "global"


class CoreRange(NamedTuple):
    """A rectangle of cores; both corners belong to it."""

    x0: int
    y0: int
    x1: int
    y1: int


class Shard(NamedTuple):
    """Shape and cores of a tensor's shards."""

    shape: tuple[int, ...]
    grid: tuple[CoreRange, ...]


class Device(NamedTuple):
    """A device; a core has ``cb_limit_bytes`` for circular and L1 buffers together."""

    id: int
    compute_cores: int | None
    l1_bank_bytes: int | None
    total_l1_bytes: int | None
    cb_limit_bytes: int | None


class TensorRecord(NamedTuple):
    """A tensor with its logical shape; reports lack the padded one.

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
    """Configuration of a convolution; None for unknown, or left to TTNN."""

    weights_dtype: str | None
    shard_layout: str | None
    act_block_h_override: int | None
    enable_act_double_buffer: bool | None
    enable_weights_double_buffer: bool | None
    reshard_if_not_optimal: bool | None


class Operation(Struct, frozen=True):
    """A call of the program, with what ran inside it.

    ``inputs`` and ``outputs`` are ids of tensors. ``device_operations`` are in the order of their
    calls. ``cb_bytes_per_core`` is what the fullest core held in circular buffers of their own
    memory at one time; those laid over a tensor are counted with the buffers. It is a lower bound:
    not every device operation reports it; None if none did. ``fidelity`` is that of the
    matmuls and convolutions inside, or else of any other op; None if they differ.
    ``bytes_per_bank`` sums all buffers alive at this op, per bank.
    ``queues`` are the command queues of its programs, one for each execution.
    """

    id: int
    name: str
    arguments: Mapping[str, str] = {}
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    device_operations: tuple[str, ...] = ()
    cb_bytes_per_core: int | None = None
    fidelity: str | None = None
    conv: ConvConfig | None = None
    reshard: Reshard = Reshard.UNKNOWN
    bytes_per_bank: Mapping[BufferType, int] = {}
    queues: tuple[int, ...] = ()


class Edge(NamedTuple):
    """A tensor from its producer to a consumer, by ids."""

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
    """A failed operation; ``reason`` is one line of its message."""

    operation: int | None
    name: str | None
    kind: str | None
    reason: str | None


class Report(Struct, frozen=True):
    """The lowest rank of a report database."""

    devices: tuple[Device, ...]
    operations: tuple[Operation, ...]
    tensors: Mapping[int, TensorRecord]
    edges: tuple[Edge, ...]
    comparisons: tuple[Comparison, ...]
    errors: tuple[OperationError, ...]

    @property
    def completed(self) -> tuple[Operation, ...]:
        """The operations that did not fail."""
        failed = {error.operation for error in self.errors}
        return tuple(each for each in self.operations if each.id not in failed)

    @property
    def peak_bytes_per_bank(self) -> Mapping[BufferType, int]:
        """The most that was alive at one op, per type."""
        peaks: dict[BufferType, int] = {}
        for operation in self.operations:
            for kind, size in operation.bytes_per_bank.items():
                peaks[kind] = max(size, peaks.get(kind, 0))
        return peaks


# The texts in which TTNN describes tensors and configurations.
#
# They look like code or JSON and are neither, and each release spells them a little differently, so
# values are found by their key.

_NONE: Final = frozenset({"", "None", "nullopt", "NONE", "null"})
_NAME: Final = re.compile(r"\w+\Z")
#: An extent may be followed by the padded one, as in 5[32].
_EXTENT: Final = re.compile(r"(\d{1,18})(?:\[\d{1,18}\])?")
_OF_SHAPES: Final = frozenset("0123456789[], ")
_SHARD_SHAPE: Final = re.compile(r'(?<!\w)"?(?:shard_)?shape"?\s?[=:]\s?(?:\w+\()?[\[{(]([\d,; ]+)')
_CORE: Final = r"""\(?\{?(?:"?x"?[=:])?\s?(\d{1,6})[-,]\s?(?:"?y"?[=:])?\s?(\d{1,6})"""
_RANGE: Final = re.compile(rf"""(?:"start":)?{_CORE}[)}}]?\s?(?:-|,\s?"end":)\s?{_CORE}""")
#: No configuration is longer: what is, was written to keep a reader busy.
_LONGEST: Final = 20_000
_CONV: Final = re.compile(r"\bConv[123]dConfig\s?[({]")


def bare_name(text: str | None) -> str | None:
    """Return the name without its type, in capitals.

    >>> bare_name("DataType::BFLOAT8_B"), bare_name("Layout.TILE"), bare_name("torch.bfloat16")
    ('BFLOAT8_B', 'TILE', 'BFLOAT16')
    >>> bare_name("std::nullopt")
    """
    found = _NAME.search((text or "").strip())
    return None if found is None or found[0] in _NONE else found[0].upper()


def buffer_type(value: int | str) -> BufferType:
    """Return the type behind its number or its name."""
    name = bare_name(value) if isinstance(value, str) else str(value)
    if name is not None and name.isdecimal() and int(name) < len(BufferType):
        return list(BufferType)[int(name)]
    return BufferType.__members__.get(name or "", BufferType.OTHER)


def shape_of(text: str | None) -> tuple[int, ...] | None:
    """Return a logical shape; None if unreadable.

    >>> shape_of("Shape([1, 64])"), shape_of("torch.Size([3])"), shape_of("Shape([])")
    ((1, 64), (3,), ())
    """
    _, opening, rest = (text or "").partition("[")
    inner, closing, _ = rest.rpartition("]")
    if not (opening and closing and _OF_SHAPES.issuperset(inner)):
        return None
    return tuple(int(extent) for extent in _EXTENT.findall(inner))


def memory_of(text: str | None) -> str | None:
    """Return where a tensor lies and how it is spread."""
    if text is None or len(text) > _LONGEST:
        return None
    kind, layout = (bare_name(setting(text, key)) for key in ("buffer_type", "memory_layout"))
    return f"{kind}_{layout}" if kind and layout else kind or layout


def shard_of(text: str | None) -> Shard | None:
    # The first is what old and new releases have; the second alone knows more than two dimensions.
    if text is None or len(text) > _LONGEST:
        return None
    for key in ("shard_spec", "nd_shard_spec"):
        begin = re.search(rf"(?<!\w){key}=(?!std|None|nullopt)", text)
        if begin is None:
            continue
        spec = text[begin.end() :].partition(",nd_shard_spec=")[0]
        shape = _SHARD_SHAPE.search(spec)
        if shape is not None:
            extents = tuple(int(extent) for extent in re.findall(r"\d{1,18}", shape[1]))
            return Shard(extents, core_ranges(spec))
    return None


def core_ranges(text: str) -> tuple[CoreRange, ...]:
    """Return the rectangles of cores in a text, however it spells them.

    >>> core_ranges("{[0-0 - 7-7]}") == core_ranges("{[(x=0,y=0) - (x=7,y=7)]}")
    True
    >>> core_ranges('[{"start":{"x":0,"y":0},"end":{"x":7,"y":7}]')
    (CoreRange(x0=0, y0=0, x1=7, y1=7),)
    """
    return tuple(CoreRange(*map(int, corners)) for corners in _RANGE.findall(text))


def conv_of(arguments: Mapping[str, str]) -> ConvConfig | None:
    named = arguments.get("conv_config", "")
    texts = (named, *arguments.values())
    found = next((each for each in texts if _CONV.search(each, 0, _LONGEST)), None)
    if found is None:
        return None
    text = found[:_LONGEST]
    return ConvConfig(
        bare_name(setting(text, "weights_dtype")),
        bare_name(setting(text, "shard_layout")),
        whole_number(text, "act_block_h_override"),
        *(flag(text, name) for name in ConvConfig._fields[3:]),
    )


#: Rows and columns of a tile.
TILE: Final = 32


def in_tiles(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape rounded up to whole tiles.

    >>> in_tiles((1, 1, 50, 100)), in_tiles((7,))
    ((1, 1, 64, 128), (32, 32))
    """
    *outer, rows, columns = (*(1,) * (2 - len(shape)), *shape)
    return (*outer, -(-rows // TILE) * TILE, -(-columns // TILE) * TILE)


def device_tensor(record: TensorRecord | None) -> Tensor | None:
    """Return a tensor as in an op table; None on the host."""
    if record is None or record.shape is None or record.memory is None:
        return None
    layout = record.layout or ""
    padded = in_tiles(record.shape) if layout == "TILE" else record.shape
    return Tensor(padded, record.shape, layout, record.dtype or "", record.memory)


def allocated_bytes(record: TensorRecord) -> float:
    """Return the bytes of a tensor on one device, with padding."""
    tensor = device_tensor(record)
    if tensor is None:
        return 0.0
    elements = prod(tensor.padded)
    if record.shard is not None and record.shard.shape and record.shard.grid:
        cores = sum((r.x1 - r.x0 + 1) * (r.y1 - r.y0 + 1) for r in record.shard.grid)
        elements = max(elements, prod(record.shard.shape) * cores)
    return elements * BYTES.get(tensor.dtype, 0.0)


def tensors_from_before(report: Report) -> Iterator[TensorRecord]:
    """Yield weights and inputs that were there before the calls, each once."""
    made: set[object] = set()
    seen: set[object] = set()
    for operation in report.operations:
        for number in operation.inputs:
            record = report.tensors.get(number)
            if record is None or record.address is None or device_tensor(record) is None:
                continue
            place = place_of(record)
            # What lies where a call put its output is a view of that.
            if place not in made and place not in seen:
                seen.add(place)
                yield record
        outputs = filter(None, map(report.tensors.get, operation.outputs))
        made.update(place_of(record) for record in outputs)


def place_of(record: TensorRecord) -> object:
    return record.device, (record.memory or "").partition("_")[0], record.address


def resident_bytes(report: Report) -> Mapping[BufferType, float]:
    """Return the bytes of weights and inputs on one device."""
    if not any(operation.inputs for operation in report.operations):
        return {}
    sizes = dict.fromkeys((BufferType.DRAM, BufferType.L1), 0.0)
    for record in tensors_from_before(report):
        kind = BufferType.DRAM if (record.memory or "").startswith("DRAM") else BufferType.L1
        sizes[kind] += allocated_bytes(record)
    return sizes


def group_calls(report: Report) -> OpGroups:
    """Return the calls as groups of ops, without times."""

    def tensors(numbers: tuple[int, ...]) -> tuple[Tensor, ...]:
        found = (device_tensor(report.tensors.get(number)) for number in numbers)
        return tuple(tensor for tensor in found if tensor is not None)

    counts = Counter(
        Signature(each.name, tensors(each.inputs), tensors(each.outputs))
        for each in report.operations
    )
    groups = (
        OpGroup(signature, None, None, "", count, total_ns=0.0, median_ns=0.0)
        for signature, count in counts.items()
    )
    return OpGroups(CALLS, tuple(sorted(groups, key=lambda g: (g.signature.op, repr(g)))))


# The operations of a report: device operations and circular buffers from their captured graphs.

#: What only a program that goes to a device leaves in the graph.
_OF_PROGRAMS: Final = frozenset({
    "program_execution", "circular_buffer_allocate", "circular_buffer_deallocate_all",
})  # fmt: skip
_FIDELITY: Final = re.compile(r"math_fidelity\s?[=:]\s?(?:MathFidelity(?:::|\.))?(\w{1,32})")
_MULTIPLIES: Final = re.compile("matmul|conv", re.IGNORECASE)
_RESHARDS: Final = frozenset({"to_memory_config", "reshard", "ReshardDeviceOperation"})
#: More than any chip has, either way.
_MOST_CORES: Final = 32


class Node(NamedTuple):
    """One node; ``name`` is empty unless it is a function."""

    kind: str
    name: str
    params: Value | None
    value: Value


class _Function(Struct):
    name: str
    fidelities: set[str]
    on_device: bool


class Inside:
    """Collects what ran inside an operation, node by node."""

    def __init__(self) -> None:
        self.queues: list[int] = []
        self._functions: list[_Function] = []
        self._open: list[_Function] = []
        #: Bytes of circular buffers by device and core.
        self._circular: Counter[tuple[int, int, int]] = Counter()
        self._fullest: int | None = None

    def add(self, node: Node) -> None:
        if node.kind == "function_start":
            arguments = node.value.optional("arguments")
            texts = [] if arguments is None else [str(each.raw) for each in arguments.array()]
            fidelities = {found for text in texts for found in _FIDELITY.findall(text)}
            function = _Function(node.name, fidelities, "DeviceOperation" in node.name)
            self._functions.append(function)
            self._open.append(function)
        elif node.kind == "function_end" and self._open:
            self._open.pop()
        elif node.kind in _OF_PROGRAMS:
            if self._open:
                self._open[-1].on_device = True
            if node.kind == "program_execution":
                queue = None if node.params is None else node.params.optional("command_queue_id")
                self.queues += [] if queue is None else [whole(queue)]
            elif node.kind == "circular_buffer_allocate":
                self._allocate(node)
            else:
                self._release()

    def _allocate(self, node: Node) -> None:
        params = node.params or node.value.field("params")
        size, device = whole(params.field("size")), params.optional("device_id")
        shared = params.optional("globally_allocated")
        self._fullest = self._fullest or 0
        # A buffer laid over a tensor has no memory of its own.
        if shared is None or str(shared.raw).lower() not in {"1", "true"}:
            number = 0 if device is None else whole(device)
            places = {
                (number, x, y)
                for cores in _cores(params)
                for x in range(cores.x0, cores.x1 + 1)
                for y in range(cores.y0, cores.y1 + 1)
            }
            self._circular.update(dict.fromkeys(places, size))

    def _release(self) -> None:
        # Of every device: the mesh is named where its buffers go, the chip where they come.
        if self._circular:
            self._fullest = max(self._fullest or 0, *self._circular.values())
        self._circular.clear()

    @property
    def cb_bytes_per_core(self) -> int | None:
        self._release()
        return self._fullest

    @property
    def device_operations(self) -> tuple[str, ...]:
        return tuple(function.name for function in self._functions if function.on_device)

    @property
    def fidelities(self) -> set[str]:
        """The fidelities of its matmuls, else of all."""
        compute = [each.fidelities for each in self._functions if _MULTIPLIES.search(each.name)]
        return set().union(*compute) or set().union(*(each.fidelities for each in self._functions))


def nodes_of(graph: Value) -> Iterator[Node]:
    """Read the list of nodes; DecodeError if malformed."""
    for value in graph.array():
        kind, params = value.field("node_type").string(), value.optional("params")
        name = ""
        if kind == "function_start":
            name = (params or value.field("params")).field("name").string()
            if "<" not in name:
                name = name.rpartition("::")[2] if "DeviceOperation" in name else name
        yield Node(kind, name, params, value)


def whole(value: Value) -> int:
    """Read a whole number; older releases write it as text."""
    raw = value.raw
    if isinstance(raw, str) and raw.isascii() and raw.isdecimal() and len(raw) <= 15:
        return int(raw)
    return value.integer()


def reshard_of(name: str, device_operations: tuple[str, ...]) -> Reshard:
    if not any("Reshard" in operation for operation in device_operations):
        return Reshard.NONE
    own = re.split(r"\.|::", name)[-1]
    return Reshard.EXPLICIT if own in _RESHARDS else Reshard.HIDDEN


def fullest_device(sizes: Mapping[tuple[int, BufferType], int]) -> dict[BufferType, int]:
    """Return the sums by type, of the fullest device each."""
    totals: dict[BufferType, int] = {}
    for (_, kind), size in sizes.items():
        totals[kind] = max(size, totals.get(kind, 0))
    return totals


def _cores(params: Value) -> tuple[CoreRange, ...]:
    given = params.optional("core_range_set")
    if given is None:
        return (CoreRange(0, 0, 0, 0),)
    text = given.string()
    ranges = core_ranges(text)
    possible = all(c.x0 <= c.x1 < _MOST_CORES and c.y0 <= c.y1 < _MOST_CORES for c in ranges)
    if not (ranges or not text.strip("{}[] ")) or not possible:
        raise given.refusal("ranges of cores")
    return ranges


def _edges(operations: tuple[Operation, ...]) -> tuple[Edge, ...]:
    edges: list[Edge] = []
    # An op may give back the tensor it was given, so the last producer so far is the one.
    producers: dict[int, int] = {}
    for operation in operations:
        edges += (
            Edge(tensor, producers[tensor], operation.id)
            for tensor in dict.fromkeys(operation.inputs)
            if tensor in producers
        )
        producers.update(dict.fromkeys(operation.outputs, operation.id))
    return tuple(edges)


def _reason(message: str) -> str | None:
    """Return the line after ``info:``, else the first line."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    after = lines[lines.index("info:") + 1 :] if "info:" in lines else lines
    return next(iter(after or lines), None)


#: What an argument longer than this begins with; a tensor may print all its values.
_LONGEST_ARGUMENT: Final = 20_000
_ID: Final = "operation_id"


def read_operations(tables: Tables) -> tuple[Operation, ...]:
    names = {
        row.whole(_ID): row.text("name") or ""
        for row in tables.rows("operations", _ID, "name", order=_ID)
    }
    arguments, memory = _arguments(tables), _memory(tables)
    inputs, outputs = (
        _by_operation(tables, f"{side}_tensors", "tensor_id", order=f"{side}_index")
        for side in ("input", "output")
    )
    queues = _by_operation(tables, "operation_executions", "command_queue_id")
    inside = _inside(tables, names)
    return tuple(
        Operation(
            id=number,
            name=name,
            arguments=arguments[number],
            inputs=tuple(inputs[number]),
            outputs=tuple(outputs[number]),
            conv=conv_of(arguments[number]),
            bytes_per_bank=fullest_device(memory[number]),
            queues=tuple(queues[number]),
            **_ran_inside(name, inside.get(number), arguments[number]),
        )
        for number, name in names.items()
    )


def _ran_inside(name: str, inside: Inside | None, arguments: Mapping[str, str]) -> dict[str, Any]:
    fidelities = inside.fidelities if inside else set()
    if not fidelities:
        configs = (text for key, text in arguments.items() if key.startswith("compute_"))
        fidelities = {found[1] for text in configs if (found := _FIDELITY.search(text))}
    fields: dict[str, Any] = {"fidelity": fidelities.pop() if len(fidelities) == 1 else None}
    if inside is not None:
        ran = inside.device_operations
        fields |= {"device_operations": ran, "reshard": reshard_of(name, ran)}
        fields["cb_bytes_per_core"] = inside.cb_bytes_per_core
    return fields


def _arguments(tables: Tables) -> dict[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for row in tables.rows("operation_arguments", _ID, "name", "value", longest=_LONGEST_ARGUMENT):
        text = row.text("value") or ""
        cut = text if len(text) <= _LONGEST_ARGUMENT else text[:_LONGEST_ARGUMENT] + "…"
        found[row.whole(_ID)][row.text("name") or ""] = cut
    return found


def _by_operation(tables: Tables, table: str, column: str, order: str = "") -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for row in tables.rows(table, _ID, column, order=order):
        number = row.known(column)
        found[row.whole(_ID)] += [] if number is None else [number]
    return found


def _memory(tables: Tables) -> dict[int, Counter[tuple[int, BufferType]]]:
    """Return bytes per bank by operation, device and type."""
    found: dict[int, Counter[tuple[int, BufferType]]] = defaultdict(Counter)
    # Every op lists all that is alive, so this table grows with the square of the model.
    for row in tables.rows("buffers", _ID, "device_id", "max_size_per_bank", "buffer_type"):
        size, kind = row.known("max_size_per_bank"), row.text("buffer_type")
        if size is not None and kind is not None:
            place = row.known("device_id") or 0, buffer_type(kind)
            found[row.whole(_ID)][place] += size
    # The largest parts of two buffers may lie in different banks: known bank by bank, they count.
    banks: Counter[tuple[int, int, BufferType, int]] = Counter()
    for row in tables.rows(
        "buffer_chunks", _ID, "device_id", "bank_id", "chunk_size", "buffer_type"
    ):
        size, kind, bank = row.known("chunk_size"), row.text("buffer_type"), row.known("bank_id")
        if size is not None and kind is not None and bank is not None:
            banks[row.whole(_ID), row.known("device_id") or 0, buffer_type(kind), bank] += size
    fullest: dict[tuple[int, tuple[int, BufferType]], int] = {}
    for (operation, device, type_, _), size in banks.items():
        key = operation, (device, type_)
        fullest[key] = max(size, fullest.get(key, 0))
    for (operation, place), size in fullest.items():
        found[operation][place] = min(size, found[operation].get(place, size))
    return found


def _inside(tables: Tables, operations: Container[int]) -> dict[int, Inside]:
    """Return what ran inside operations that exist."""
    found: dict[int, Inside] = defaultdict(Inside)
    for row in tables.rows("captured_graph", _ID, "captured_graph"):
        number, text = row.whole(_ID), row.text("captured_graph")
        if text is None or number not in operations:
            continue
        try:
            for node in nodes_of(Value(loads(text))):
                found[number].add(node)
        except (DecodeError, ValueError) as cause:
            problem = cause if isinstance(cause, DecodeError) else f"not valid JSON: {cause}"
            place = f"captured_graph of operation {number}"
            raise InputError(tables.file, f"{place}: {problem}") from cause
    return found


MAGIC: Final = b"SQLite format 3\x00"
_GZIP: Final = b"\x1f\x8b"
_HEADER_BYTES: Final = 100


@contextmanager
def open_database(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading; any error of SQLite becomes an InputError."""
    try:
        with reading(file):
            _check_file(file)
            # Immutable: no lock, and no file beside this one; the folder may be read-only.
            uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
            connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    except sqlite3.Error as cause:
        raise InputError(file, f"cannot read: {cause}") from cause
    try:
        for setting in ("trusted_schema=OFF", "cell_size_check=ON", "ignore_check_constraints=ON"):
            connection.execute(f"PRAGMA {setting}")
        yield connection
    # SQLite's own texts, and names in its schema, need not be UTF-8 in a damaged file.
    except (sqlite3.Error, UnicodeDecodeError) as cause:
        problem = " ".join(f"the database is damaged: {cause}".split())
        raise InputError(file, problem[:300]) from cause
    finally:
        connection.close()


def _check_file(file: Path) -> None:
    """Refuse other files, and databases with changes in a journal."""
    with open_file(file) as stream:
        header = stream.read(_HEADER_BYTES)
    if not header:
        raise InputError(file, "the file is empty")
    if header.startswith(_GZIP):
        raise InputError(file, f"packed with gzip: unpack it first, with `gunzip -k {file.name}`")
    if not header.startswith(MAGIC):
        raise InputError(file, "not an SQLite database: it does not begin as one")
    page_bytes = int.from_bytes(header[16:18], "big")
    # SQLite itself refuses a file that ends with a whole page too early.
    rest = file.stat().st_size % (65536 if page_bytes == 1 else page_bytes or 1)
    if len(header) < _HEADER_BYTES or rest:
        raise InputError(file, "the database is cut off")
    for suffix in ("-wal", "-journal"):
        beside = file.with_name(file.name + suffix)
        if beside.exists() and beside.stat().st_size:
            problem = f"{beside.name} beside it holds changes that are not in it yet: "
            raise InputError(file, problem + "wait until its writer has closed it")


#: A message ends with pages of a backtrace; its reason stands at the beginning.
_LONGEST_MESSAGE: Final = 20_000
#: In the order of the fields of ``Device``.
_DEVICE: Final = ("num_compute_cores", "l1_bank_size", "total_l1_memory", "cb_limit")


def is_report_db(head: bytes) -> bool:
    return head.startswith(MAGIC)


def read_report_db(file: Path) -> Report:
    """Read the lowest rank of a report, without embedded sources."""
    with open_database(file) as connection:
        tables = Tables(file, connection)
        if not {_ID, "name"} <= set(tables.columns("operations")):
            expected = "a table operations with columns operation_id and name"
            raise InputError(file, f"not a report of TTNN: expected {expected}")
        tables.rank = tables.lowest_rank("operations", "devices", "errors")
        report = _report(tables)
    if not report.operations and not report.errors:
        raise EmptyReportError(file, "no operations: nothing was captured")
    return report


def _report(tables: Tables) -> Report:
    operations = read_operations(tables)
    return Report(
        devices=tuple(
            Device(row.whole("device_id"), *map(row.known, _DEVICE))
            for row in tables.rows("devices", "device_id", *_DEVICE)
        ),
        operations=operations,
        tensors=_tensors(tables),
        edges=_edges(operations),
        comparisons=tuple(_comparisons(tables)),
        errors=tuple(_errors(tables)),
    )


def _tensors(tables: Tables) -> dict[int, TensorRecord]:
    tensors: dict[int, TensorRecord] = {}
    wanted = (
        "tensor_id", "shape", "dtype", "layout", "device_id", "address", "buffer_type",
        "memory_config",
    )  # fmt: skip
    for row in tables.rows("tensors", *wanted, longest=_LONGEST):
        number, config = row.whole("tensor_id"), row.text("memory_config")
        memory, address = memory_of(config), row.known("address")
        # Releases before 3.5 wrote DRAM for whatever had no buffer at all.
        if memory is None and address is not None and (kind := row.text("buffer_type")):
            memory = buffer_type(kind).value
        tensors[number] = TensorRecord(
            id=number,
            shape=shape_of(row.text("shape")),
            dtype=bare_name(row.text("dtype")),
            layout=bare_name(row.text("layout")),
            memory=memory,
            shard=shard_of(config),
            device=row.known("device_id"),
            address=address,
        )
    return tensors


def _comparisons(tables: Tables) -> Iterator[Comparison]:
    wanted = ("tensor_id", "desired_pcc", "actual_pcc")
    for scope in Scope:
        for row in tables.rows(f"{scope.value}_tensor_comparison_records", *wanted):
            yield Comparison(
                scope,
                row.whole("tensor_id"),
                row.number("desired_pcc"),
                row.number("actual_pcc"),
            )


def _errors(tables: Tables) -> Iterator[OperationError]:
    wanted = ("operation_id", "operation_name", "error_type", "error_message")
    for row in tables.rows("errors", *wanted, longest=_LONGEST_MESSAGE):
        yield OperationError(
            row.known("operation_id"),
            row.text("operation_name"),
            row.text("error_type"),
            _reason(row.text("error_message") or ""),
        )


class Row(NamedTuple):
    """One row; None for missing values and columns."""

    file: Path
    table: str
    columns: dict[str, int]
    values: tuple[object, ...]

    def known(self, column: str) -> int | None:
        return None if self.values[self.columns[column]] is None else self.whole(column)

    def whole(self, column: str) -> int:
        value = self.values[self.columns[column]]
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            return int(value)
        if isinstance(value, int):
            return value
        raise self.refusal(column, "a whole number")

    def number(self, column: str) -> float | None:
        value = self.values[self.columns[column]]
        if value is None:
            return None
        if isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
        raise self.refusal(column, "a finite number")

    def text(self, column: str) -> str | None:
        value = self.values[self.columns[column]]
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (int, float)):
            return str(value)
        raise self.refusal(column, "a text")

    def refusal(self, column: str, expected: str) -> InputError:
        found = describe(self.values[self.columns[column]])
        return InputError(self.file, f"{self.table}.{column}: expected {expected}, found {found}")


class Tables:
    """The tables, row by row; of one rank once ``rank`` is set."""

    def __init__(self, file: Path, connection: sqlite3.Connection) -> None:
        self.file = file
        self.rank: int | None = None
        self._connection = connection
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        self._names = {str(name) for (name,) in connection.execute(query)}
        self._columns: dict[str, tuple[str, ...]] = {}

    def columns(self, table: str) -> tuple[str, ...]:
        if table not in self._columns and table in self._names:
            # Rows can be lost in a damaged file without any error at their reading.
            (state,) = next(self._connection.execute(f"PRAGMA quick_check('{table}')"), ("ok",))
            if state != "ok":
                problem = f"the database is damaged: {table}: {state}"
                raise InputError(self.file, " ".join(problem.split())[:300])
            found = self._connection.execute(f"PRAGMA table_info('{table}')")
            self._columns[table] = tuple(str(name).lower() for _, name, *_ in found)
        return self._columns.get(table, ())

    def rows(self, table: str, *wanted: str, order: str = "", longest: int = 0) -> Iterator[Row]:
        """Iterate over rows, ordered by a column if it exists.

        Only the first ``longest`` characters of the last wanted column are read, and one more.
        """
        present = self.columns(table)
        parts = [column if column in present else "NULL" for column in wanted]
        if longest and parts[-1] != "NULL":
            parts[-1] = f"substr({parts[-1]}, 1, {longest + 1})"
        ordered = f" ORDER BY {order}" if order in present else ""
        if present:
            yield from self._select(table, wanted, parts, ordered)

    def _select(
        self, table: str, names: Sequence[str], parts: Sequence[str], ending: str
    ) -> Iterator[Row]:
        query = f"SELECT {', '.join(parts)} FROM {table} NOT INDEXED"
        if self.rank is not None and "rank" in self.columns(table):
            query += f" WHERE rank = {self.rank}"
        places = {name: index for index, name in enumerate(names)}
        for values in self._connection.execute(query + ending):
            yield Row(self.file, table, places, values)

    def lowest_rank(self, *tables: str) -> int | None:
        found = [
            next(self._connection.execute(f"SELECT min(rank) FROM {table}"))[0]
            for table in tables
            if "rank" in self.columns(table)
        ]
        return min((rank for rank in found if isinstance(rank, int)), default=None)
