"""Analyses: figures and tables."""

from __future__ import annotations

import re
from collections import defaultdict
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Final

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_GRAPHS,
    NO_OPERANDS,
    activation_operands,
    budget_bytes,
    dram_use,
    is_product,
    l1_of_operations,
    operands_of,
    operation_name,
    weights_in_report,
    weights_in_table,
)
from pytest_ttnn_perf.analysis.checklist.products import (
    NO_MATMULS,
    is_convolution,
    is_matmul,
    program_config,
)
from pytest_ttnn_perf.analysis.checklist.savings import (
    device_ops,
    gaps_of,
    kernel_ns,
    op_name,
    ops_like,
)
from pytest_ttnn_perf.analysis.ops.names import between_text, flag, shape_text
from pytest_ttnn_perf.analysis.ops.names import whole as whole_number
from pytest_ttnn_perf.analysis.ops.regions import why_invalid
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, in_dram, size_of
from pytest_ttnn_perf.analysis.readers.report_db import Reshard
from pytest_ttnn_perf.analysis.rules.conv import (
    ACT_BUFFER,
    NO_CONVOLUTIONS,
    WEIGHTS_BUFFER,
    block_rows,
    input_sharding,
)
from pytest_ttnn_perf.analysis.rules.host import crossings
from pytest_ttnn_perf.core.finding import Answer, Input
from pytest_ttnn_perf.core.metric import Kind, Metric
from pytest_ttnn_perf.core.ops import Category
from pytest_ttnn_perf.core.text import counted, duration, unit_for
from pytest_ttnn_perf.gate.rules_on_numbers import NO_IO_TIMES
from pytest_ttnn_perf.report.tables import (
    Fit,
    Listing,
    format_fraction,
    format_value,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.operands import Operand
    from pytest_ttnn_perf.analysis.readers.report_db import Operation, Report
    from pytest_ttnn_perf.core.finding import Subject
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature
    from pytest_ttnn_perf.report.tables import Block

    Look = Callable[[Subject], Iterable["Part"]]


class AnalysisOutcome(Enum):
    """Outcome of an analysis."""

    MEASURED = "MEASURED"
    NOT_MEASURED = "NOT_MEASURED"
    NOT_APPLICABLE = "NOT_APPLICABLE"


class Figure(Struct, frozen=True):
    """One number of the whole; fractions have a unit "of" something."""

    label: str
    value: float
    unit: str


class Row(Struct, frozen=True):
    """One row of a section, made of ``count`` ops, tensors or calls."""

    label: str
    value: float
    share: float | None = None
    count: int = 1


class Section(Struct, frozen=True):
    """Rows in the order in which they are worth reading."""

    heading: str
    unit: str
    rows: tuple[Row, ...]
    of: str = ""


class Analysis(Struct, frozen=True, rename={"name": "analysis"}):
    """The result of an analysis; ``reason`` says why it is empty."""

    name: str
    title: str
    outcome: AnalysisOutcome = AnalysisOutcome.MEASURED
    reason: str | None = None
    figures: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()


#: A part of a result: numbers, a note on them, or the answer if there are no numbers.
Part = Figure | Section | str | Answer


class AnalysisKind(Struct, frozen=True):
    """An analysis, for which one of ``needs`` has to be there."""

    name: str
    title: str
    needs: tuple[Input, ...]
    look: Look

    def analysis(self, subject: Subject) -> Analysis:
        """Analyse a subject; empty sections are left out."""
        if subject.ops is not None and not subject.ops.devices:
            no_ops = "the capture has no op that ran on a device"
            subject = replace(subject, ops=None, absent={**subject.absent, Input.OPS: no_ops})
        if any(map(subject.has, self.needs)):
            parts = list(self.look(subject))
        else:
            needed = " or ".join(each.value for each in self.needs)
            reasons = [subject.absent[each] for each in self.needs if each in subject.absent]
            parts = [Answer.not_measured(next(iter(reasons), f"needs {needed}"))]
        figures = tuple(each for each in parts if isinstance(each, Figure))
        sections = tuple(each for each in parts if isinstance(each, Section) and each.rows)
        notes = [each for each in parts if isinstance(each, str)]
        if not figures and not sections:
            reason = "; ".join(notes) or "what there is to look at does not say"
            answers = (each for each in parts if isinstance(each, Answer))
            answer = next(answers, Answer.not_measured(reason))
            outcome = AnalysisOutcome(answer.outcome.value)
            return Analysis(self.name, self.title, outcome, answer.reason)
        if subject.ops is not None and Input.OPS in self.needs:
            notes += capture_notes(subject.ops)
        outcome = AnalysisOutcome.MEASURED
        return Analysis(self.name, self.title, outcome, None, figures, sections, tuple(notes))


#: All analyses, in the order in which they are listed: that of this file.
ANALYSES: Final[dict[str, AnalysisKind]] = {}


def _analysis(name: str, title: str, *needs: Input) -> Callable[[Look], None]:
    """Make an analysis of the function that looks at a subject."""

    def make(look: Look) -> None:
        ANALYSES[name] = AnalysisKind(name, title, needs, look)

    return make


def capture_notes(table: OpTable) -> Iterator[str]:
    """Yield notes on a capture that every analysis of it has."""
    on_host = sum(table.columns.host)
    if on_host:
        yield f"{counted(on_host, 'op')} ran on the host: not counted (TTP007)"
    flaw = why_invalid(table)
    if flaw is not None:
        yield f"no time of this capture can be trusted: {flaw}"


_UNKNOWN: Final = "unknown"
_OF_TIME: Final = "of kernel time"


def _section(
    heading: str, rows: Iterable[Row], unit: str, of: str, whole: float | None = None
) -> Section:
    """Sum rows by label; shares are of ``whole`` or all."""
    values: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        values[row.label] += row.value
        counts[row.label] += row.count
    total = sum(values.values()) if whole is None else whole
    summed = tuple(
        Row(label, value, value / total if total else None, counts[label])
        for label, value in sorted(values.items(), key=lambda each: (-each[1], each[0]))
    )
    return Section(heading, unit, summed, of)


def _counts(heading: str, labels: Iterable[str], unit: str) -> Section:
    return _section(heading, (Row(label, 1) for label in labels), unit, f"of {unit}")


def _by_time(
    subject: Subject,
    heading: str,
    label: Callable[[Op], str] = op_name,
    only: Callable[[Signature], bool] = lambda _: True,
    of: str = _OF_TIME,
) -> Section:
    """Group the kernel time of ops, or ``only`` of some."""
    if subject.ops is None:
        return Section(heading, "ns", ())
    rows = (Row(label(op), op.kernel_ns) for op in device_ops(subject.ops) if only(op.signature))
    return _section(heading, rows, "ns", of, kernel_ns(subject.ops) if of == _OF_TIME else None)


def _by_bytes(
    heading: str, operands: Iterable[Operand], label: Callable[[Operand], str], of: str
) -> Section:
    rows = (Row(label(each), each.size, count=each.times) for each in operands)
    return _section(heading, rows, "B", of)


def _by_operands(
    subject: Subject, label: Callable[[Operand], str], *others: Section
) -> Iterator[Part]:
    """Group what ops take and give: alone, and by op."""
    operands, of = operands_of(subject), "of operand bytes"
    if not operands:
        yield Answer.not_measured(NO_OPERANDS)
    yield _by_bytes("operands", operands, label, of)
    yield _by_bytes("ops", operands, lambda each: f"{each.op} {label(each)}", of)
    yield from others
    unsized = sorted({each.tensor.dtype for each in operands} - set(BYTES))
    if unsized:
        yield f"of unknown size: {', '.join(unsized)}"


@_analysis("dtype", "data formats of what ops take and give", Input.OPS, Input.REPORT)
def _dtype(subject: Subject) -> Iterator[Part]:
    def dtype(operand: Operand) -> str:
        return operand.tensor.dtype

    def both_dtypes(op: Op) -> str:
        return " x ".join(tensor.dtype for tensor in op.signature.inputs[:2]) or _UNKNOWN

    weights, heading = None, "weights, each once"
    if subject.report is not None:
        weights = weights_in_report(subject.report)
    if not weights and subject.ops is not None:
        weights, heading = weights_in_table(subject.ops), "weights, alike ones once"
    rows = (Row(each.tensor.dtype, size_of(each.tensor)) for each in weights or ())
    handed_on = activation_operands(subject)
    yield from _by_operands(
        subject,
        dtype,
        _section(heading, rows, "B", "of weight bytes"),
        _by_bytes("activations that ops hand on", handed_on, dtype, "of activation bytes"),
        _by_time(subject, "matmuls and convolutions", both_dtypes, is_product, "of their time"),
    )


_PRODUCT: Final = re.compile(r"matmul|linear|conv", re.IGNORECASE)


@_analysis("fidelity", "math fidelity of matmuls and convolutions", Input.OPS, Input.REPORT)
def _fidelity(subject: Subject) -> Iterator[Part]:
    def fidelity(op: Op) -> str:
        return op.fidelity or _UNKNOWN

    def with_weights(op: Op) -> str:
        second = op.signature.inputs[1:2]
        return f"{fidelity(op)}, {second[0].dtype if second else 'weights unknown'}"

    if subject.ops is None and subject.report is not None:
        calls = [each for each in subject.report.operations if _PRODUCT.search(each.name)]
        told = (f"{each.fidelity or _UNKNOWN} {each.name}" for each in calls)
        yield _counts("fidelity, by calls", told, "calls")
        yield Answer.not_applicable("no matmul and no convolution ran")
        return
    of = "of matmul and conv time"
    section = _by_time(subject, "fidelity", fidelity, is_product, of)
    if not section.rows:
        yield Answer.not_applicable("no matmul and no convolution ran")
    elif all(row.label == _UNKNOWN for row in section.rows):
        yield Answer.not_measured("no matmul or convolution gives its fidelity")
    else:
        yield section
        yield _by_time(subject, "fidelity and weights", with_weights, is_product, of)
        yield _by_time(subject, "ops", lambda op: f"{fidelity(op)} {op_name(op)}", is_product, of)


@_analysis("layout", "layouts of what ops take and give", Input.OPS, Input.REPORT)
def _layout(subject: Subject) -> Iterator[Part]:
    return _by_operands(subject, lambda each: each.tensor.layout)


@_analysis("padding", "padding of tiled tensors", Input.OPS, Input.REPORT)
def _padding(subject: Subject) -> Iterator[Part]:
    operands = operands_of(subject)
    tiled = [each for each in operands if each.tensor.layout == "TILE"]
    known = [(each, each.tensor.logical) for each in tiled if each.tensor.logical is not None]
    wanted = sum(each.times * prod(logical) for each, logical in known)
    if not operands:
        yield Answer.not_measured(NO_OPERANDS)
    elif not tiled:
        yield Answer.not_applicable("no tensor is in tiles")
    elif not wanted:
        yield Answer.not_measured("the capture has no logical shapes")
    else:
        ops, shapes = [], []
        for each, logical in known:
            added = each.times * (prod(each.tensor.padded) - prod(logical))
            if added > 0:
                shape = f"{shape_text(logical)} in {shape_text(each.tensor.padded)}"
                ops.append(Row(each.op, added, count=each.times))
                shapes.append(Row(f"{each.op} {shape}", added, count=each.times))
        useful = (prod(logical) / (prod(each.tensor.padded) or 1) for each, logical in known)
        pairs = zip(known, useful, strict=True)
        takes = sum(each.times * size_of(each.tensor) * (1 - part) for (each, _), part in pairs)
        yield Figure("padding takes", takes, "B")
        yield Figure("padding adds", sum(row.value for row in ops) / wanted, "of the elements")
        yield _section("ops", ops, "elements", "of the padding")
        yield _section("shapes", shapes, "elements", "of the padding")


def _memory(operand: Operand) -> str:
    return operand.tensor.memory or _UNKNOWN


@_analysis("sharding", "memory layouts of operands and activations", Input.OPS, Input.REPORT)
def _sharding(subject: Subject) -> Iterator[Part]:
    reads = activation_operands(subject)
    read = _by_bytes("activations that ops read", reads, _memory, "of activation bytes")
    return _by_operands(subject, _memory, read)


_MOVES: Final = re.compile(r"reshard|interleaved_?to_?sharded|sharded_?to_?interleaved", re.I)
_RESHARDS: Final = {
    Reshard.EXPLICIT: "asked for",
    Reshard.HIDDEN: "hidden inside another operation",
}


@_analysis("reshards", "ops that only cut tensors anew", Input.OPS, Input.REPORT)
def _reshards(subject: Subject) -> Iterator[Part]:
    def moves(signature: Signature) -> bool:
        return _MOVES.search(signature.op) is not None

    def way(op: Op) -> str:
        inputs, outputs = op.signature.inputs, op.signature.outputs
        return f"{inputs[0].memory} to {outputs[0].memory}" if inputs and outputs else _UNKNOWN

    yield Answer.not_applicable("no op only cuts tensors anew")
    yield _by_time(subject, "ways", way, moves)
    yield _by_time(subject, "ops", op_name, moves)
    report = subject.report
    if report is None:
        return
    moved = tuple(
        Row(f"{operation_name(report, each)}, {_RESHARDS[each.reshard]}{_way(report, each)}", 1.0)
        for each in report.operations
        if each.reshard in _RESHARDS
    )
    yield Section("reshards of the report", "operations", moved)


def _way(report: Report, operation: Operation) -> str:
    """Say from which sharding to which, and between which operations."""
    ends = (*operation.inputs[:1], *operation.outputs[:1])
    places = [each.memory for number in ends if (each := report.tensors.get(number))]
    known = [place.removeprefix("L1_") for place in places if place]
    way = f": {' → '.join(known)}" if len(known) == 2 else ""
    names = {each.id: each.name for each in report.operations}
    before = [edge.producer for edge in report.edges if edge.consumer == operation.id]
    after = [edge.consumer for edge in report.edges if edge.producer == operation.id]
    pair = (names.get(before[0]) if before else None, names.get(after[0]) if after else None)
    return f"{way} {between_text({pair: 1})}".rstrip()


@_analysis("memory", "where tensors lie, and how much is alive at once", Input.OPS, Input.REPORT)
def _places(subject: Subject) -> Iterator[Part]:
    peaks = subject.report.peak_bytes_per_bank if subject.report is not None else {}
    peak_of = {kind.value: float(peak) for kind, peak in peaks.items()}
    rows = tuple(Row(*each) for each in sorted(peak_of.items()))
    alive = Section("most alive at one operation, in the fullest bank", "B", rows)
    yield from _by_operands(subject, lambda each: _memory(each).partition("_")[0], alive)
    if rows:
        yield "sizes of operands are of whole devices; what is alive is of one bank"


@_analysis("host-overhead", "how long devices wait for their next op", Input.OPS)
def _host_overhead(subject: Subject) -> Iterator[Part]:
    table, gaps = subject.ops, gaps_of(subject)
    assert table is not None
    if isinstance(gaps, str):
        yield Answer.not_measured(gaps)
        return
    waits = [(table.op(at), max(table.columns.gap_ns[at] or 0.0, 0.0)) for at in gaps.waits]
    yield Figure(f"devices wait{'' if gaps.replayed else ' at most'}", gaps.share, "of the time")
    yield Figure("waited, all devices", gaps.waited_ns, "ns")
    yield Figure("worked, all devices", gaps.worked_ns, "ns")
    before = (Row(op_name(op), ns) for op, ns in waits)
    yield _section("waits before", before, "ns", "of the gaps")
    yield f"counted in {gaps.place}, without the gap before the first op of each"
    if gaps.caveat:
        yield gaps.caveat


@_analysis("trace", "what runs from a trace", Input.OPS)
def _trace(subject: Subject) -> Iterator[Part]:
    def origin(op: Op) -> str:
        return "not traced" if op.trace is None else f"trace {op.trace}, device {op.device}"

    yield _by_time(subject, "ops", origin)


@_analysis("queues", "transfers between host and device, and command queues", Input.REPORT)
def _queues(subject: Subject) -> Iterator[Part]:
    assert subject.report is not None
    transfers = crossings(subject.report)
    yield Answer.not_applicable("the report has no transfer between host and device")
    ways = []
    for each in transfers:
        way = "to the host" if each.outward else "to the device"
        queue = _UNKNOWN if each.queue is None else each.queue
        ways.append(Row(f"{way}, queue {queue}", each.sent))
    tensors = (Row(str(each), each.sent) for each in transfers)
    programs = (f"queue {number}" for op in subject.report.operations for number in op.queues)
    yield _section("ways", ways, "B", "of the bytes")
    yield _section("transfers", tensors, "B", "of the bytes")
    yield _counts("programs", programs, "programs")
    yield f"times of transfers: not measured: {NO_IO_TIMES}"


_SWITCH: Final = {True: "on", False: "off", None: _UNKNOWN}


@_analysis("conv", "sharding, blocks, buffers and times of convolutions", Input.OPS)
def _conv(subject: Subject) -> Iterator[Part]:
    assert subject.ops is not None
    found = ops_like(subject.ops, is_convolution)
    blocks = (block_rows(op) for op in found if input_sharding(op) != "WIDTH")
    heights = (_UNKNOWN if None in pair else "{} of {} rows".format(*pair) for pair in blocks)
    yield Answer.not_applicable(NO_CONVOLUTIONS)
    for heading, labels in (
        ("sharding", (input_sharding(op) or _UNKNOWN for op in found)),
        ("activation double buffer", (_SWITCH[flag(op.attributes, ACT_BUFFER)] for op in found)),
        ("weight double buffer", (_SWITCH[flag(op.attributes, WEIGHTS_BUFFER)] for op in found)),
        ("act_block_h", heights),
    ):
        yield _counts(heading, labels, "convolutions")
    yield _by_time(subject, "convolutions", op_name, is_convolution)


@_analysis("matmul", "program configs, blocks and times of matmuls", Input.OPS)
def _matmul(subject: Subject) -> Iterator[Part]:
    def config(op: Op) -> str:
        found = program_config(op)
        if found is None:
            return _UNKNOWN
        return (found or "none").rpartition("::")[2].removesuffix("ProgramConfig")

    def inner(op: Op) -> str:
        tiles = whole_number(op.attributes, "in0_block_w", "K_block_size")
        return _UNKNOWN if tiles is None else counted(tiles, "tile")

    yield Answer.not_applicable(NO_MATMULS)
    yield _by_time(subject, "matmuls", op_name, is_matmul)
    yield _by_time(subject, "program config", config, is_matmul, "of matmul time")
    yield _by_time(subject, "in0_block_w", inner, is_matmul, "of matmul time")


@_analysis("devices", "kernel time by device, and collectives", Input.OPS)
def _devices(subject: Subject) -> Iterator[Part]:
    def device(op: Op) -> str:
        return f"device {op.device}"

    def is_collective(signature: Signature) -> bool:
        return signature.category is Category.COLLECTIVE

    yield _by_time(subject, "devices", device)
    collectives = _by_time(subject, "collectives", op_name, is_collective)
    if collectives.rows:
        heading, of = "devices without collectives", "of such time"
        yield _by_time(subject, heading, device, lambda one: not is_collective(one), of)
        yield collectives


@_analysis("cores", "cores that ops run on", Input.OPS)
def _cores(subject: Subject) -> Iterator[Part]:
    def cores(op: Op) -> str:
        return _UNKNOWN if op.cores is None else counted(op.cores, "core")

    assert subject.ops is not None
    known = [op for op in device_ops(subject.ops) if op.cores]
    if not known:
        yield Answer.not_measured("the capture does not say how many cores ops ran on")
        return
    devices = subject.report.devices if subject.report is not None else ()
    available = subject.ops.available_cores
    available = available or max((device.compute_cores or 0 for device in devices), default=0)
    time = sum(op.kernel_ns for op in known)
    if available and time:
        used = sum((op.cores or 0) * op.kernel_ns for op in known) / (available * time)
        yield Figure("cores in use, all ops, weighted by time", used, "of cores")
    if available:
        yield Figure("cores available", available, "cores")
    yield _by_time(subject, "cores", cores)


_OF_BANDWIDTH: Final = "of the DRAM bandwidth"
_ESTIMATE: Final = (
    "an estimate: each operand in DRAM counts once, and none of those that ops read a part of"
)


@_analysis("dram", "traffic between DRAM and cores", Input.OPS)
def _dram(subject: Subject) -> Iterator[Part]:
    table, operands = subject.ops, operands_of(subject)
    assert table is not None
    if not operands:
        yield Answer.not_measured(NO_OPERANDS)
        return
    use = dram_use(table)
    if use is None:
        arch = table.arch or "an unnamed architecture"
        yield f"what part of the DRAM bandwidth of {arch} ops use is unknown"
    else:
        yield Figure("bandwidth in use, weighted by time", use, _OF_BANDWIDTH)
        yield _bandwidth(table)
        yield _ESTIMATE
    stored = (each for each in operands if in_dram(each.tensor))
    yield _by_bytes("operands in DRAM", stored, lambda each: each.op, "of such bytes")


def _bandwidth(table: OpTable) -> Section:
    """Return the part of the bandwidth that ops use while they run."""
    places: dict[str, list[int]] = defaultdict(list)
    for at, number in enumerate(table.columns.signature):
        if not table.columns.host[at]:
            places[table.signatures[number].code].append(at)
    rows = []
    for code, own in places.items():
        use = dram_use(table.select(own)) or 0.0
        rows.append(Row(code, use, use, len(own)))
    rows.sort(key=lambda row: (-row.value, row.label))
    return Section("bandwidth while ops run", _OF_BANDWIDTH, tuple(rows), _OF_BANDWIDTH)


@_analysis("bottlenecks", "where the time of a program goes", Input.OPS)
def _bottlenecks(subject: Subject) -> Iterator[Part]:
    yield _by_time(subject, "kinds of work", lambda op: op.signature.category.value)
    yield _by_time(subject, "op codes", lambda op: op.signature.code)
    yield _by_time(subject, "ops")


@_analysis("l1", "what is in L1 at each operation", Input.REPORT)
def _l1(subject: Subject) -> Iterator[Part]:
    report = subject.report
    assert report is not None
    budget, used = budget_bytes(report), l1_of_operations(report)
    if budget is None:
        yield Answer.not_measured("the report does not say how much L1 a core has")
    elif not used:
        yield Answer.not_measured(NO_GRAPHS)
    else:
        rows = [Row(operation_name(report, each), size) for each, size in used]
        most = max(rows, key=lambda row: row.value)
        yield Figure(f"most in use, at {most.label}", most.value, "B")
        yield Figure("left free there", max(budget - most.value, 0), "B")
        yield Figure("L1 of a core for tensors and circular buffers", budget, "B")
        yield _section("tensors and circular buffers", rows, "B", "of L1", budget)
        silent = sum(each.cb_bytes_per_core is None for each, _ in used)
        if silent:
            yield (
                f"circular buffers are not given by {silent} of {counted(len(used), 'operation')}: "
                "programs from the cache give none, and dataflow buffers are not captured; there "
                "is less free than what is shown"
            )


#: Rows of a section that a terminal shows.
_MOST_ROWS: Final = 10
_SIZE: Final = Metric("size", "B", kind=Kind.BYTES)
_HEADINGS: Final = {"ns": "time", "B": "size"}
_FIELDS: Final = (
    *("analysis", "outcome", "section", "label", "value", "unit", "share", "count", "region"),
)


def analysis_listing(analyses: Sequence[tuple[str, Analysis]]) -> Listing:
    """Lay one analysis of several regions out, one below the other.

    Tables show the first rows, JSON and CSV all of them. In JSON the first region stands at the
    top, and all of them in ``regions``.
    """
    lines: list[Block] = []
    rows: list[tuple[object, ...]] = []
    for region, analysis in analyses:
        lines += [""] if lines else []
        lines += [f"region {region}"] if region else []
        lines += _lines(analysis)
        name, outcome = analysis.name, analysis.outcome.value
        rows += ((name, outcome, *cells, region) for cells in _rows(analysis))
    documents = [to_builtins(analysis) | {"region": region} for region, analysis in analyses]
    return Listing(tuple(lines), {**documents[0], "regions": documents}, _FIELDS, tuple(rows))


def _lines(analysis: Analysis) -> Iterator[Block]:
    if analysis.outcome is not AnalysisOutcome.MEASURED:
        yield f"{analysis.outcome.value} {analysis.name}: {analysis.reason}"
        return
    yield f"{analysis.name}: {analysis.title}"
    for figure in analysis.figures:
        yield f"  {figure.label}: {_value_text(figure.value, figure.unit)}"
    for section in analysis.sections:
        yield ""
        yield from _table(section)
    if analysis.notes:
        yield ""
    for note in analysis.notes:
        yield f"note: {note}"


def _table(section: Section) -> Iterator[Block]:
    rows, unit, of = section.rows[:_MOST_ROWS], section.unit, section.of
    columns = [(section.heading, [" ".join(row.label.split()) for row in rows], Fit(least=24))]
    # Counts are shown where they say anything that values do not.
    if any(row.count not in {1, row.value} for row in section.rows):
        columns.append(("count", [str(row.count) for row in rows], Fit(drop=1)))
    if not _is_fraction(unit):
        values = [_value_text(row.value, unit, bare=True) for row in rows]
        columns.append((_HEADINGS.get(unit, unit), values, Fit(drop=1 if of else None)))
    if of:
        columns.append((of, [format_fraction(row.share) for row in rows], Fit()))
    right = frozenset(range(1, len(columns)))
    headings, cells, fits = zip(*columns, strict=True)
    yield table_of(headings, zip(*cells, strict=True), right=right, fits=fits)
    hidden = len(section.rows) - len(rows)
    if hidden:
        yield f"and {hidden} more, which --format json lists"


def _value_text(value: float, unit: str, *, bare: bool = False) -> str:
    """Return a number with its unit; ``bare`` where something else names it."""
    if unit == "B":
        return format_value(_SIZE, value)
    if unit == "ns":
        return duration(value)
    if _is_fraction(unit):
        return format_fraction(value) if bare else f"{format_fraction(value)} {unit}"
    digits = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"
    return digits if bare else f"{digits} {unit_for(value, unit)}"


def _is_fraction(unit: str) -> bool:
    return unit.startswith("of ")


def _rows(analysis: Analysis) -> Iterator[tuple[object, ...]]:
    if analysis.outcome is not AnalysisOutcome.MEASURED:
        yield (None, analysis.reason, None, None, None, None)
    for figure in analysis.figures:
        yield (None, figure.label, figure.value, figure.unit, None, None)
    for section in analysis.sections:
        for row in section.rows:
            yield (section.heading, row.label, row.value, section.unit, row.share, row.count)
