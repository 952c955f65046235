"""Analyses of convolutions, matrix products, cores and bottlenecks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.analyses.analysis import (
    Kind,
    Part,
    by_time,
    lost_time,
    section,
    with_rules,
)
from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of, roofline_of
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    NO_MATMULS,
    blocks_in_report,
    blocks_in_table,
    convolutions,
    is_convolution,
    is_dense_matmul,
    is_dram_sharded,
    is_matmul,
    program_config,
)
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import whole as whole_number
from pytest_ttnn_perf.analysis.checklist.op_times import device_ops, kernel_ns, op_name, ops_like
from pytest_ttnn_perf.analysis.checklist.progress import bottleneck_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.records.attribution import short_code
from pytest_ttnn_perf.records.finding import Figure, Input
from pytest_ttnn_perf.records.ops import Category, category_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.analyses.analysis import Numbers
    from pytest_ttnn_perf.analysis.checklist.kernels import Kernel
    from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import ActBlock, Convolution
    from pytest_ttnn_perf.records.finding import Section, Subject
    from pytest_ttnn_perf.records.ops import Op, OpTable
    from pytest_ttnn_perf.records.ttlang import TtlangLog


_UNIT, _CONV_OF = "convolutions", "of convolutions"
_SWITCH: Final = {True: "on", False: "off", None: "not told"}
_CONV_RULES: Final = {
    "efficiency": "TTP607",
    "changes of sharding": "TTP601",
    "sharding unsuited to the shape": "TTP606",
    "activations not double-buffered": "TTP603",
    "weights not double-buffered": "TTP604",
    "room for a larger act_block_h": "TTP602",
    "not folded": "TTP605",
}


def _look_at_conv(subject: Subject) -> Numbers | Answer:
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    return with_rules(subject, _CONV_RULES, *_settings(subject, listed), *_times(subject, listed))


def _settings(subject: Subject, listed: Sequence[Convolution]) -> Iterator[Section]:
    sharded = (Part(each.sharding or "not told", 1) for each in listed)
    yield section("sharding", sharded, unit=_UNIT, of=_CONV_OF)
    buffers = {
        "activation double buffer": [each.act_double_buffer for each in listed],
        "weight double buffer": [each.weights_double_buffer for each in listed],
    }
    for heading, switches in buffers.items():
        yield section(heading, (Part(_SWITCH[on], 1) for on in switches), unit=_UNIT, of=_CONV_OF)
    blocks: Iterable[ActBlock] = ()
    if subject.ops is not None:
        blocks = blocks_in_table(subject.ops)
    elif subject.report is not None:
        blocks = blocks_in_report(subject.report)
    sizes = (
        f"{block.rows} of {block.most_rows} rows" if block.is_known else "not told"
        for block in blocks
    )
    yield section("act_block_h", (Part(size, 1) for size in sizes), unit=_UNIT, of=_CONV_OF)


def _times(subject: Subject, listed: Sequence[Convolution]) -> Iterator[Section]:
    """Yield where time goes; a report does not tell."""
    if subject.ops is not None:
        whole, of = kernel_ns(subject.ops), "of kernel time"
        parts = (Part(each.name, each.kernel_ns or 0.0) for each in listed)
        yield section("convolutions", parts, unit="ns", of=of, whole=whole)
        yield lost_time(ops_like(subject.ops, is_convolution), whole=whole)


CONV: Final = Kind(
    "conv",
    "sharding, blocks, buffers and times of convolutions",
    (Input.OPS, Input.REPORT),
    _look_at_conv,
)
_MATMUL_RULES: Final = {
    "efficiency": "TTP314",
    "without a program config": "TTP313",
    "very small blocks": "TTP312",
    "bound by DRAM, not DRAM-sharded": "TTP311",
}
_MATMUL_OF: Final = "of matmul time"


def _look_at_matmul(subject: Subject) -> Numbers | Answer:
    assert subject.ops is not None
    matmuls = ops_like(subject.ops, is_matmul)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    whole = kernel_ns(subject.ops)
    return with_rules(
        subject,
        _MATMUL_RULES,
        by_time("program config", matmuls, _config, of=_MATMUL_OF),
        by_time("in0_block_w", matmuls, _inner, of=_MATMUL_OF),
        by_time("matmuls", matmuls, op_name, whole=whole),
        lost_time(ops_like(subject.ops, is_dense_matmul), whole=whole),
    )


def _config(op: Op) -> str:
    found = program_config(op)
    return (
        "not told"
        if found is None
        else (found or "none").rpartition("::")[2].removesuffix("ProgramConfig")
    )


def _inner(op: Op) -> str:
    tiles = whole_number(op.attributes, "in0_block_w", "K_block_size")
    return "not told" if tiles is None else counted(tiles, "tile")


MATMUL: Final = Kind(
    "matmul", "program configs, blocks and times of matmuls", (Input.OPS,), _look_at_matmul
)
_CORES_RULES: Final = {
    "cores in use, ops that count": "TTP305",
    "times of single cores": "TTP306",
    "cores in use, kernels": "TTP801",
}
_UNTOLD: Final = "the capture does not tell how many cores ops ran on"
_LEFT_OUT: Final = (
    "idle cores: without collectives and DRAM-sharded matmuls, whose number of cores says little"
)


def _look_at_cores(subject: Subject) -> Numbers | Answer:
    ops = list(device_ops(subject.ops)) if subject.ops is not None else []
    known = [op for op in ops if op.cores is not None]
    kernels = kernels_of(subject.kernels) if subject.kernels is not None else _UNTOLD
    if not known and isinstance(kernels, str):
        return Answer.not_measured(kernels)
    available = _available(subject)
    return with_rules(
        subject,
        _CORES_RULES,
        by_time("cores", ops, _cores),
        *(_idle(known, available) if available else ()),
        *(_grids(kernels) if not isinstance(kernels, str) else ()),
        figures=tuple(_used(known, available)) if available else (),
        notes=(_LEFT_OUT,) if available and known else (),
    )


def _available(subject: Subject) -> int:
    """Return the cores that there are, as the table or else a report tells; 0 where neither."""
    if subject.ops is not None and subject.ops.available_cores:
        return subject.ops.available_cores
    devices = subject.report.devices if subject.report is not None else ()
    return max((device.compute_cores or 0 for device in devices), default=0)


def _cores(op: Op) -> str:
    return "not told" if op.cores is None else counted(op.cores, "core")


def _used(ops: list[Op], available: int) -> Iterator[Figure]:
    time = sum(op.kernel_ns for op in ops)
    if time:
        used = sum((op.cores or 0) * op.kernel_ns for op in ops)
        yield Figure(
            "cores in use, all ops, weighted by time", used / (available * time), "of cores"
        )
    yield Figure("cores available", available, "cores")


def _idle(ops: list[Op], available: int) -> Iterator[Section]:
    """Yield which ops leave most cores idle for longest."""
    computing = [
        op
        for op in ops
        if category_of(op.signature.op) is not Category.COLLECTIVE and not is_dram_sharded(op)
    ]
    shares = ((op, max(0.0, 1 - (op.cores or 0) / available)) for op in computing)
    parts = (
        Part(f"{_cores(op)}, {op_name(op)}", op.kernel_ns * idle) for op, idle in shares if idle
    )
    whole = sum(op.kernel_ns for op in ops)
    yield section("idle cores", parts, unit="ns", of="of kernel time", whole=whole)


def _grids(kernels: list[Kernel]) -> Iterator[Section]:
    named = (
        (f"{each}, {counted(each.program.cores, 'core')}", each.program.duration)
        for each in kernels
    )
    parts = (Part(name, duration.cycles) for name, duration in named)
    yield section("kernels", parts, unit="cycles", of="of kernel time")


CORES: Final = Kind(
    "cores", "cores that ops and kernels run on", (Input.OPS, Input.KERNELS), _look_at_cores
)


def _look_at_bottlenecks(subject: Subject) -> Numbers | Answer:
    log = subject.kernels
    if subject.ops is None and log is not None:
        kernels, line = kernels_of(log), roofline_of(log)
        if isinstance(kernels, str) and isinstance(line, str):
            return Answer.not_measured(kernels if kernels == line else f"{kernels}; {line}")
    found = bottleneck_of(subject)
    figures: tuple[Figure, ...] = ()
    if found is not None:
        figures = (
            Figure(f"bottleneck, {found.kind.value}", found.value, found.unit),
            Figure("its limit", found.limit, found.unit),
        )
    return with_rules(
        subject,
        {"devices wait": "TTP401", "imbalance of the roofline": "TTP804"},
        *(_bottleneck_times(subject.ops) if subject.ops is not None else ()),
        *(_programs(log) if log is not None else ()),
        figures=figures,
        notes=(found.sentence if found else "no bottleneck can be named from this",),
    )


def _bottleneck_times(table: OpTable) -> Iterator[Section]:
    ops = list(device_ops(table))
    yield by_time("kinds of work", ops, lambda op: category_of(op.signature.op).value)
    yield by_time("op codes", ops, lambda op: short_code(op.signature.op))
    yield by_time("ops", ops, op_name)


def _programs(log: TtlangLog) -> Iterator[Section]:
    kernels = kernels_of(log)
    if not isinstance(kernels, str):
        parts = (Part(str(each), each.program.duration.cycles) for each in kernels)
        yield section("kernels", parts, unit="cycles", of="of kernel time")


BOTTLENECKS: Final = Kind(
    "bottlenecks",
    "what holds a program back, and where its time goes",
    (Input.OPS, Input.KERNELS),
    _look_at_bottlenecks,
)
