"""The graph of a program as TTNN captured it: ``graph_capture.json``, or the bare list of nodes."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf._base.files import parse_json, reading
from pytest_ttnn_perf.analysis.captures.report_db_graph import (
    Inside,
    device_of,
    fullest_device,
    nodes_of,
    reshard_of,
    whole,
)
from pytest_ttnn_perf.analysis.captures.report_db_text import buffer_type
from pytest_ttnn_perf.records.json_value import Value
from pytest_ttnn_perf.records.ttnn_report import GraphCapture, Operation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_ttnn_perf.analysis.captures.report_db_graph import Node
    from pytest_ttnn_perf.records.ttnn_report import BufferType, Device


#: A parsed document takes about ten times the memory of its text.
LARGEST_FILE_BYTES: Final = 200_000_000
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
    """Return whether a text begins as a capture of a graph does."""
    head = text_head[:10_000].lstrip()
    return bool(_REPORT.match(head) or _NODES.match(head))


def read_graph_json(file: Path) -> GraphCapture:
    """Read a capture: the operations the program called, with what ran inside each.

    Raises:
        InputError: with file, line and what was expected; also for a file that is too large.
    """
    return parse_json(_text(file), _decode, file=file)


def _text(file: Path) -> str:
    try:
        with reading(file):
            with file.open("rb") as stream:
                content = stream.read(LARGEST_FILE_BYTES + 1)
            if len(content) > LARGEST_FILE_BYTES:
                problem = (
                    f"larger than {LARGEST_FILE_BYTES // 10**6} MB: import it with "
                    "ttnn.graph_report, and give the db.sqlite that this writes"
                )
                raise InputError(file, problem)
            return content.decode("utf-8")
    except ValueError as cause:  # a null character in the name
        raise InputError(file, f"cannot read: {cause}") from cause


def _decode(raw: object) -> GraphCapture:
    document = Value(raw)
    if isinstance(raw, list):
        operations = _operations(document, None)
    elif isinstance(raw, dict):
        operations = _operations(
            document.field("graph"), document.optional("per_operation_buffers")
        )
    else:
        raise document.refusal("a captured graph: a list of nodes, or an object that holds it")
    if not operations:
        raise document.refusal("the calls of a program in the captured graph")
    devices = document.optional("devices") if isinstance(raw, dict) else None
    return GraphCapture(
        () if devices is None else tuple(_device(device) for device in devices.array()),
        tuple(operations),
    )


def _device(device: Value) -> Device:
    def read(name: str) -> int | None:
        value = device.optional(name)
        return None if value is None else whole(value)

    return device_of(whole(device.field("device_id")), read)


def _operations(graph: Value, snapshots: Value | None) -> list[Operation]:
    operations: list[Operation] = []
    live = _Live()
    inside, depth = Inside(), 0
    first: Node | None = None
    for node in nodes_of(graph):
        live.add(node)
        if node.kind == "function_start":
            first = first or node
            depth += 1
        if first is not None:
            inside.add(node)
        if node.kind == "function_end" and first is not None:
            depth -= 1
            if depth == 0:
                if first.name != _RELEASE:
                    operations.append(_operation(first, node, inside, live, snapshots))
                inside, first = Inside(), None
    if first is not None:
        # The program failed in here, or the capture was ended.
        operations.append(_operation(first, None, inside, live, snapshots))
    return operations


def _operation(
    first: Node, last: Node | None, inside: Inside, live: _Live, snapshots: Value | None
) -> Operation:
    number = whole(first.value.field("counter"))
    duration = None if last is None else last.value.optional("duration_ns")
    snapshot = None if snapshots is None else snapshots.optional(str(number))
    work = inside.work()
    return Operation(
        id=number,
        name=first.name,
        duration_s=None if duration is None else whole(duration) / 1e9,
        device_operations=work.device_operations,
        cb_bytes_per_core=work.cb_bytes_per_core,
        fidelity=work.fidelity,
        reshard=reshard_of(first.name, work.device_operations),
        bytes_per_bank=live.totals() if snapshot is None else _totals(snapshot),
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
    """Tracks which buffers are allocated, node by node.

    Only releases that tell the size per bank can be summed; without it nothing is known.
    """

    def __init__(self) -> None:
        self._sizes: dict[tuple[int, BufferType, int], int] = {}
        self._totals: Counter[tuple[int, BufferType]] = Counter()
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
        if node.kind == "buffer_allocate":
            self._sizes[key] = whole(size)
            self._totals[place] += whole(size)

    def totals(self) -> dict[BufferType, int]:
        used: Iterable[tuple[tuple[int, BufferType], int]] = self._totals.items()
        return fullest_device({place: size for place, size in used if size and self._is_known})
