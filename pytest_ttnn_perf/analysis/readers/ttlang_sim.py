"""Traces of tt-lang's simulator: their counters, and how to write one."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from contextlib import contextmanager
from importlib import import_module
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.analysis.readers.ttlang import (
    SimBuffer,
    SimCounters,
    SimOperation,
    SimTensor,
    SimUse,
)
from pytest_ttnn_perf.core.codec import Value
from pytest_ttnn_perf.core.errors import DecodeError, InputError
from pytest_ttnn_perf.core.files import loads, reading, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


#: The event that ``sim_trace`` adds for each operation.
OPERATION_FACTS: Final = "operation_facts"
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
        self._operations: list[_Operation] = []

    def add(self, event: Value) -> None:
        tick, name = event.field("tick").integer(), event.field("event").string()
        if name == OPERATION_FACTS:
            if self._operations:
                self._operations[-1].facts = event
            return
        self._counters["events"] += 1
        if name == "operation_start":
            if not self._open_nodes:
                self._counters["operations"] += 1
                self._last_tick = 0
                self._operations.append(_Operation())
            self._open_nodes.add(event.field("node").integer())
            self._operations[-1].nodes += 1
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
        if self._operations and (event.optional("kernel") is not None):
            self._operations[-1].add(name, event)

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
        operations = tuple(operation.record() for operation in self._operations)
        # Of all operations, as the other counters are.
        self._counters["nodes_working"] = sum(one.nodes_working for one in operations)
        flights = [one.in_flight for one in operations if one.in_flight is not None]
        self._counters["copies_in_flight"] = max(flights, default=0)
        return SimCounters(dict(self._counters), tuple(tensors), operations)


class _Operation:
    """Collects what one call of an operation does, node by node."""

    def __init__(self) -> None:
        self.nodes = 0
        self.facts: Value | None = None
        self._taken: Counter[str] = Counter()
        self._buffers: dict[tuple[str, str], SimBuffer] = {}
        self._flying: Counter[str] = Counter()
        self._most: Counter[str] = Counter()
        self._read_by: dict[str, set[str]] = defaultdict(set)
        self._moved: Counter[tuple[str, str]] = Counter()
        self._copies = 0

    def add(self, name: str, event: Value) -> None:
        thread = event.field("kernel").string()
        node = thread.partition("-")[0]
        if name.startswith("dfb_") and event.optional("occupied") is not None:
            key = node, event.field("dfb").string()
            old, tiles = self._buffers.get(key, SimBuffer(0)), _count(event, "tiles")
            self._buffers[key] = old._replace(
                tiles=max(old.tiles, tiles),
                blocks=old.blocks + (name == "dfb_push"),
                fullest=max(old.fullest, _count(event, "occupied")),
            )
        if name == "dfb_wait_end":
            self._taken[node] += _count(event, "tiles")
        tensor, way = event.optional("tensor"), event.optional("direction")
        if tensor is None or way is None or name not in {"copy_start", "copy_end"}:
            return
        if name == "copy_end":
            self._copies += 1
            self._moved[tensor.string(), way.string()] += _count(event, "tiles")
        if way.string() == "read":
            self._read_by[thread].add(tensor.string())
            self._flying[thread] += 1 if name == "copy_start" else -1
            self._most[thread] = max(self._most[thread], self._flying[thread])

    def record(self) -> SimOperation:
        by_node: dict[str, list[SimBuffer]] = defaultdict(list)
        for (node, _), buffer in self._buffers.items():
            by_node[node].append(buffer)
        # The node that works most stands for all.
        fullest = max(by_node.values(), key=lambda own: sum(b.blocks for b in own), default=[])
        several = [self._most[t] for t, names in self._read_by.items() if len(names) > 1]
        facts = self.facts
        return SimOperation(
            None if facts is None else facts.field("name").string(),
            (*self._taken.values(), *(0 for _ in range(self.nodes - len(self._taken)))),
            self._copies,
            sum(self._moved.values()),
            min(several, default=None),
            tuple(fullest),
            () if facts is None else tuple(map(_declared, facts.field("buffers").array())),
            () if facts is None else tuple(map(self._use, facts.field("tensors").array())),
            () if facts is None else _extents(facts, "grid"),
            full=facts is not None and facts.field("full").boolean(),
        )

    def _use(self, one: Value) -> SimUse:
        name = one.field("name").string()
        return SimUse(
            name,
            one.field("id").integer(),
            _extents(one, "shape"),
            one.field("dtype").string(),
            _count(one, "tiles"),
            _count(one, "distinct"),
            self._moved[name, "read"],
            self._moved[name, "write"],
        )


def _declared(one: Value) -> SimBuffer:
    shape = _extents(one, "shape")
    name, count = one.field("name").string(), one.field("block_count").integer()
    size = one.field("bytes").integer()
    return SimBuffer(prod(shape), name=name, shape=shape, block_count=count, bytes=size)


def _extents(value: Value, name: str) -> tuple[int, ...]:
    return tuple(extent.integer() for extent in value.field(name).array())


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
    except (ValueError, DecodeError) as cause:
        raise InputError(file, str(cause), line=number) from cause


#: The simulator's function that says in a trace what a copy moves.
_FIELDS: Final = "_copy_trace_fields"


@contextmanager
def sim_trace(file: str | Path) -> Iterator[None]:
    """Trace what the simulator does inside, and write it to a file.

    It is the trace of ``tt-lang-sim --trace``, and a line more for each operation: its grid, its
    dataflow buffers, its tensors, and how many tiles of them it read.
    """
    parts: list[Any] = [
        import_module(f"ttl.sim.{name}") for name in ("context", "copy", "program", "trace")
    ]
    context, copy, program, trace = parts
    events = context.get_context().trace_events
    events.clear()  # those of earlier calls
    operations = _Operations(context.get_context())
    fields, make = getattr(copy, _FIELDS), program.Program
    setattr(copy, _FIELDS, operations.watching(fields))
    program.Program = operations.ending(make)
    trace.set_tracing(trace.ALL_CATEGORIES)
    try:
        yield
    finally:
        trace.set_tracing(frozenset())
        setattr(copy, _FIELDS, fields)
        program.Program = make
        with Path(file).open("w", encoding="utf-8") as lines:
            for event in events:
                if isinstance(event, dict):
                    head: dict[str, object] = event
                else:
                    head = {"tick": event.tick, "kernel": event.kernel, "event": event.event}
                    head |= event.data
                lines.write(json.dumps(head) + "\n")


_TILE: Final = 32


class _Operations:
    """Notes what operations declare, and which tiles they read."""

    def __init__(self, context: Any) -> None:
        self._events: list[Any] = context.trace_events
        self._whole_grid: tuple[int, ...] = context.config.default_full_grid
        self._read: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
        #: They are kept: another one would get the address of one that is gone.
        self._seen: list[object] = []

    def watching(self, fields: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        def watched(source: Any, target: Any) -> dict[str, Any]:
            found = fields(source, target)
            if found.get("direction") == "read":
                origin = getattr(source, "_element_origin", (0,) * len(source.shape))
                self._read[found["tensor"]].add((tuple(origin), tuple(source.shape)))
            return found

        return watched

    def ending(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*functions: Any, **choices: Any) -> Callable[..., None]:
            def run(*arguments: Any, **named: Any) -> None:
                ran = make(*functions, **choices)
                self._read.clear()
                ran(*arguments, **named)
                name = functions[0].__wrapped__.__qualname__.partition(".")[0]
                self._events.append(self._facts(name, ran.context))

            return run

        return made

    def _facts(self, name: str, declared: dict[str, Any]) -> dict[str, Any]:
        buffers = [
            {"name": n, "shape": list(each.shape), "block_count": each.block_count,
             "bytes": each.capacity_bytes}
            for n, each in declared.items() if hasattr(each, "capacity_bytes")
        ]  # fmt: skip
        tensors = [
            {"name": n, "id": self._number(each), "shape": list(each.shape),
             "dtype": str(each.dtype).rpartition(".")[2], "tiles": prod(_in_tiles(each.shape)),
             "distinct": len(self._tiles(n))}
            for n, each in declared.items() if hasattr(each, "layout") and hasattr(each, "dtype")
        ]  # fmt: skip
        head = {"tick": 0, "kernel": None, "event": OPERATION_FACTS, "name": name}
        grid = list(declared["grid"])
        full = tuple(grid) == tuple(self._whole_grid)
        return head | {"grid": grid, "full": full, "buffers": buffers, "tensors": tensors}

    def _number(self, tensor: object) -> int:
        if not any(tensor is other for other in self._seen):
            self._seen.append(tensor)
        return next(at for at, other in enumerate(self._seen) if tensor is other)

    def _tiles(self, name: str) -> set[tuple[int, ...]]:
        found: set[tuple[int, ...]] = set()
        for origin, shape in self._read[name]:
            starts = (*origin[:-2], *(at // _TILE for at in origin[-2:]))
            spans = zip(starts, _in_tiles(shape), strict=True)
            found.update(product(*(range(at, at + length) for at, length in spans)))
        return found


def _in_tiles(shape: Any) -> tuple[int, ...]:
    return (*shape[:-2], *(-(-extent // _TILE) for extent in shape[-2:]))
