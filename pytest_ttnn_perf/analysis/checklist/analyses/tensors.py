"""Analyses of tensors: formats, layouts and padding; where they lie, reshards and DRAM traffic."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.analyses.analysis import (
    Kind,
    Part,
    by_bytes,
    by_time,
    section,
    with_rules,
)
from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of
from pytest_ttnn_perf.analysis.checklist.op_times import kernel_ns, op_name, ops_like
from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_OPERANDS,
    Operand,
    Weight,
    operands_of,
    products_in,
    shape_text,
    weights_in_report,
    weights_in_table,
)
from pytest_ttnn_perf.analysis.checklist.residency import (
    activation_operands,
    budget_bytes,
    dram_use,
    has_graphs,
    is_interleaved,
    operation_name,
    used_bytes,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.runner import rule_of
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, in_dram, size_of
from pytest_ttnn_perf.records.finding import Figure, Input, Row, Section
from pytest_ttnn_perf.records.ops import short_code
from pytest_ttnn_perf.records.ttnn_report import Reshard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.analyses.analysis import Numbers
    from pytest_ttnn_perf.analysis.checklist.kernels import Kernel
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Op, OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report


_DTYPE_RULES: Final = {
    "weights wider than bfloat8_b": "TTP101",
    "float32": "TTP102",
    "activations wider than bfloat8_b": "TTP104",
}


def _look_at_dtype(subject: Subject) -> Numbers | Answer:
    operands = operands_of(subject)
    if not operands:
        return Answer.not_measured(NO_OPERANDS)
    unknown = sorted({operand.tensor.dtype for operand in operands} - set(BYTES))
    return with_rules(
        subject,
        _DTYPE_RULES,
        by_bytes("operands", operands, lambda operand: operand.tensor.dtype, of="of operand bytes"),
        by_bytes(
            "ops",
            operands,
            lambda operand: f"{operand.op} {operand.tensor.dtype}",
            of="of operand bytes",
        ),
        *_weights(subject),
        by_bytes(
            "activations that ops hand on",
            activation_operands(subject),
            lambda operand: operand.tensor.dtype,
            of="of activation bytes",
        ),
        *_products(subject),
        notes=(f"of unknown size: {', '.join(unknown)}",) if unknown else (),
    )


def _weights(subject: Subject) -> Iterator[Section]:
    found = frozenset[Weight]()
    heading = "weights, each once"
    if subject.report is not None:
        found = weights_in_report(subject.report)
    if not found and subject.ops is not None:
        found, heading = weights_in_table(subject.ops), "weights, alike ones once"
    parts = (Part(operand.tensor.dtype, size_of(operand.tensor)) for operand in found)
    yield section(heading, parts, unit="B", of="of weight bytes")


def _products(subject: Subject) -> Iterator[Section]:
    if subject.ops is not None:
        ops = [op for op in products_in(subject.ops) if len(op.signature.inputs) > 1]
        yield by_time("matmuls and convolutions", ops, _both_dtypes, of="of their time")


def _both_dtypes(op: Op) -> str:
    first, second, *_ = op.signature.inputs
    return f"{first.dtype} x {second.dtype}"


DTYPE: Final = Kind(
    "dtype", "data formats of what ops take and give", (Input.OPS, Input.REPORT), _look_at_dtype
)
_FIDELITY_OF: Final = "of matmul and conv time"
_OTHERS: Final = (
    "other ops are left out: those that move data report a fidelity that they do not use"
)


def _look_at_fidelity(subject: Subject) -> Numbers | Answer:
    assert subject.ops is not None
    products = list(products_in(subject.ops))
    if not products:
        return Answer.not_applicable("no matmul and no convolution ran")
    if all(op.fidelity is None for op in products):
        return Answer.not_measured("no matmul or convolution gives its fidelity")
    return with_rules(
        subject,
        {"fidelity above what weights need": "TTP103"},
        by_time("fidelity", products, _fidelity, of=_FIDELITY_OF),
        by_time("fidelity and weights", products, _with_weights, of=_FIDELITY_OF),
        by_time("ops", products, lambda op: f"{_fidelity(op)} {op_name(op)}", of=_FIDELITY_OF),
        notes=(*_lower_to_try(products), _OTHERS),
    )


def _lower_to_try(products: Sequence[Op]) -> Iterator[str]:
    """Say how much runs above the fidelity to begin with where weights are of a block format."""
    whole = sum(op.kernel_ns for op in products)
    narrow = [op for op in products if len(op.signature.inputs) > 1 and _has_block_format(op)]
    above = sum(op.kernel_ns for op in narrow if op.fidelity not in {None, "LoFi"})
    if above:
        yield (
            f"{percent(above / whole)} {_FIDELITY_OF} runs above LoFi with weights of bfloat8_b or "
            "bfloat4_b: begin with LoFi there, and raise it where PCC asks for it"
        )


def _has_block_format(op: Op) -> bool:
    return op.signature.inputs[1].dtype in {"BFLOAT8_B", "BFLOAT4_B"}


def _fidelity(op: Op) -> str:
    return op.fidelity or "unknown"


def _with_weights(op: Op) -> str:
    second = op.signature.inputs[1:2]
    return f"{_fidelity(op)}, {second[0].dtype if second else 'weights unknown'}"


FIDELITY: Final = Kind(
    "fidelity", "math fidelity of matmuls and convolutions", (Input.OPS,), _look_at_fidelity
)
_LAYOUT_OF: Final = "of operand bytes"
#: Ops that turn rows into tiles, or tiles into rows.
_CONVERTS: Final = re.compile(r"tilize|to_?layout", re.IGNORECASE)


def _look_at_layout(subject: Subject) -> Numbers:
    rows = [operand for operand in operands_of(subject) if operand.tensor.layout == "ROW_MAJOR"]
    return with_rules(
        subject,
        {"conversions that can go": "TTP203", "in tiles instead of rows": "TTP201"},
        by_bytes(
            "layouts", operands_of(subject), lambda operand: operand.tensor.layout, of=_LAYOUT_OF
        ),
        by_bytes(
            "ops with row-major operands", rows, lambda operand: operand.op, of="of such bytes"
        ),
        *_conversions(subject),
    )


def _conversions(subject: Subject) -> Iterator[Section]:
    if subject.ops is not None:
        ops = ops_like(subject.ops, lambda one: _CONVERTS.search(one.op) is not None)
        yield by_time("conversions", ops, whole=kernel_ns(subject.ops))


LAYOUT: Final = Kind(
    "layout", "layouts of tensors, and conversions", (Input.OPS, Input.REPORT), _look_at_layout
)
_PADDING_UNIT, _PADDING_OF = "elements", "of the padding"


def _look_at_padding(subject: Subject) -> Numbers | Answer:
    answer = rule_of("TTP202").check(subject)
    if answer.value is None:
        return answer
    padded = [operand for operand in operands_of(subject) if _padding(operand) > 0]
    shapes = (Part(_shape(operand), _padding(operand), operand.times) for operand in padded)
    ops = (Part(operand.op, _padding(operand), operand.times) for operand in padded)
    wanted = sum(
        operand.times * prod(operand.tensor.logical)
        for operand in operands_of(subject)
        if operand.tensor.layout == "TILE" and operand.tensor.logical is not None
    )
    adds = sum(map(_padding, padded)) / wanted if wanted else 0.0
    return with_rules(
        subject,
        {"single rows that could be one matrix": "TTP202"} if subject.ops is not None else {},
        section("ops", ops, unit=_PADDING_UNIT, of=_PADDING_OF),
        section("shapes", shapes, unit=_PADDING_UNIT, of=_PADDING_OF),
        figures=(Figure("padding adds", adds, "of the elements"),),
    )


def _padding(operand: Operand) -> int:
    tensor = operand.tensor
    if tensor.layout != "TILE" or tensor.logical is None:
        return 0
    return operand.times * (prod(tensor.padded) - prod(tensor.logical))


def _shape(operand: Operand) -> str:
    tensor = operand.tensor
    return f"{operand.op} {shape_text(tensor.logical or ())} in {shape_text(tensor.padded)}"


PADDING: Final = Kind(
    "padding", "padding of tiled tensors", (Input.OPS, Input.REPORT), _look_at_padding
)


_BUDGET: Final = "L1 of a core for tensors and circular buffers"
_LOWER: Final = "what L1 holds is a lower bound: not every operation gives its circular buffers"


def _look_at_memory(subject: Subject) -> Numbers | Answer:
    operands = operands_of(subject)
    report = subject.report
    if not operands and report is None:
        return Answer.not_measured("the capture does not say where tensors lie")
    budget = budget_bytes(report) if report else None
    running = [each for each in (report.operations if report else ()) if each.device_operations]
    return with_rules(
        subject,
        {"activations in L1 instead of DRAM": "TTP303", "L1 left free": "TTP304"},
        by_bytes("operands", operands, _place, of="of operand bytes"),
        by_bytes("ops", operands, lambda each: f"{each.op} {_place(each)}", of="of operand bytes"),
        *(_alive(report) if report else ()),
        figures=() if budget is None else (Figure(_BUDGET, budget, "B"),),
        notes=(_LOWER,) if any(each.cb_bytes_per_core is None for each in running) else (),
    )


def _place(operand: Operand) -> str:
    return operand.tensor.memory.partition("_")[0] or "unknown"


def _alive(report: Report) -> Iterator[Section]:
    peaks = report.peak_bytes_per_bank
    rows = tuple(
        Row(kind.value, float(peaks[kind])) for kind in sorted(peaks, key=lambda k: k.value)
    )
    yield Section("most alive at one operation, per bank", "B", rows)
    if has_graphs(report):
        running = (each for each in report.operations if each.device_operations)
        parts = (Part(operation_name(report, each), used_bytes(each)) for each in running)
        budget = budget_bytes(report)
        yield section("L1 of a core in use", parts, unit="B", of="of L1", whole=budget or 0)


MEMORY: Final = Kind(
    "memory", "where tensors lie, and how full L1 gets", (Input.OPS, Input.REPORT), _look_at_memory
)
_SHARDING_OF: Final = "of activation bytes"


def _look_at_sharding(subject: Subject) -> Numbers | Answer:
    operands = operands_of(subject)
    if not operands:
        return Answer.not_measured(NO_OPERANDS)
    reads = list(activation_operands(subject))
    whole = sum(each.size for each in reads)
    spread = [each for each in reads if is_interleaved(each.tensor)]
    part = sum(each.size for each in spread) / whole if whole else 0.0
    return with_rules(
        subject,
        {},
        by_bytes("operands", operands, _memory, of="of operand bytes"),
        by_bytes("activations that ops read", reads, _memory, of=_SHARDING_OF),
        section(
            "interleaved activations",
            (Part(each.op, each.size, each.times) for each in spread),
            unit="B",
            of=_SHARDING_OF,
            whole=whole,
        ),
        figures=(Figure("interleaved activations", part, _SHARDING_OF),) if whole else (),
    )


def _memory(operand: Operand) -> str:
    return operand.tensor.memory or "unknown"


SHARDING: Final = Kind(
    "sharding",
    "memory layouts of operands and activations",
    (Input.OPS, Input.REPORT),
    _look_at_sharding,
)
_MOVES: Final = re.compile(r"reshard|interleaved_?to_?sharded|sharded_?to_?interleaved", re.I)
_WORDS: Final = {
    Reshard.NONE: "no reshard",
    Reshard.EXPLICIT: "asked for",
    Reshard.HIDDEN: "hidden inside another operation",
    Reshard.UNKNOWN: "unknown",
}


def _look_at_reshards(subject: Subject) -> Numbers:
    table, report = subject.ops, subject.report
    by_cost = with_rules(
        subject, {"moves that can go": "TTP302"}, *(_costs(table) if table else ())
    )
    if report is None or table is None:
        return replace(
            by_cost, sections=(*by_cost.sections, *(_report_sections(report) if report else ()))
        )
    counted = with_rules(replace(subject, ops=None), {"moves in the report": "TTP302"})
    return replace(
        by_cost,
        figures=(*by_cost.figures, *counted.figures),
        sections=(*by_cost.sections, *_report_sections(report)),
        notes=(*by_cost.notes, *counted.notes),
    )


def _costs(table: OpTable) -> Iterator[Section]:
    ops = ops_like(table, lambda one: _MOVES.search(one.op) is not None)
    whole = kernel_ns(table)
    yield by_time("kinds", ops, lambda op: short_code(op.signature.op), whole=whole)
    yield by_time("ways", ops, _way, whole=whole)
    yield by_time("ops", ops, whole=whole)


def _way(op: Op) -> str:
    inputs, outputs = op.signature.inputs, op.signature.outputs
    return f"{inputs[0].memory} to {outputs[0].memory}" if inputs and outputs else "unknown"


def _report_sections(report: Report) -> Iterator[Section]:
    """Yield what a report tells; it knows no times."""
    operations = report.operations
    kinds = (Part(_WORDS[each.reshard], 1) for each in operations)
    yield section("operations of the report", kinds, unit="operations", of="of operations")
    moves = tuple(
        Row(f"{operation_name(report, each)}, {_WORDS[each.reshard]}", 1.0)
        for each in operations
        if each.reshard in {Reshard.EXPLICIT, Reshard.HIDDEN}
    )
    yield Section("reshards of the report", "operations", moves)


RESHARDS: Final = Kind(
    "reshards", "ops that only cut tensors anew", (Input.OPS, Input.REPORT), _look_at_reshards
)
_OF_BANDWIDTH: Final = "of the DRAM bandwidth"
_ESTIMATE: Final = (
    "an estimate: each operand in DRAM counts once, and none of those that ops read a part of"
)
_UNKNOWN: Final = "what part of the DRAM bandwidth of {} ops use is unknown"
_DRAM_RULES: Final = {
    "activations in L1 instead of DRAM": "TTP303",
    "matmuls that read weights slowly, not DRAM-sharded": "TTP311",
}


def _look_at_dram(subject: Subject) -> Numbers | Answer:
    operands = operands_of(subject) if subject.ops is not None else ()
    kernels = kernels_of(subject.kernels) if subject.kernels is not None else NO_OPERANDS
    if not operands and isinstance(kernels, str):
        return Answer.not_measured(kernels)
    use = dram_use(subject.ops) if subject.ops is not None else None
    stored = [each for each in operands if in_dram(each.tensor)]
    notes: tuple[str, ...] = ()
    if subject.ops is not None and operands:
        unknown = _UNKNOWN.format(subject.ops.arch or "an unnamed architecture")
        notes = (unknown if use is None else _ESTIMATE,)
    return with_rules(
        subject,
        _DRAM_RULES,
        *(_bandwidth(subject.ops) if subject.ops is not None and use is not None else ()),
        by_bytes("operands in DRAM", stored, lambda each: each.op, of="of such bytes"),
        *(_kernel_traffic(kernels) if not isinstance(kernels, str) else ()),
        figures=()
        if use is None
        else (Figure("bandwidth in use, weighted by time", use, _OF_BANDWIDTH),),
        notes=notes,
    )


def _bandwidth(table: OpTable) -> Iterator[Section]:
    """Yield what traffic takes at full bandwidth, and what part of it ops use while they run."""
    places: dict[str, list[int]] = defaultdict(list)
    for at, number in enumerate(table.columns.signature):
        if not table.columns.host[at]:
            places[short_code(table.signatures[number].op)].append(at)
    uses = {code: (dram_use(table.select(each)) or 0.0) for code, each in places.items()}
    times = {c: sum(table.columns.kernel_ns[at] for at in each) for c, each in places.items()}
    busy = (Part(code, use * times[code], len(places[code])) for code, use in uses.items())
    yield section(
        "time at full bandwidth", busy, unit="ns", of="of kernel time", whole=sum(times.values())
    )
    ranked = sorted(uses, key=lambda code: (-uses[code], code))
    rows = tuple(Row(code, uses[code], uses[code], len(places[code])) for code in ranked)
    yield Section("bandwidth while ops run", _OF_BANDWIDTH, rows, _OF_BANDWIDTH)


def _kernel_traffic(kernels: list[Kernel]) -> Iterator[Section]:
    ways = (
        (f"{kernel}, {way}", moved)
        for kernel in kernels
        for way, moved in (
            ("read", kernel.program.dram_read),
            ("written", kernel.program.dram_write),
        )
    )
    parts = (Part(name, moved.size.bytes, moved.transfers or 0) for name, moved in ways)
    yield section("bytes that kernels move", parts, unit="B", of="of such bytes")
    rates = ((kernel, kernel.program.bandwidth_gb_s) for kernel in kernels)
    rows = tuple(Row(str(kernel), rate) for kernel, rate in rates if rate is not None)
    yield Section("effective bandwidth of kernels", "GB/s", rows)


DRAM: Final = Kind(
    "dram", "traffic between DRAM and cores", (Input.OPS, Input.KERNELS), _look_at_dram
)
