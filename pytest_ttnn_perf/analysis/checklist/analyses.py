"""The analyses of ``ttnn-perf analyze``: how time, bytes and tensors are distributed.

Each adds up what an op table, a report database or the output of tt-lang holds by something that
ops or operands have in common. None judges: that is what rules are for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from math import prod
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.report_calls import allocated_bytes
from pytest_ttnn_perf.analysis.captures.validity import why_invalid
from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of, placed_in
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    NO_MATMULS,
    blocks_in_report,
    blocks_in_table,
    convolutions,
    is_convolution,
    is_matmul,
    program_config,
)
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import whole as whole_number
from pytest_ttnn_perf.analysis.checklist.measurements import NO_IO_TIMES
from pytest_ttnn_perf.analysis.checklist.op_times import (
    device_ops,
    executions,
    gaps_of,
    kernel_ns,
    op_name,
)
from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_OPERANDS,
    is_product,
    operands_of,
    shape_text,
    weights_in_report,
    weights_in_table,
)
from pytest_ttnn_perf.analysis.checklist.residency import (
    activation_operands,
    budget_bytes,
    crossings,
    dram_use,
    operation_name,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, in_dram, size_of
from pytest_ttnn_perf.records.finding import (
    Analysis,
    AnalysisOutcome,
    Figure,
    Input,
    Row,
    Section,
)
from pytest_ttnn_perf.records.ops import Category, category_of, short_code
from pytest_ttnn_perf.records.ttnn_report import BufferType, Reshard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.kernels import Kernel, MeshOperand
    from pytest_ttnn_perf.analysis.checklist.operands import Operand
    from pytest_ttnn_perf.analysis.checklist.residency import Crossing
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Op, OpTable, Signature
    from pytest_ttnn_perf.records.ttnn_report import Operation, Report

_NOTHING: Final = "what there is to look at does not say"
_NO_OPS: Final = "the capture has no op that ran on a device"
_UNKNOWN: Final = "unknown"
_OF_TIME: Final = "of kernel time"
_OF_BYTES: Final = "of operand bytes"


@dataclass(frozen=True, slots=True)
class Numbers:
    """What an analysis has to tell; sections without rows are left out."""

    figures: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """An analysis. ``look`` is asked if one of ``needs`` is there, and may answer why not.

    ``why`` says why nothing else will do, where that is not plain.
    """

    name: str
    title: str
    needs: tuple[Input, ...]
    look: Callable[[Subject], Numbers | Answer]
    why: str = ""

    def analysis(self, subject: Subject) -> Analysis:
        """Return what there is to tell of a subject."""
        if subject.ops is not None and not subject.ops.devices:
            subject = replace(subject, ops=None, absent={**subject.absent, Input.OPS: _NO_OPS})
        numbers = self._numbers(subject)
        if isinstance(numbers, Answer):
            outcome = AnalysisOutcome(numbers.outcome.value)
            return Analysis(self.name, self.title, outcome, numbers.reason)
        of_capture = capture_notes(subject.ops) if subject.ops and Input.OPS in self.needs else ()
        return Analysis(
            self.name,
            self.title,
            figures=numbers.figures,
            sections=tuple(section for section in numbers.sections if section.rows),
            notes=(*numbers.notes, *of_capture),
        )

    def _numbers(self, subject: Subject) -> Numbers | Answer:
        if not any(map(subject.has, self.needs)):
            return Answer.not_measured(self._why_absent(subject))
        numbers = self.look(subject)
        if isinstance(numbers, Answer) or numbers.figures:
            return numbers
        rows = any(each.rows for each in numbers.sections)
        return numbers if rows else Answer.not_measured("; ".join(numbers.notes) or _NOTHING)

    def _why_absent(self, subject: Subject) -> str:
        known = next((each for each in self.needs if each in subject.absent), None)
        if known is not None:
            return subject.absent[known]
        needed = " or ".join(each.value for each in self.needs)
        return f"needs {needed}{self.why and f': {self.why}'}"


def capture_notes(table: OpTable) -> Iterator[str]:
    """Yield notes on a capture that every analysis of it has."""
    on_host = sum(table.columns.host)
    if on_host:
        yield f"{counted(on_host, 'op')} ran on the host: not counted (TTP007)"
    flaw = why_invalid(table)
    if flaw is not None:
        yield f"no time of this capture can be trusted: {flaw}"


class Part(NamedTuple):
    """Something with a weight, called by its label; ``times`` ops, tensors or calls make it up."""

    label: str
    weight: float
    times: int = 1


def _section(
    heading: str,
    parts: Iterable[Part],
    *,
    unit: str,
    of: str,
    whole: float | None = None,
    ranked: bool = True,
) -> Section:
    """Add up the parts of one label; shares are of ``whole`` or else of all parts.

    The heaviest comes first, or if not ``ranked``, what was met first.
    """
    weights: dict[str, float] = {}
    counts: dict[str, int] = {}
    for label, weight, times in parts:
        weights[label] = weights.get(label, 0.0) + weight
        counts[label] = counts.get(label, 0) + times
    total = sum(weights.values()) if whole is None else whole
    labels = sorted(weights, key=lambda label: (-weights[label], label)) if ranked else weights
    rows = tuple(
        Row(label, weights[label], weights[label] / total if total else None, counts[label])
        for label in labels
    )
    return Section(heading, unit, rows, of)


class Group(NamedTuple):
    """A way to group the op table: the kernel time of ops, or of ``only`` some, by a label.

    Shares are of the time of all ops, or by another name of that of those that are grouped.
    """

    heading: str
    label: Callable[[Op], str] = op_name
    only: Callable[[Signature], bool] | None = None
    of: str = _OF_TIME


def _by_time(table: OpTable, *groups: Group) -> Iterator[Section]:
    ops, whole = device_ops(table), kernel_ns(table)
    for heading, label, only, of in groups:
        chosen = (op for op in ops if only is None or only(op.signature))
        parts = (Part(label(op), op.kernel_ns) for op in chosen)
        yield _section(heading, parts, unit="ns", of=of, whole=whole if of == _OF_TIME else None)


def _of_ops(
    *groups: Group, none: str = "", untold: str = _NOTHING
) -> Callable[[Subject], Numbers | Answer]:
    """Return an analysis that groups the op table.

    ``none`` is said where the first group has no op, ``untold`` where none of it has a label.
    """

    def look(subject: Subject) -> Numbers | Answer:
        assert subject.ops is not None
        sections = tuple(_by_time(subject.ops, *groups))
        labels = {row.label for row in sections[0].rows}
        if not labels:
            return Answer.not_applicable(none)
        return Answer.not_measured(untold) if labels == {_UNKNOWN} else Numbers((), sections)

    return look


def _by_bytes(
    heading: str, operands: Iterable[Operand], label: Callable[[Operand], str], of: str = _OF_BYTES
) -> Section:
    parts = (Part(label(each), each.size, each.times) for each in operands)
    return _section(heading, parts, unit="B", of=of)


def _of_operands(
    label: Callable[[Operand], str], more: Callable[[Subject], Iterable[Section]] = lambda _: ()
) -> Callable[[Subject], Numbers | Answer]:
    """Return an analysis that groups what ops take and give: alone, and by op."""

    def look(subject: Subject) -> Numbers | Answer:
        operands, others = operands_of(subject), tuple(more(subject))
        if not operands and not any(each.rows for each in others):
            return Answer.not_measured(NO_OPERANDS)
        unsized = sorted({each.tensor.dtype for each in operands} - set(BYTES))
        return Numbers(
            (),
            (
                _by_bytes("operands", operands, label),
                _by_bytes("ops", operands, lambda each: f"{each.op} {label(each)}"),
                *others,
            ),
            (f"of unknown size: {', '.join(unsized)}",) if unsized else (),
        )

    return look


def _dtype(operand: Operand) -> str:
    return operand.tensor.dtype


def _dtypes(subject: Subject) -> Iterator[Section]:
    weights, heading = None, "weights, each once"
    if subject.report is not None:
        weights = weights_in_report(subject.report)
    if not weights and subject.ops is not None:
        weights, heading = weights_in_table(subject.ops), "weights, alike ones once"
    parts = (Part(each.tensor.dtype, size_of(each.tensor)) for each in weights or ())
    yield _section(heading, parts, unit="B", of="of weight bytes")
    handed_on = activation_operands(subject)
    yield _by_bytes("activations that ops hand on", handed_on, _dtype, "of activation bytes")
    if subject.ops is not None:
        both = Group("matmuls and convolutions", _both_dtypes, is_product, "of their time")
        yield from _by_time(subject.ops, both)


def _both_dtypes(op: Op) -> str:
    return " x ".join(tensor.dtype for tensor in op.signature.inputs[:2]) or _UNKNOWN


def _fidelity(op: Op) -> str:
    return op.fidelity or _UNKNOWN


def _with_weights(op: Op) -> str:
    second = op.signature.inputs[1:2]
    return f"{_fidelity(op)}, {second[0].dtype if second else 'weights unknown'}"


def _memory(operand: Operand) -> str:
    return operand.tensor.memory or _UNKNOWN


def _activations(subject: Subject) -> Iterator[Section]:
    reads = activation_operands(subject)
    yield _by_bytes("activations that ops read", reads, _memory, "of activation bytes")


def _peaks(subject: Subject) -> Iterator[Section]:
    peaks = subject.report.peak_bytes_per_bank if subject.report is not None else {}
    kinds = sorted(peaks, key=lambda kind: kind.value)
    rows = tuple(Row(kind.value, float(peaks[kind])) for kind in kinds)
    yield Section("most alive at one operation, per bank", "B", rows)


def _look_at_padding(subject: Subject) -> Numbers | Answer:
    operands = operands_of(subject)
    tiled = [each for each in operands if each.tensor.layout == "TILE"]
    if not tiled:
        why = "no tensor is in tiles"
        return Answer.not_applicable(why) if operands else Answer.not_measured(NO_OPERANDS)
    wanted = sum(each.times * prod(each.tensor.logical) for each in tiled if each.tensor.logical)
    if not wanted:
        return Answer.not_measured("the capture has no logical shapes")
    extra = [(each, added) for each in tiled if (added := _padding(each)) > 0]
    shapes = (Part(_shapes(each), added, each.times) for each, added in extra)
    ops = (Part(each.op, added, each.times) for each, added in extra)
    of = "of the padding"
    return Numbers(
        (Figure("padding adds", sum(added for _, added in extra) / wanted, "of the elements"),),
        (
            _section("ops", ops, unit="elements", of=of),
            _section("shapes", shapes, unit="elements", of=of),
        ),
    )


def _padding(operand: Operand) -> int:
    tensor = operand.tensor
    if tensor.logical is None:
        return 0
    return operand.times * (prod(tensor.padded) - prod(tensor.logical))


def _shapes(operand: Operand) -> str:
    tensor = operand.tensor
    return f"{operand.op} {shape_text(tensor.logical or ())} in {shape_text(tensor.padded)}"


_MOVES: Final = re.compile(r"reshard|interleaved_?to_?sharded|sharded_?to_?interleaved", re.I)
_WORDS: Final = {
    Reshard.NONE: "no reshard",
    Reshard.EXPLICIT: "asked for",
    Reshard.HIDDEN: "hidden inside another operation",
    Reshard.UNKNOWN: _UNKNOWN,
}


def _look_at_reshards(subject: Subject) -> Numbers | Answer:
    sections: list[Section] = []
    if subject.ops is not None:
        groups = (Group("ways", _way_of_move, _moves), Group("ops", op_name, _moves))
        sections += _by_time(subject.ops, *groups)
    if subject.report is not None:
        sections += _reshards_of(subject.report)
    if not any(each.rows for each in sections):
        return Answer.not_applicable("no op only cuts tensors anew")
    return Numbers((), tuple(sections))


def _moves(signature: Signature) -> bool:
    return _MOVES.search(signature.op) is not None


def _way_of_move(op: Op) -> str:
    inputs, outputs = op.signature.inputs, op.signature.outputs
    return f"{inputs[0].memory} to {outputs[0].memory}" if inputs and outputs else _UNKNOWN


def _reshards_of(report: Report) -> Iterator[Section]:
    """Yield what a report tells; it knows no times."""
    kinds = (Part(_WORDS[each.reshard], 1) for each in report.operations)
    yield _section("operations of the report", kinds, unit="operations", of="of operations")
    moves = tuple(
        Row(f"{operation_name(report, each)}, {_WORDS[each.reshard]}", 1.0)
        for each in report.operations
        if each.reshard in {Reshard.EXPLICIT, Reshard.HIDDEN}
    )
    yield Section("reshards of the report", "operations", moves)


#: What gaps are called up to how many nanoseconds.
_LENGTHS: Final = {
    "below 1 us": 1e3,
    "1 to 10 us": 1e4,
    "10 to 100 us": 1e5,
    "100 us to 1 ms": 1e6,
    "1 ms and more": float("inf"),
}


def _look_at_host_overhead(subject: Subject) -> Numbers | Answer:
    table = subject.ops
    assert table is not None
    gaps = gaps_of(subject)
    if isinstance(gaps, str):
        return Answer.not_measured(gaps)
    waits = [(table.op(at), max(table.columns.gap_ns[at] or 0.0, 0.0)) for at in gaps.waits]
    found = [(next(name for name, most in _LENGTHS.items() if ns < most), ns) for _, ns in waits]
    lengths = (Part(*each) for each in sorted(found, key=lambda each: _LENGTHS[each[0]]))
    before = (Part(op_name(op), ns) for op, ns in waits)
    of, at_most = "of the gaps", "" if gaps.replayed else " at most"
    return Numbers(
        (
            Figure(f"devices wait{at_most}", gaps.share, "of the time"),
            Figure("waited, all devices", gaps.waited_ns, "ns"),
            Figure("worked, all devices", gaps.worked_ns, "ns"),
        ),
        (
            _section("lengths of gaps", lengths, unit="ns", of=of, ranked=False),
            _section("waits before", before, unit="ns", of=of),
        ),
        (
            f"counted in {gaps.place}, without the gap before the first op of each",
            *((gaps.caveat,) if gaps.caveat else ()),
        ),
    )


def _look_at_trace(subject: Subject) -> Numbers:
    table = subject.ops
    assert table is not None
    times = table.columns.kernel_ns
    repeated = (
        Row(
            what.rpartition(", ")[0],
            median(sum(times[at] for at in run.places) for run in runs),
            count=len(runs),
        )
        for what, runs in sorted(executions(table).items())
    )
    return Numbers(
        (),
        (
            *_by_time(table, Group("ops", _origin)),
            Section("executions, median time of one", "ns", tuple(repeated)),
        ),
    )


def _origin(op: Op) -> str:
    return "not traced" if op.trace is None else f"trace {op.trace}, device {op.device}"


def _look_at_queues(subject: Subject) -> Numbers | Answer:
    assert subject.report is not None
    crossing = crossings(subject.report)
    if not crossing:
        return Answer.not_applicable("the report has no transfer between host and device")
    tensors = (Part(str(each), each.sent) for each in crossing)
    return Numbers(
        (),
        (
            _ways("ways", crossing),
            _section("transfers", tensors, unit="B", of="of the bytes"),
        ),
        (f"times of transfers: not measured: {NO_IO_TIMES}",),
    )


def _ways(heading: str, transfers: Iterable[Crossing]) -> Section:
    parts = (
        Part(
            f"{'to the host' if each.outward else 'to the device'}, queue "
            f"{_UNKNOWN if each.queue is None else each.queue}",
            each.sent,
        )
        for each in transfers
    )
    return _section(heading, parts, unit="B", of="of the bytes")


def _look_at_overlap(subject: Subject) -> Numbers | Answer:
    report = subject.report
    assert report is not None
    programs = [(op, queue) for op in report.operations for queue in op.queues]
    if not programs:
        why = (
            "no program gives its command queue; measure with ttnn_perf.measure_io_overlap instead"
        )
        return Answer.not_measured(why)
    transfers = crossings(report)
    queues = {queue for _, queue in programs} | {t.queue for t in transfers if t.queue is not None}
    by_queue = (Part(f"queue {queue}", 1) for _, queue in programs)
    calls = (Part(f"queue {queue}, {op.name}", 1) for op, queue in programs)
    return Numbers(
        (Figure("command queues in use", len(queues), "queues"),),
        (
            _section("programs", by_queue, unit="programs", of="of programs"),
            _section("calls", calls, unit="programs", of="of programs"),
            _ways("transfers", transfers),
        ),
        (f"whether transfers and programs overlap: not measured: {NO_IO_TIMES}",),
    )


_SWITCH: Final = {True: "on", False: "off", None: _UNKNOWN}


def _look_at_conv(subject: Subject) -> Numbers | Answer:
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    blocks = () if subject.report is None else blocks_in_report(subject.report)
    if subject.ops is not None:
        blocks = blocks_in_table(subject.ops)
    labels = {
        "sharding": [each.sharding or _UNKNOWN for each in listed],
        "activation double buffer": [_SWITCH[each.act_double_buffer] for each in listed],
        "weight double buffer": [_SWITCH[each.weights_double_buffer] for each in listed],
        "act_block_h": [
            f"{each.rows} of {each.most_rows} rows" if each.is_known else _UNKNOWN
            for each in blocks
        ],
    }
    sections = [
        _section(
            heading, (Part(label, 1) for label in own), unit="convolutions", of="of convolutions"
        )
        for heading, own in labels.items()
    ]
    if subject.ops is not None:
        sections += _by_time(subject.ops, Group("convolutions", op_name, is_convolution))
    return Numbers((), tuple(sections))


def _config(op: Op) -> str:
    found = program_config(op)
    if found is None:
        return _UNKNOWN
    return (found or "none").rpartition("::")[2].removesuffix("ProgramConfig")


def _inner(op: Op) -> str:
    tiles = whole_number(op.attributes, "in0_block_w", "K_block_size")
    return _UNKNOWN if tiles is None else counted(tiles, "tile")


def _category(op: Op) -> str:
    return category_of(op.signature.op).value


def _is_collective(signature: Signature) -> bool:
    return category_of(signature.op) is Category.COLLECTIVE


def _device(op: Op) -> str:
    return f"device {op.device}"


def _look_at_devices(subject: Subject) -> Numbers:
    assert subject.ops is not None
    devices, apart, collectives = _by_time(
        subject.ops,
        Group("devices", _device),
        Group(
            "devices without collectives", _device, lambda one: not _is_collective(one),
            "of such time",
        ),
        Group("collectives", op_name, _is_collective),
    )  # fmt: skip
    return Numbers((), (devices, *((apart, collectives) if collectives.rows else ())))


def _cores(op: Op) -> str:
    return _UNKNOWN if op.cores is None else counted(op.cores, "core")


def _look_at_cores(subject: Subject) -> Numbers | Answer:
    untold = "the capture does not say how many cores ops ran on"
    kernels = kernels_of(subject.kernels) if subject.kernels is not None else untold
    known = [op for op in device_ops(subject.ops) if op.cores] if subject.ops is not None else []
    if not known and isinstance(kernels, str):
        return Answer.not_measured(kernels)
    available, time = _available(subject), sum(op.kernel_ns for op in known)
    figures = []
    if available and time:
        used = sum((op.cores or 0) * op.kernel_ns for op in known) / (available * time)
        figures = [Figure("cores in use, all ops, weighted by time", used, "of cores")]
    figures += [Figure("cores available", available, "cores")] if available else []
    return Numbers(
        tuple(figures),
        (
            *(_by_time(subject.ops, Group("cores", _cores)) if subject.ops is not None else ()),
            *(_kernels(kernels) if not isinstance(kernels, str) else ()),
        ),
    )


def _available(subject: Subject) -> int:
    """Return the cores that there are, as the table or else a report tells; 0 where neither."""
    if subject.ops is not None and subject.ops.available_cores:
        return subject.ops.available_cores
    devices = subject.report.devices if subject.report is not None else ()
    return max((device.compute_cores or 0 for device in devices), default=0)


def _kernels(kernels: Iterable[Kernel]) -> Iterator[Section]:
    parts = (
        Part(f"{each}, {counted(each.program.cores, 'core')}", each.program.duration.cycles)
        for each in kernels
    )
    yield _section("kernels", parts, unit="cycles", of=_OF_TIME)


_OF_BANDWIDTH: Final = "of the DRAM bandwidth"
_ESTIMATE: Final = (
    "an estimate: each operand in DRAM counts once, and none of those that ops read a part of"
)


def _look_at_dram(subject: Subject) -> Numbers | Answer:
    table = subject.ops
    operands = operands_of(subject) if table is not None else ()
    kernels = kernels_of(subject.kernels) if subject.kernels is not None else NO_OPERANDS
    if not operands and isinstance(kernels, str):
        return Answer.not_measured(kernels)
    use = dram_use(table) if table is not None else None
    notes: tuple[str, ...] = ()
    if table is not None and operands:
        arch = table.arch or "an unnamed architecture"
        unknown = f"what part of the DRAM bandwidth of {arch} ops use is unknown"
        notes = (unknown if use is None else _ESTIMATE,)
    stored = (each for each in operands if in_dram(each.tensor))
    return Numbers(
        () if use is None else (Figure("bandwidth in use, weighted by time", use, _OF_BANDWIDTH),),
        (
            *(_bandwidth(table) if table is not None and use is not None else ()),
            _by_bytes("operands in DRAM", stored, lambda each: each.op, "of such bytes"),
            *(_kernel_traffic(kernels) if not isinstance(kernels, str) else ()),
        ),
        notes,
    )


def _bandwidth(table: OpTable) -> Iterator[Section]:
    """Yield what part of the bandwidth ops use while they run."""
    places: dict[str, list[int]] = defaultdict(list)
    for at, number in enumerate(table.columns.signature):
        if not table.columns.host[at]:
            places[short_code(table.signatures[number].op)].append(at)
    uses = {code: (dram_use(table.select(each)) or 0.0) for code, each in places.items()}
    ranked = sorted(uses, key=lambda code: (-uses[code], code))
    rows = tuple(Row(code, uses[code], uses[code], len(places[code])) for code in ranked)
    yield Section("bandwidth while ops run", _OF_BANDWIDTH, rows, _OF_BANDWIDTH)


def _kernel_traffic(kernels: Sequence[Kernel]) -> Iterator[Section]:
    ways = (
        (f"{kernel}, {way}", moved)
        for kernel in kernels
        for way, moved in (
            ("read", kernel.program.dram_read),
            ("written", kernel.program.dram_write),
        )
    )
    parts = (Part(name, moved.size.bytes, moved.transfers or 0) for name, moved in ways)
    yield _section("bytes that kernels move", parts, unit="B", of="of such bytes")
    rates = ((kernel, kernel.program.bandwidth_gb_s) for kernel in kernels)
    rows = tuple(Row(str(kernel), rate) for kernel, rate in rates if rate is not None)
    yield Section("effective bandwidth of kernels", "GB/s", rows)


def _look_at_bottlenecks(subject: Subject) -> Numbers | Answer:
    kernels = kernels_of(subject.kernels) if subject.kernels is not None else ""
    if subject.ops is None and isinstance(kernels, str):
        return Answer.not_measured(kernels)
    groups = (
        Group("kinds of work", _category),
        Group("op codes", lambda op: short_code(op.signature.op)),
        Group("ops"),
    )
    return Numbers(
        (),
        (
            *(_by_time(subject.ops, *groups) if subject.ops is not None else ()),
            *(_kernels(kernels) if not isinstance(kernels, str) else ()),
        ),
    )


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
            _section("placements", kinds, unit="B", of=of),
            _section("tensors", each, unit="B", of=of),
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


_AT_LEAST: Final = (
    "circular buffers are not given by {} of {}: programs from the cache give none, and dataflow "
    "buffers are not captured; there is less free than what is shown"
)


def _look_at_l1(subject: Subject) -> Numbers | Answer:
    report = subject.report
    assert report is not None
    budget = budget_bytes(report)
    if budget is None:
        return Answer.not_measured("the report does not say how much L1 a core has")
    running = [each for each in report.operations if each.device_operations]
    if not running:
        return Answer.not_measured("the report does not say what ran inside its operations")
    names = [operation_name(report, each) for each in running]
    tensors = [_fullest(each) for each in running]
    circular = [each.cb_bytes_per_core or 0 for each in running]
    used = [sum(both) for both in zip(tensors, circular, strict=True)]
    by_core = {
        f"{name}, core {x}-{y}": held
        for name, each in zip(names, running, strict=True)
        for (x, y), held in sorted(each.l1_by_core.items())
    }
    parts = {
        "in use on the fullest core": zip(names, used, strict=True),
        "tensors, on the fullest core": zip(names, tensors, strict=True),
        "circular buffers, on the fullest core": zip(names, circular, strict=True),
        "tensors by core": by_core.items(),
    }
    silent = sum(each.cb_bytes_per_core is None for each in running)
    note = _AT_LEAST.format(silent, counted(len(running), "operation"))
    most = max(used)
    return Numbers(
        (
            Figure(f"most in use, at {running[used.index(most)].name}", most, "B"),
            Figure("left free there", max(budget - most, 0), "B"),
            Figure("L1 of a core for tensors and circular buffers", budget, "B"),
        ),
        tuple(
            _section(
                heading, (Part(*one) for one in own if one[1]), unit="B", of="of L1", whole=budget
            )
            for heading, own in parts.items()
        ),
        (note,) if silent else (),
    )


def _fullest(operation: Operation) -> int:
    """Return what tensors take of the L1 of the core that holds most of them."""
    by_core = operation.l1_by_core
    return max(by_core.values()) if by_core else operation.bytes_per_bank.get(BufferType.L1, 0)


_BOTH: Final = (Input.OPS, Input.REPORT)
_OF_PRODUCTS: Final = "of matmul and conv time"
_KINDS: Final = (
    Kind("dtype", "data formats of what ops take and give", _BOTH, _of_operands(_dtype, _dtypes)),
    Kind(
        "fidelity",
        "math fidelity of matmuls and convolutions",
        (Input.OPS,),
        _of_ops(
            Group("fidelity", _fidelity, is_product, _OF_PRODUCTS),
            Group("fidelity and weights", _with_weights, is_product, _OF_PRODUCTS),
            Group("ops", lambda op: f"{_fidelity(op)} {op_name(op)}", is_product, _OF_PRODUCTS),
            none="no matmul and no convolution ran",
            untold="no matmul or convolution gives its fidelity",
        ),
    ),
    Kind(
        "layout", "layouts of what ops take and give", _BOTH,
        _of_operands(lambda each: each.tensor.layout),
    ),
    Kind("padding", "padding of tiled tensors", _BOTH, _look_at_padding),
    Kind(
        "sharding", "memory layouts of operands and activations", _BOTH,
        _of_operands(_memory, _activations),
    ),
    Kind("reshards", "ops that only cut tensors anew", _BOTH, _look_at_reshards),
    Kind(
        "memory", "where tensors lie, and how much is alive at once", _BOTH,
        _of_operands(lambda each: _memory(each).partition("_")[0], _peaks),
    ),
    Kind(
        "host-overhead", "how long devices wait for their next op", (Input.OPS,),
        _look_at_host_overhead,
    ),
    Kind("trace", "what runs from a trace, and its replays", (Input.OPS,), _look_at_trace),
    Kind(
        "queues", "transfers between host and device, and their command queues", (Input.REPORT,),
        _look_at_queues, "op tables have no transfers or command queues",
    ),
    Kind("conv", "sharding, blocks, buffers and times of convolutions", _BOTH, _look_at_conv),
    Kind(
        "matmul",
        "program configs, blocks and times of matmuls",
        (Input.OPS,),
        _of_ops(
            Group("matmuls", op_name, is_matmul),
            Group("program config", _config, is_matmul, "of matmul time"),
            Group("in0_block_w", _inner, is_matmul, "of matmul time"),
            none=NO_MATMULS,
        ),
    ),
    Kind("devices", "kernel time by device, and collectives", (Input.OPS,), _look_at_devices),
    Kind(
        "cores", "cores that ops and kernels run on", (Input.OPS, Input.KERNELS), _look_at_cores
    ),
    Kind("dram", "traffic between DRAM and cores", (Input.OPS, Input.KERNELS), _look_at_dram),
    Kind(
        "bottlenecks", "where the time of a program goes", (Input.OPS, Input.KERNELS),
        _look_at_bottlenecks,
    ),
    Kind(
        "mesh", "what is replicated on a mesh and what is sharded", (Input.REPORT,), _look_at_mesh
    ),
    Kind("l1", "what is in L1 at each operation, and on each core", (Input.REPORT,), _look_at_l1),
    Kind(
        "overlap", "command queues of programs and transfers", (Input.REPORT,), _look_at_overlap,
        "no row of an op table is a transfer, and none names its command queue",
    ),
)  # fmt: skip
ANALYSES: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _KINDS}
