"""The most that a call holds, from TTNN's ``graph_capture.json``.

All else is read from the report database that TTNN makes of it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.readers.report_db import (
    BufferType,
    buffer_type,
    fullest_device,
    nodes_of,
    whole,
)
from pytest_ttnn_perf.core.codec import Value
from pytest_ttnn_perf.core.files import parse_json, read_text

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.analysis.readers.report_db import Node


#: A parsed document takes about ten times the memory of its text.
_LARGEST_FILE: Final = 200_000_000
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


def read_held(file: Path) -> Mapping[BufferType, int]:
    """Return the most bytes per bank a program held at once.

    The buffers of a program, such as its kernels, are not among them: they stay on the device, so
    that only the first call which runs the program has them. No tensor lies in them.
    """
    return parse_json(read_text(file, most_bytes=_LARGEST_FILE), _held, file=file)


def _held(raw: object) -> Mapping[BufferType, int]:
    nodes = list(nodes_of(_graph(Value(raw))))
    live = _Live(
        {
            whole(node.value.field("counter"))
            for node in nodes
            if node.kind == "buffer" and not _links(node)
        }
    )
    for node in nodes:
        live.add(node)
    return live.most()


def _links(node: Node) -> tuple[int, ...]:
    linked = node.value.optional("connections")
    return () if linked is None else tuple(map(whole, linked.array()))


def _graph(document: Value) -> Value:
    if isinstance(document.raw, list):
        return document
    if isinstance(document.raw, dict):
        return document.field("graph")
    raise document.refusal("a captured graph: a list of nodes, or an object that holds it")


def _place(buffer: Value) -> tuple[int, BufferType]:
    kind = buffer.optional("buffer_type") or buffer.field("type")
    device = buffer.optional("device_id")
    name = kind.raw if isinstance(kind.raw, str) else whole(kind)
    return 0 if device is None else whole(device), buffer_type(name)


class _Live:
    """Tracks allocated buffers node by node, except ``programs``.

    Only releases that report the size per bank can be summed.
    """

    def __init__(self, programs: Container[int]) -> None:
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

    def most(self) -> dict[BufferType, int]:
        return fullest_device(self._most) if self._is_known else {}
