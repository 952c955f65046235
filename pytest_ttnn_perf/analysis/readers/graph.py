"""Captured graphs of TTNN: ``graph_capture.json``, or a list of nodes.

It becomes a report, as the database that is made of it would be.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import (
    BufferType,
    Inside,
    Operation,
    OperationError,
    Report,
    TensorRecord,
    buffer_type,
    device_of,
    edges_of,
    fullest_device,
    nodes_of,
    place_of,
    reason_in,
    reshard_of,
    tensor_record,
    whole,
)
from pytest_ttnn_perf.core.codec import Value
from pytest_ttnn_perf.core.files import parse_json, read_text

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.analysis.readers.report_db import Device, Node


#: A parsed document takes about ten times the memory of its text.
_LARGEST_FILE: Final = 200_000_000
#: Python lets go of a tensor: no call of the program.
_RELEASE: Final = "Tensor::deallocate"
_REPORT: Final = re.compile(
    r'\{\s*"(?:buffer_pages|buffer_pages_by_address|cluster_descriptor)"\s*:'
)
_NODES: Final = re.compile(
    r'(?:\{\s*"graph"\s*:\s*)?\[\s*\{\s*(?:"arguments"\s*:\s*\[\]\s*,\s*"connections"\s*:'
    r'|[^{}]*"node_type"\s*:)'
)


def is_graph_json(text_head: str) -> bool:
    head = text_head[:10_000].lstrip()
    return bool(_REPORT.match(head) or _NODES.match(head))


def read_graph_json(file: Path) -> Report:
    """Read a capture: the operations, and what ran inside each.

    Operations and tensors are numbered by their nodes; a graph does not name the arguments as the
    program did. A tensor is known by where it lies, so one at an address is the same until an
    operation puts another one there.
    """
    return parse_json(read_text(file, most_bytes=_LARGEST_FILE), _decode, file=file)


def read_held(file: Path) -> Mapping[BufferType, int]:
    """Return the most bytes per bank a program held at once.

    The buffers of a program, such as its kernels, are not among them: they stay on the device, so
    that only the first call which runs the program has them. No tensor lies in them.
    """
    return parse_json(read_text(file, most_bytes=_LARGEST_FILE), _held, file=file)


def _held(raw: object) -> Mapping[BufferType, int]:
    nodes = list(nodes_of(_graph(Value(raw))))
    live = _Live({_number(node) for node in nodes if node.kind == "buffer" and not _links(node)})
    for node in nodes:
        live.add(node)
    return live.most()


def _links(node: Node) -> tuple[int, ...]:
    linked = node.value.optional("connections")
    return () if linked is None else tuple(map(whole, linked.array()))


def _decode(raw: object) -> Report:
    document = Value(raw)
    nodes = list(nodes_of(_graph(document)))
    snapshots = document.optional("per_operation_buffers") if isinstance(raw, dict) else None
    tensors = _Tensors(nodes)
    calls, errors = _calls(nodes, snapshots, tensors)
    if not calls:
        raise document.refusal("the calls of a program in the captured graph")
    operations = tuple(
        replace(call, inputs=tensors.inputs(call.id), outputs=tensors.outputs(call.id))
        for call in calls
    )
    devices = document.optional("devices") if isinstance(raw, dict) else None
    return Report(
        devices=() if devices is None else tuple(map(_device, devices.array())),
        operations=operations,
        tensors=tensors.records,
        edges=edges_of(operations),
        comparisons=(),
        errors=tuple(errors),
    )


def _graph(document: Value) -> Value:
    if isinstance(document.raw, list):
        return document
    if isinstance(document.raw, dict):
        return document.field("graph")
    raise document.refusal("a captured graph: a list of nodes, or an object that holds it")


def _device(device: Value) -> Device:
    return device_of(whole(device.field("device_id")), partial(_whole_in, device))


def _text_in(value: Value, name: str) -> str | None:
    found = value.optional(name)
    return None if found is None else str(found.raw)


def _whole_in(value: Value, name: str) -> int | None:
    found = value.optional(name)
    return None if found is None else whole(found)


def _calls(
    nodes: Iterable[Node], snapshots: Value | None, tensors: _Tensors
) -> tuple[list[Operation], list[OperationError]]:
    """Return the calls without tensors, and errors."""
    operations: list[Operation] = []
    errors: list[OperationError] = []
    live = _Live()
    inside, depth = Inside(), 0
    first: Node | None = None
    for node in nodes:
        live.add(node)
        if node.kind == "function_start":
            first = first or node
            depth += 1
        if first is not None:
            inside.add(node)
            tensors.add(node, _number(first))
        if node.kind == "error":
            errors.append(_error(node, first))
        if node.kind == "function_end" and first is not None:
            depth -= 1
            if depth == 0:
                if first.name != _RELEASE:
                    operations.append(_operation(first, inside, live, snapshots))
                inside, first = Inside(), None
    if first is not None:
        # The program failed in here, or the capture was ended.
        operations.append(_operation(first, inside, live, snapshots))
    return operations, errors


def _number(node: Node) -> int:
    return whole(node.value.field("counter"))


def _error(node: Node, first: Node | None) -> OperationError:
    text = partial(_text_in, node.params or Value({}))
    message = text("error_message") or text("message") or ""
    name = text("error_operation") or (first.name if first else None)
    number = None if first is None else _number(first)
    return OperationError(number, name, text("error_type"), reason_in(message))


def _operation(first: Node, inside: Inside, live: _Live, snapshots: Value | None) -> Operation:
    number = _number(first)
    snapshot = None if snapshots is None else snapshots.optional(str(number))
    fidelities = inside.fidelities
    return Operation(
        id=number,
        name=first.name,
        device_operations=inside.device_operations,
        cb_bytes_per_core=inside.cb_bytes_per_core,
        fidelity=fidelities.pop() if len(fidelities) == 1 else None,
        reshard=reshard_of(first.name, inside.device_operations),
        bytes_per_bank=live.totals() if snapshot is None else _totals(snapshot),
        queues=tuple(inside.queues),
    )


def _totals(snapshot: Value) -> dict[BufferType, int]:
    sizes: Counter[tuple[int, BufferType]] = Counter()
    for buffer in snapshot.array():
        sizes[_place(buffer)] += whole(buffer.field("max_size_per_bank"))
    return fullest_device(sizes)


def _place(buffer: Value) -> tuple[int, BufferType]:
    kind = buffer.optional("buffer_type") or buffer.field("type")
    device = buffer.optional("device_id")
    name = kind.raw if isinstance(kind.raw, str) else whole(kind)
    return 0 if device is None else whole(device), buffer_type(name)


class _Live:
    """Tracks allocated buffers node by node, except ``programs``.

    Only releases that report the size per bank can be summed.
    """

    def __init__(self, programs: Container[int] = ()) -> None:
        self._programs = programs
        self._sizes: dict[tuple[int, BufferType, int], int] = {}
        self._totals: Counter[tuple[int, BufferType]] = Counter()
        self._most: Counter[tuple[int, BufferType]] = Counter()
        self._is_known = True

    def add(self, node: Node) -> None:
        if node.kind not in {"buffer_allocate", "buffer_deallocate"} or node.params is None:
            return
        address = node.params.optional("address")
        size = node.params.optional("max_size_per_bank")
        if address is None or size is None:
            self._is_known = False
            return
        place = _place(node.params)
        key = (*place, whole(address))
        self._totals[place] -= self._sizes.pop(key, 0)
        if node.kind == "buffer_allocate" and not self._is_of_program(node, place[1]):
            self._sizes[key] = whole(size)
            self._totals[place] += whole(size)
            self._most[place] = max(self._most[place], self._totals[place])

    def _is_of_program(self, node: Node, kind: BufferType) -> bool:
        if kind is BufferType.TRACE:  # no tensor lies there either, and it is the call's own
            return False
        return any(number in self._programs for number in _links(node))

    def totals(self) -> dict[BufferType, int]:
        used: Iterable[tuple[tuple[int, BufferType], int]] = self._totals.items()
        return fullest_device({place: size for place, size in used if size and self._is_known})

    def most(self) -> dict[BufferType, int]:
        return fullest_device(self._most) if self._is_known else {}


class _Tensors:
    """Tracks who made the tensor at an address, and who reads it."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.records: dict[int, TensorRecord] = {}
        self._nodes = {_number(node): node for node in nodes if node.kind == "tensor"}
        #: The number of the tensor that lies in a place, and the call that put it there.
        self._there: dict[object, tuple[int, int | None]] = {}
        self._made: dict[int, dict[int, None]] = {}
        self._given: dict[int, list[int]] = {}
        self._read: dict[int, dict[int, None]] = {}

    def add(self, node: Node, call: int) -> None:
        if node.kind == "function_start":
            for record in self._linked(node, "input_tensors"):
                place = _place_of(record)
                if record.address is None and place not in self._there:
                    continue  # its buffer is gone: what the call let go of itself
                number, maker = self._there.setdefault(place, (record.id, None))
                self.records.setdefault(number, record)
                if maker != call:
                    self._read.setdefault(call, {})[number] = None
        elif node.kind == "function_end":
            given = [self._make(call, record) for record in self._linked(node, "connections")]
            if given:
                # What the last function of a call gives is what the call gives.
                self._given[call] = given

    def inputs(self, call: int) -> tuple[int, ...]:
        return tuple(self._read.get(call, ()))

    def outputs(self, call: int) -> tuple[int, ...]:
        """Return what a call gives, and what else of it others read."""
        read = {number for numbers in self._read.values() for number in numbers}
        others = (number for number in self._made.get(call, ()) if number in read)
        return tuple(dict.fromkeys((*self._given.get(call, ()), *others)))

    def _make(self, call: int, record: TensorRecord) -> int:
        number, maker = self._there.get(_place_of(record), (record.id, None))
        if maker != call:
            number = record.id
            self._there[_place_of(record)] = number, call
        self.records[number] = record._replace(id=number)
        self._made.setdefault(call, {})[number] = None
        return number

    def _linked(self, node: Node, name: str) -> Iterator[TensorRecord]:
        numbers = node.value.optional(name)
        for number in () if numbers is None else map(whole, numbers.array()):
            linked = self._nodes.get(number)
            if linked is not None and linked.params is not None:
                own = linked.params
                record = tensor_record(number, partial(_text_in, own), partial(_whole_in, own))
                if record.memory is not None:  # tensors of the host do not matter
                    yield record


def _place_of(record: TensorRecord) -> object:
    """Return the place of a tensor; its format if without address."""
    if record.address is None:
        return record.shape, record.dtype, record.layout, record.memory
    return place_of(record)
