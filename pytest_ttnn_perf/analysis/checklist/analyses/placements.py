"""Analyses of what lies and runs where: tensors on a mesh, L1 of the cores, command queues."""

from __future__ import annotations

import re
from collections import Counter
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted, shortened, size
from pytest_ttnn_perf.analysis.captures.report_calls import allocated_bytes
from pytest_ttnn_perf.analysis.checklist.analyses.analysis import Kind, Numbers, Part, section
from pytest_ttnn_perf.analysis.checklist.kernels import placed_in
from pytest_ttnn_perf.analysis.checklist.measurements import NO_IO_TIMES
from pytest_ttnn_perf.analysis.checklist.operands import shape_text, weights_in_report
from pytest_ttnn_perf.analysis.checklist.residency import budget_bytes, crossings, operation_name
from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.records.finding import Figure, Input
from pytest_ttnn_perf.records.ttnn_report import BufferType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.kernels import MeshOperand
    from pytest_ttnn_perf.analysis.checklist.residency import Crossing
    from pytest_ttnn_perf.records.finding import Section, Subject
    from pytest_ttnn_perf.records.ttnn_report import Operation, Report


_MESH: Final = re.compile(r"mesh_shape=MeshShape\(\[([\d, ]+)\]\)")
_UNTOLD: Final = (
    "the report does not say how tensors are placed on the mesh: calls have no arguments, as in a "
    "captured graph, or of a release that does not say"
)


class Placed(NamedTuple):
    """A tensor on a mesh: what it is to the model, how it is spread, and its bytes on a device."""

    role: str
    name: str
    how: str
    bytes: float


def _look_at_mesh(subject: Subject) -> Numbers | Answer:
    assert subject.report is not None
    extents, tensors = _placed(subject.report)
    if not tensors:
        return Answer.not_measured(_UNTOLD)
    devices = prod(extents)
    if devices == 1:
        return Answer.not_applicable("one device: nothing is spread over a mesh")
    of = "of the bytes on a device"
    kinds = (Part(f"{each.role}, {each.how}", each.bytes) for each in tensors)
    each = (Part(f"{one.how}, {one.role} of {one.name}", one.bytes) for one in tensors)
    copied = sum(one.bytes for one in tensors if one.role == "weight" and "dim" not in one.how)
    return Numbers(
        (
            Figure(f"the mesh is {shape_text(extents)}", devices, "devices"),
            Figure("weights that every device has a copy of", copied, "B"),
        ),
        (
            section("placements", kinds, unit="B", of=of),
            section("tensors", each, unit="B", of=of),
        ),
    )


def _placed(report: Report) -> tuple[tuple[int, ...], list[Placed]]:
    """Return the shape of the mesh, and the tensors that arguments name, each once."""
    weights = {weight.key for weight in weights_in_report(report)}
    computed = {edge.tensor for edge in report.edges}
    found: dict[object, Placed] = {}
    extents: tuple[int, ...] = (1,)
    for operation in report.operations:
        for text in operation.arguments.values():
            spread = placed_in(text, operation.name)
            if spread is None:
                continue
            told = _MESH.search(text)
            own = told[1].split(",") if told else [extent for extent, _ in spread.spread]
            extents = max(extents, tuple(map(int, own)), key=prod)
            role = "weight" if spread.tensor in weights else "input"
            role = "activation" if spread.tensor in computed and role == "input" else role
            key = spread.tensor if spread.tensor is not None else text
            found.setdefault(key, _described(report, spread, role, text))
    return extents, list(found.values())


def _described(report: Report, spread: MeshOperand, role: str, text: str) -> Placed:
    record = report.tensors.get(spread.tensor) if spread.tensor is not None else None
    shape = re.search(r"shape=Shape\(\[([\d, ]+)\]\)", text)
    extents = shape[1].replace(", ", "x") if shape else "?"
    dtype = record.dtype if record is not None and record.dtype else ""
    cuts = [f"dim {cut} over {n}" for n, cut in spread.spread if cut is not None and n > 1]
    copies = prod(n for n, cut in spread.spread if cut is None)
    how = f"sharded: {', '.join(cuts)}" if cuts else "replicated"
    how += f", {copies} copies" if cuts and copies > 1 else ""
    name = " ".join(filter(None, [f"{spread.name} {extents}", dtype]))
    return Placed(role, name, how, 0.0 if record is None else allocated_bytes(record))


MESH: Final = Kind(
    "mesh", "what is replicated on a mesh and what is sharded", (Input.REPORT,), _look_at_mesh
)

#: The picture: columns of a bar, most lines, most letters of an operation.
_BAR, _MOST_LINES, _NAME = 32, 40, 22
_LEGEND: Final = "= tensors, c circular buffers, ? unknown, . free"
_AT_LEAST: Final = (
    "circular buffers are not given by {} of {}: programs from the cache give none, and dataflow "
    "buffers are not captured; there is less free than what is shown"
)


class Use(NamedTuple):
    """What an operation leaves of the L1 of the fullest core; ``circular`` is None if not told."""

    operation: Operation
    tensors: int
    circular: int | None

    @property
    def all(self) -> int:
        """What is told to be in use."""
        return self.tensors + (self.circular or 0)


def _look_at_l1(subject: Subject) -> Numbers | Answer:
    report = subject.report
    assert report is not None
    budget = budget_bytes(report)
    if budget is None:
        return Answer.not_measured("the report does not say how much L1 a core has")
    uses = [_use(operation) for operation in report.operations if operation.device_operations]
    if not uses:
        return Answer.not_measured("the report does not say what ran inside its operations")
    fullest = max(uses, key=lambda use: use.all)
    silent = sum(use.circular is None for use in uses)
    note = _AT_LEAST.format(silent, counted(len(uses), "operation"))
    return Numbers(
        (
            Figure(f"most in use, at {fullest.operation.name}", fullest.all, "B"),
            Figure("left free there", max(budget - fullest.all, 0), "B"),
            Figure("L1 of a core for tensors and circular buffers", budget, "B"),
        ),
        tuple(_l1_sections(report, uses, budget)),
        (note,) if silent else (),
        (*_bars(uses, budget), *_grid(uses, budget)),
    )


def _use(operation: Operation) -> Use:
    by_core = operation.l1_by_core
    tensors = max(by_core.values()) if by_core else operation.bytes_per_bank.get(BufferType.L1, 0)
    return Use(operation, tensors, operation.cb_bytes_per_core)


def _l1_sections(report: Report, uses: Sequence[Use], budget: int) -> Iterator[Section]:
    named = [(operation_name(report, use.operation), use) for use in uses]
    parts = {
        "tensors, on the fullest core": [Part(name, use.tensors) for name, use in named],
        "circular buffers, on the fullest core": [
            Part(name, use.circular) for name, use in named if use.circular is not None
        ],
        "free, at most": [Part(name, max(budget - use.all, 0)) for name, use in named],
        "tensors by core": [
            Part(f"{name}, core {x}-{y}", held)
            for name, use in named
            for (x, y), held in sorted(use.operation.l1_by_core.items())
        ],
    }
    for heading, own in parts.items():
        yield section(heading, own, unit="B", of="of L1", whole=budget, ranked=False)


def _bars(uses: Sequence[Use], budget: int) -> Iterator[str]:
    """Yield a bar for each operation; of many, one for the fullest of those side by side."""
    yield f"L1 of the fullest core, {size(budget)}, at each operation"
    yield _LEGEND
    step = -(-len(uses) // _MOST_LINES)
    for at in range(0, len(uses), step):
        use = max(uses[at : at + step], key=lambda one: one.all)
        # What is there shows, however small.
        tensors = min(-(-_BAR * use.tensors // budget), _BAR)
        circular = -(-_BAR * (use.circular or 0) // budget)
        bar = "=" * tensors + ("c" * circular if use.circular is not None else "?")
        free = size(max(budget - use.all, 0))
        name = shortened(use.operation.name.removeprefix("ttnn."), _NAME)
        yield f"{use.operation.id:>5} {name:<{_NAME}} |{bar[:_BAR]:.<{_BAR}}| {free:>9} free"
    if step > 1:
        yield f"each line is the fullest of {step} operations; --format json lists all"


def _grid(uses: Sequence[Use], budget: int) -> Iterator[str]:
    """Yield what part of L1 tensors take on each core, where they take most."""
    told = [use for use in uses if use.operation.l1_by_core]
    if not told:
        return
    most = max(told, key=lambda use: sum(use.operation.l1_by_core.values()))
    held = most.operation.l1_by_core
    columns, rows = (range(max(place[axis] for place in held) + 1) for axis in (0, 1))
    yield ""
    name = shortened(most.operation.name, _NAME)
    yield f"% of L1 that tensors take on each core, at operation {most.operation.id}, {name}:"
    yield "     " + "".join(f"{f'x{x}':>5}" for x in columns)[:75]
    for y in rows:
        cells = (held.get((x, y)) for x in columns)
        shown = "".join(f"{'-' if c is None else f'{100 * c / budget:.1f}':>5}" for c in cells)
        yield f"  y{y:<2}{shown[:75]}"


L1: Final = Kind(
    "l1", "what is in L1 at each operation, and on each core", (Input.REPORT,), _look_at_l1
)

_NO_QUEUES: Final = (
    "no program gives its command queue; measure with ttnn_perf.measure_io_overlap instead"
)
_NO_OVERLAP: Final = f"whether transfers and programs overlap: not measured: {NO_IO_TIMES}"


def _look_at_overlap(subject: Subject) -> Numbers | Answer:
    report = subject.report
    assert report is not None
    programs = [(op, queue) for op in report.operations for queue in op.queues]
    if not programs:
        return Answer.not_measured(_NO_QUEUES)
    transfers = crossings(report)
    queues = {queue for _, queue in programs} | {t.queue for t in transfers if t.queue is not None}
    by_queue = Counter(f"queue {queue}" for _, queue in programs)
    sent = (Part(_transfer_way(each.outward, each.queue), each.sent) for each in transfers)
    ops = (Part(f"queue {queue}, {op.name}", 1) for op, queue in programs)
    return Numbers(
        (Figure("command queues in use", len(queues), "queues"),),
        (
            section(
                "programs", (Part(*each) for each in by_queue.items()), unit="programs",
                of="of programs",
            ),
            section("calls", ops, unit="programs", of="of programs"),
            section("transfers", sent, unit="B", of="of the bytes sent"),
        ),
        (_sharing(programs, transfers), _NO_OVERLAP),
    )  # fmt: skip


def _transfer_way(outward: bool, queue: int | None) -> str:  # noqa: FBT001 (one of two ways)
    way = "to the host" if outward else "to the device"
    return f"{way}, queue {'unknown' if queue is None else queue}"


def _sharing(programs: Sequence[tuple[Operation, int]], transfers: Sequence[Crossing]) -> str:
    """Say whether anything could overlap, as far as queues are told."""
    queues = {queue for _, queue in programs}
    untold = any(transfer.queue is None for transfer in transfers)
    queues |= {transfer.queue for transfer in transfers if transfer.queue is not None}
    if len(queues) > 1:
        return f"{len(queues)} queues are in use: what is on different ones can overlap"
    if untold:
        return "programs are on one queue; on which one transfers are is unknown: pass cq_id"
    return "all is on one queue, where each waits for the one before: nothing can overlap"


OVERLAP: Final = Kind(
    "overlap",
    "command queues of programs and transfers",
    (Input.REPORT,),
    _look_at_overlap,
    why="no row of an op table is a transfer, and none names its command queue",
)
