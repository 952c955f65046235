"""The operations of a report: device operations and circular buffers from their captured graphs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import field
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError, InputError
from pytest_ttnn_perf._base.files import loads
from pytest_ttnn_perf.analysis.captures.report_db_text import buffer_type, conv_of, core_ranges
from pytest_ttnn_perf.records.json_value import Value
from pytest_ttnn_perf.records.ttnn_report import (
    BufferType,
    CoreRange,
    Device,
    Edge,
    Operation,
    Reshard,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ttnn_perf.analysis.captures.report_db import Tables


#: What only a program that goes to a device leaves in the graph.
_OF_PROGRAMS: Final = frozenset({
    "program_execution", "circular_buffer_allocate", "circular_buffer_deallocate_all",
})  # fmt: skip
_FIDELITY: Final = re.compile(r"math_fidelity\s?[=:]\s?(?:MathFidelity(?:::|\.))?(\w{1,32})")
_MULTIPLIES: Final = re.compile("matmul|conv", re.IGNORECASE)
_RESHARDS: Final = frozenset({"to_memory_config", "reshard", "ReshardDeviceOperation"})
#: More than any chip has, either way.
_MOST_CORES: Final = 1000


class Node(NamedTuple):
    """One node; ``name`` is that of a function, and empty for all others."""

    kind: str
    name: str
    params: Value | None
    value: Value


class Work(NamedTuple):
    """What ran inside an operation; as in ``model.report.Operation``."""

    device_operations: tuple[str, ...]
    fidelity: str | None
    cb_bytes_per_core: int | None
    tells_fidelity: bool
    queues: tuple[int, ...]


@dataclass(slots=True)
class _Function:
    name: str
    fidelities: frozenset[str]
    on_device: bool = False


@dataclass(slots=True)
class Inside:
    """Takes the nodes of an operation in their order, and tells at the end what they were."""

    _functions: list[_Function] = field(default_factory=list)
    _open: list[_Function] = field(default_factory=list)
    _circular: Counter[tuple[int, CoreRange]] = field(default_factory=Counter)
    _fullest: int | None = None
    _queues: list[int] = field(default_factory=list)

    def add(self, node: Node) -> None:
        """Take the next node; DecodeError where it makes no sense."""
        if node.kind == "function_start":
            function = _Function(node.name, _fidelities(node), "DeviceOperation" in node.name)
            self._functions.append(function)
            self._open.append(function)
        elif node.kind == "function_end" and self._open:
            self._open.pop()
        elif node.kind in _OF_PROGRAMS:
            if self._open:
                self._open[-1].on_device = True
            if node.kind == "program_execution":
                queue = None if node.params is None else node.params.optional("command_queue_id")
                self._queues += [] if queue is None else [whole(queue)]
            elif node.kind == "circular_buffer_allocate":
                self._allocate(node)
            elif node.kind == "circular_buffer_deallocate_all":
                self._release()

    def _allocate(self, node: Node) -> None:
        params = node.params or node.value.field("params")
        size, device = whole(params.field("size")), params.optional("device_id")
        shared = params.optional("globally_allocated")
        self._fullest = self._fullest or 0
        # A buffer laid over a tensor has no memory of its own.
        if shared is None or str(shared.raw).lower() not in {"1", "true"}:
            for cores in _cores(params):
                self._circular[0 if device is None else whole(device), cores] += size

    def _release(self) -> None:
        # Of every device: the mesh is named where its buffers go, the chip where they come.
        devices: dict[int, dict[CoreRange, int]] = defaultdict(dict)
        for (device, cores), size in self._circular.items():
            devices[device][cores] = size
        for sizes in devices.values():
            self._fullest = max(self._fullest or 0, _fullest_core(sizes))
        self._circular.clear()

    def work(self) -> Work:
        """Return the sum over all nodes added."""
        self._release()
        functions = [function for function in self._functions if function.on_device]
        telling = [function for function in self._functions if function.fidelities]
        compute = [function for function in telling if _MULTIPLIES.search(function.name)]
        fidelities = {name for function in compute or telling for name in function.fidelities}
        return Work(
            tuple(function.name for function in functions),
            fidelities.pop() if len(fidelities) == 1 else None,
            self._fullest,
            bool(telling),
            tuple(self._queues),
        )


def nodes_of(graph: Value) -> Iterator[Node]:
    """Read the list of nodes; DecodeError, with its place, for what is none."""
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
    """Tell whether an operation is a reshard, or does one on its way."""
    if not any("Reshard" in operation for operation in device_operations):
        return Reshard.NONE
    own = re.split(r"\.|::", name)[-1]
    return Reshard.EXPLICIT if own in _RESHARDS else Reshard.HIDDEN


def device_of(identity: int, read: Callable[[str], int | None]) -> Device:
    """Return a device from the fields that databases and captures name alike."""
    return Device(
        id=identity,
        compute_cores=read("num_compute_cores"),
        l1_bank_bytes=read("l1_bank_size"),
        total_l1_bytes=read("total_l1_memory"),
        cb_limit_bytes=read("cb_limit"),
    )


def fullest_device(sizes: Mapping[tuple[int, BufferType], int]) -> dict[BufferType, int]:
    """Return the sums by type of the device that has most of it."""
    totals: dict[BufferType, int] = {}
    for (_, kind), size in sizes.items():
        totals[kind] = max(size, totals.get(kind, 0))
    return totals


def _fidelities(node: Node) -> frozenset[str]:
    arguments = node.value.optional("arguments")
    texts = () if arguments is None else (argument.raw for argument in arguments.array())
    return frozenset(
        found for text in texts if isinstance(text, str) for found in _FIDELITY.findall(text)
    )


def fidelity_in(text: str) -> str | None:
    """Return the fidelity that an argument names."""
    found = _FIDELITY.search(text)
    return None if found is None else found[1]


def _cores(params: Value) -> tuple[CoreRange, ...]:
    given = params.optional("core_range_set")
    if given is None:
        return (CoreRange(0, 0, 0, 0),)
    text = given.string()
    ranges = core_ranges(text)
    is_empty = not text.strip("{}[] ")
    if not (ranges or is_empty) or any(not _is_possible(cores) for cores in ranges):
        raise given.refusal("ranges of cores")
    return ranges


def _is_possible(cores: CoreRange) -> bool:
    return cores.x0 <= cores.x1 < _MOST_CORES and cores.y0 <= cores.y1 < _MOST_CORES


def _fullest_core(sizes: Mapping[CoreRange, int]) -> int:
    """Return the most that lies on one core: sums over rectangles, from their corners alone."""
    columns = sorted({x for cores in sizes for x in (cores.x0, cores.x1 + 1)})
    rows = sorted({y for cores in sizes for y in (cores.y0, cores.y1 + 1)})
    x_at = {x: index for index, x in enumerate(columns)}
    y_at = {y: index for index, y in enumerate(rows)}
    steps = [[0] * len(rows) for _ in columns]
    for cores, size in sizes.items():
        for x, sign in ((cores.x0, size), (cores.x1 + 1, -size)):
            steps[x_at[x]][y_at[cores.y0]] += sign
            steps[x_at[x]][y_at[cores.y1 + 1]] -= sign
    fullest, column = 0, [0] * len(rows)
    for own in steps:
        column = [before + step for before, step in zip(column, own, strict=True)]
        fullest = max(fullest, *accumulate(column))
    return fullest


def edges_of(operations: tuple[Operation, ...]) -> tuple[Edge, ...]:
    """Return the tensors on their way."""
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


def reason_in(message: str) -> str | None:
    """Return the line after ``info:``, where TTNN says what was wrong; else the first line."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    after = lines[lines.index("info:") + 1 :] if "info:" in lines else lines
    return next(iter(after or lines), None)


#: What an argument longer than this begins with; a tensor may print all its values.
LONGEST_ARGUMENT: Final = 20_000
#: The graph of one operation takes some hundred kilobytes.
LONGEST_GRAPH: Final = 32_000_000


@dataclass(slots=True)
class _Parts:
    """Collects the parts of one operation from several tables."""

    id: int
    name: str
    duration_s: float | None
    arguments: dict[str, str] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    inside: Inside | None = None
    buffers: Counter[tuple[int, BufferType]] = field(default_factory=Counter)
    cores: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)
    queues: list[int] = field(default_factory=list)

    def operation(self) -> Operation:
        work = None if self.inside is None else self.inside.work()
        operations = () if work is None else work.device_operations
        return Operation(
            id=self.id,
            name=self.name,
            duration_s=self.duration_s,
            arguments=self.arguments,
            inputs=tuple(self.inputs),
            outputs=tuple(self.outputs),
            device_operations=operations,
            cb_bytes_per_core=None if work is None else work.cb_bytes_per_core,
            fidelity=self._fidelity(work),
            conv=conv_of(self.arguments),
            reshard=Reshard.UNKNOWN if work is None else reshard_of(self.name, operations),
            bytes_per_bank=fullest_device(self.buffers),
            l1_by_core=max(self.cores.values(), key=lambda sizes: sum(sizes.values()), default={}),
            queues=tuple(self.queues),
        )

    def _fidelity(self, work: Work | None) -> str | None:
        if work is not None and work.tells_fidelity:
            return work.fidelity
        configs = (text for name, text in self.arguments.items() if name.startswith("compute_"))
        return next((found for text in configs if (found := fidelity_in(text))), None)


def read_operations(tables: Tables) -> tuple[Operation, ...]:
    """Read all operations in the order of their ids; what speaks of no operation is left out."""
    parts: dict[int, _Parts] = {}
    for row in tables.kept("operations", "operation_id", "duration", "name", order="operation_id"):
        identity, duration = row.identity("operation_id"), row.number("duration")
        if identity in parts:
            raise InputError(tables.file, f"operations: operation {identity} appears twice")
        if duration is not None and duration < 0:
            raise row.refusal("duration", "seconds")
        parts[identity] = _Parts(identity, row.text("name") or "", duration)
    _add_arguments(tables, parts)
    _add_tensors(tables, parts)
    _add_buffers(tables, parts)
    _add_cores(tables, parts)
    _add_graphs(tables, parts)
    return tuple(part.operation() for part in parts.values())


def _add_arguments(tables: Tables, parts: dict[int, _Parts]) -> None:
    columns = ("operation_id", "name", "value")
    for row in tables.kept("operation_arguments", *columns, longest=LONGEST_ARGUMENT):
        part, text = parts.get(row.identity("operation_id")), row.text("value") or ""
        if part is not None:
            cut = text if len(text) <= LONGEST_ARGUMENT else text[:LONGEST_ARGUMENT] + "…"
            part.arguments[row.text("name") or ""] = cut


def _add_tensors(tables: Tables, parts: dict[int, _Parts]) -> None:
    for kind in ("input", "output"):
        index = f"{kind}_index"
        for row in tables.kept(f"{kind}_tensors", "operation_id", index, "tensor_id", order=index):
            part, tensor = parts.get(row.identity("operation_id")), row.identity("tensor_id")
            if part is not None:
                (part.inputs if kind == "input" else part.outputs).append(tensor)


def _add_buffers(tables: Tables, parts: dict[int, _Parts]) -> None:
    columns = ("operation_id", "device_id", "max_size_per_bank", "buffer_type")
    # Every op lists all that is alive, so this table grows with the square of the model.
    for row in tables.rows("buffers", *columns):
        part = parts.get(row.identity("operation_id"))
        size, kind = row.size("max_size_per_bank"), row.text("buffer_type")
        if part is not None and size is not None and kind is not None:
            part.buffers[row.whole("device_id") or 0, buffer_type(kind)] += size


def _add_cores(tables: Tables, parts: dict[int, _Parts]) -> None:
    """Add what lies in the L1 of each core, and the command queue of each program."""
    by = ("operation_id", "device_id", "core_x", "core_y", "buffer_type")
    for row in tables.sums("buffer_chunks", *by, of="chunk_size"):
        part = parts.get(row.identity("operation_id"))
        x, y, size = row.whole("core_x"), row.whole("core_y"), row.size("chunk_size")
        kind = row.text("buffer_type")
        if part is None or x is None or y is None or size is None or kind is None:
            continue
        if buffer_type(kind) is BufferType.L1:
            sizes = part.cores.setdefault(row.whole("device_id") or 0, {})
            sizes[x, y] = sizes.get((x, y), 0) + size
    columns = ("operation_id", "command_queue_id")
    for row in tables.rows("operation_executions", *columns):
        part, queue = parts.get(row.identity("operation_id")), row.whole("command_queue_id")
        if part is not None and queue is not None:
            part.queues.append(queue)


def _add_graphs(tables: Tables, parts: dict[int, _Parts]) -> None:
    columns = ("operation_id", "captured_graph")
    for row in tables.rows("captured_graph", *columns, longest=LONGEST_GRAPH):
        part, text = parts.get(row.identity("operation_id")), row.text("captured_graph")
        if part is None or text is None:
            continue
        place = f"captured_graph of operation {part.id}"
        if len(text) > LONGEST_GRAPH:
            raise InputError(tables.file, f"{place}: longer than {LONGEST_GRAPH} characters")
        part.inside = part.inside or Inside()
        try:
            for node in nodes_of(Value(loads(text))):
                part.inside.add(node)
        except (DecodeError, ValueError) as cause:
            problem = cause if isinstance(cause, DecodeError) else f"not valid JSON: {cause}"
            raise InputError(tables.file, f"{place}: {problem}") from cause
