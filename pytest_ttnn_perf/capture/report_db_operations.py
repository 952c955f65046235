"""The operations of a report database, gathered from the tables that speak of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import DecodeError, InputError
from pytest_ttnn_perf._support.json_text import loads
from pytest_ttnn_perf.capture.report_db_graph import (
    Inside,
    fidelity_in,
    fullest_device,
    nodes_of,
    reshard_of,
)
from pytest_ttnn_perf.capture.report_db_text import buffer_type, conv_of
from pytest_ttnn_perf.model.encoding.value import Value
from pytest_ttnn_perf.model.report import BufferType, Operation, Reshard

if TYPE_CHECKING:
    from pytest_ttnn_perf.capture.report_db_graph import Work
    from pytest_ttnn_perf.capture.report_db_tables import Tables

#: What an argument longer than this begins with; a tensor may print all its values.
LONGEST_ARGUMENT: Final = 20_000
#: The graph of one operation takes some hundred kilobytes.
LONGEST_GRAPH: Final = 32_000_000


@dataclass(slots=True)
class _Parts:
    """What was found of an operation so far."""

    id: int
    name: str
    duration_s: float | None
    arguments: dict[str, str] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    inside: Inside | None = None
    buffers: Counter[tuple[int, BufferType]] = field(default_factory=Counter)

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
            raise InputError(tables.file, f"operations: operation {identity} stands twice")
        if duration is not None and duration < 0:
            raise row.refusal("duration", "seconds")
        parts[identity] = _Parts(identity, row.text("name") or "", duration)
    _add_arguments(tables, parts)
    _add_tensors(tables, parts)
    _add_buffers(tables, parts)
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
            raise InputError(tables.file, f"{place}: {_problem(cause)}") from cause


def _problem(cause: DecodeError | ValueError) -> str:
    return str(cause) if isinstance(cause, DecodeError) else f"not valid JSON: {cause}"
