"""Counters of tt-lang's simulator, from its trace."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.readers.ttlang import SimCounters, SimTensor
from pytest_ttnn_perf.core.codec import Value
from pytest_ttnn_perf.core.errors import DecodeError, InputError
from pytest_ttnn_perf.core.files import loads, reading, unpacked

if TYPE_CHECKING:
    from pathlib import Path


#: Where a copy says that it moved tiles from or to.
_PLACES: Final = ("local_l1", "remote_l1", "dram")
_DIRECTIONS: Final = frozenset({"read", "write"})
#: Events that count tiles: the counter of the events, and that of their tiles.
_COUNTED: Final = {
    "dfb_reserve_end": ("dfb_reserves", "dfb_tiles_reserved"),
    "dfb_wait_end": ("dfb_waits", "dfb_tiles_waited"),
    "pipe_send": ("pipe_sends", "pipe_tiles_sent"),
    "pipe_recv": ("pipe_receives", "pipe_tiles_received"),
}
#: Counters that are there even where nothing was counted.
_ALWAYS: Final = (
    "operations", "kernels", "events", "sim_ticks", "sim_stall_ticks",
    *(name for pair in _COUNTED.values() for name in pair),
)  # fmt: skip


def tensor_names() -> tuple[str, ...]:
    moved = [f"{place}_{way}_tiles" for place in _PLACES for way in ("read", "write")]
    return "tensor_reads", "tensor_writes", "tiles_read", "tiles_written", *moved


class Events:
    """Counts the events of a trace.

    Ticks begin at 0 in each operation, so the ticks of a trace are the sum of its operations'.
    Names of buffers are addresses, and change between runs: nothing is counted by them.
    """

    def __init__(self) -> None:
        self._counters: Counter[str] = Counter(dict.fromkeys((*_ALWAYS, *tensor_names()), 0))
        self._tensors: dict[str, Counter[str]] = {}
        self._open_nodes: set[int] = set()
        self._blocked: dict[str, int] = {}
        self._last_tick = 0

    def add(self, event: Value) -> None:
        tick, name = event.field("tick").integer(), event.field("event").string()
        self._counters["events"] += 1
        if name == "operation_start":
            if not self._open_nodes:
                self._counters["operations"] += 1
                self._last_tick = 0
            self._open_nodes.add(event.field("node").integer())
        self._last_tick = max(self._last_tick, tick)
        if name == "operation_end":
            self._open_nodes.discard(event.field("node").integer())
            if not self._open_nodes:
                self._counters["sim_ticks"] += self._last_tick
        elif name == "kernel_start":
            self._counters["kernels"] += 1
        elif name == "kernel_block":
            self._blocked[event.field("kernel").string()] = tick
        elif name == "kernel_unblock":
            since = self._blocked.pop(event.field("kernel").string(), tick)
            self._counters["sim_stall_ticks"] += tick - since
        elif name == "copy_end":
            self._copy(event)
        elif name in _COUNTED:
            events, tiles = _COUNTED[name]
            self._counters[events] += 1
            self._counters[tiles] += _count(event, "tiles")

    def _copy(self, event: Value) -> None:
        tensor, direction = event.optional("tensor"), event.optional("direction")
        if tensor is None or direction is None or direction.string() not in _DIRECTIONS:
            return
        way = direction.string()
        moved = Counter({f"{place}_{way}_tiles": _count(event, place) for place in _PLACES})
        moved[f"tensor_{way}s"] = 1
        moved["tiles_read" if way == "read" else "tiles_written"] = _count(event, "tiles")
        empty = Counter(dict.fromkeys(tensor_names(), 0))
        for counters in (self._counters, self._tensors.setdefault(tensor.string(), empty)):
            counters.update(moved)

    def counters(self) -> SimCounters:
        """Return what was counted; ValueError where an operation has not ended."""
        if self._open_nodes or not self._counters["operations"]:
            message = "the trace is cut: it ends before the operation does"
            raise ValueError(message)
        tensors = (SimTensor(name, dict(own)) for name, own in sorted(self._tensors.items()))
        return SimCounters(dict(self._counters), tuple(tensors))


def _count(event: Value, name: str) -> int:
    value = event.optional(name)
    return 0 if value is None else value.integer()


#: No event is longer: what is, is no trace.
_LONGEST_LINE: Final = 2**16
_NO_TRACE: Final = "no trace of the simulator"


def is_sim_trace(head: str) -> bool:
    first = head.partition("\n")[0]
    return first.startswith('{"tick": ') and '"event": ' in first


def read_sim_trace(file: Path) -> SimCounters:
    """Read a trace: a JSON document per line."""
    events = Events()
    number = 0
    with reading(file), unpacked(file) as stream:
        while line := stream.readline(_LONGEST_LINE):
            number += 1
            if not line.endswith(b"\n"):
                problem = "the file is cut: its last line has no line end"
                if len(line) >= _LONGEST_LINE:
                    problem = f"a line of more than {_LONGEST_LINE:,} bytes: {_NO_TRACE}"
                raise InputError(file, problem, line=number)
            try:
                events.add(Value(loads(line.decode("utf-8"))))
            except (ValueError, DecodeError) as cause:
                problem = f"expected an event of the simulator: {cause}"
                raise InputError(file, problem, line=number) from cause
    if not number:
        raise InputError(file, "no events: no tt-lang operation ran in the simulator")
    try:
        return events.counters()
    except ValueError as cause:
        raise InputError(file, str(cause), line=number) from cause
