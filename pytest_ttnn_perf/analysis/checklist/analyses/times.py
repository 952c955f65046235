"""Analyses of time: convolutions, matmuls, cores and bottlenecks; the host, traces and devices."""

from __future__ import annotations

from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.analyses.analysis import (
    Kind,
    Numbers,
    Part,
    by_time,
    lost_time,
    section,
    with_rules,
)
from pytest_ttnn_perf.analysis.checklist.bottleneck import bottleneck_of
from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of, roofline_of
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    NO_MATMULS,
    blocks_in_report,
    blocks_in_table,
    convolutions,
    is_convolution,
    is_dense_matmul,
    is_matmul,
    program_config,
)
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import whole as whole_number
from pytest_ttnn_perf.analysis.checklist.measurements import NO_IO_TIMES
from pytest_ttnn_perf.analysis.checklist.op_times import (
    device_ops,
    differences,
    executions,
    gaps_of,
    kernel_ns,
    op_name,
    ops_like,
)
from pytest_ttnn_perf.analysis.checklist.residency import crossings
from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.ops.roofline import is_dram_sharded
from pytest_ttnn_perf.records.finding import Figure, Input, Row, Section
from pytest_ttnn_perf.records.ops import Category, category_of, short_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.kernels import Kernel
    from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import ActBlock, Convolution
    from pytest_ttnn_perf.analysis.checklist.op_times import Gaps
    from pytest_ttnn_perf.analysis.checklist.residency import Crossing
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import Op, OpTable
    from pytest_ttnn_perf.records.ttlang import TtlangLog


_UNIT, _CONV_OF = "convolutions", "of convolutions"
_SWITCH: Final = {True: "on", False: "off", None: "unknown"}
_CONV_RULES: Final = {
    "slow convolutions": "TTP607",
    "slices of convolutions": "TTP608",
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
    sharded = (Part(each.sharding or "unknown", 1) for each in listed)
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
        f"{block.rows} of {block.most_rows} rows" if block.is_known else "unknown"
        for block in blocks
    )
    yield section("act_block_h", (Part(size, 1) for size in sizes), unit=_UNIT, of=_CONV_OF)


def _times(subject: Subject, listed: Sequence[Convolution]) -> Iterator[Section]:
    """Yield where time goes; a report does not tell."""
    if subject.ops is not None:
        whole, of = kernel_ns(subject.ops), "of kernel time"
        parts = (Part(each.name, each.kernel_ns or 0.0) for each in listed)
        yield section("convolutions", parts, unit="ns", of=of, whole=whole)
        yield lost_time(subject.ops, is_convolution, whole=whole)


CONV: Final = Kind(
    "conv",
    "sharding, blocks, buffers and times of convolutions",
    (Input.OPS, Input.REPORT),
    _look_at_conv,
)
_MATMUL_RULES: Final = {
    "slow for no other reason": "TTP314",
    "without a program config": "TTP313",
    "very small blocks": "TTP312",
    "weights read slowly, not DRAM-sharded": "TTP311",
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
        lost_time(subject.ops, is_dense_matmul, whole=whole),
    )


def _config(op: Op) -> str:
    found = program_config(op)
    return (
        "unknown"
        if found is None
        else (found or "none").rpartition("::")[2].removesuffix("ProgramConfig")
    )


def _inner(op: Op) -> str:
    tiles = whole_number(op.attributes, "in0_block_w", "K_block_size")
    return "unknown" if tiles is None else counted(tiles, "tile")


MATMUL: Final = Kind(
    "matmul", "program configs, blocks and times of matmuls", (Input.OPS,), _look_at_matmul
)
_CORES_RULES: Final = {
    "more cores for ops on few": "TTP305",
    "even work on all cores": "TTP306",
    "cores in use, kernels": "TTP801",
}
_UNTOLD: Final = "the capture does not say how many cores ops ran on"
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
    return "unknown" if op.cores is None else counted(op.cores, "core")


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
        if category_of(op.signature.op) is not Category.COLLECTIVE
        and not is_dram_sharded(op.attributes)
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
    found = bottleneck_of(subject, {})
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


#: What gaps are called up to how many nanoseconds.
_LENGTHS: Final = {
    "below 1 us": 1e3,
    "1 to 10 us": 1e4,
    "10 to 100 us": 1e5,
    "100 us to 1 ms": 1e6,
    "1 ms and more": float("inf"),
}


def _look_at_host_overhead(subject: Subject) -> Numbers | Answer:
    assert subject.ops is not None
    gaps = gaps_of(subject)
    if isinstance(gaps, str):
        return Answer.not_measured(gaps)
    figures = (
        Figure("devices wait (TTP401)", gaps.share, "of the time"),
        Figure("waited, all devices", gaps.waited_ns, "ns"),
        Figure("worked, all devices", gaps.worked_ns, "ns"),
    )
    notes = (f"counted in {gaps.place}, without the gap before the first op of each",)
    caveats = (gaps.caveat,) if gaps.caveat else ()
    return Numbers(figures, tuple(_sections(subject.ops, gaps)), (*notes, *caveats))


def _sections(table: OpTable, gaps: Gaps) -> Iterator[Section]:
    waits = [(table.op(at), max(table.columns.gap_ns[at] or 0.0, 0.0)) for at in gaps.waits]
    counts = {name: [ns for _, ns in waits if _length(ns) == name] for name in _LENGTHS}
    parts = (Part(name, sum(each), len(each)) for name, each in counts.items() if each)
    yield section("lengths of gaps", parts, unit="ns", of="of the gaps", ranked=False)
    before = (Part(op_name(op), ns) for op, ns in waits)
    yield section("waits before", before, unit="ns", of="of the gaps")


def _length(nanoseconds: float) -> str:
    return next(name for name, most in _LENGTHS.items() if nanoseconds < most)


HOST_OVERHEAD: Final = Kind(
    "host-overhead", "how long devices wait for their next op", (Input.OPS,), _look_at_host_overhead
)
#: How many executions that differ are named.
_NAMED: Final = 3


def _look_at_trace(subject: Subject) -> Numbers:
    assert subject.ops is not None
    table = subject.ops
    ops = list(device_ops(table))
    outside = [op for op in ops if op.trace is None]
    partly = outside if len(outside) < len(ops) else []
    whole, untraced = (sum(op.kernel_ns for op in some) for some in (ops, outside))
    part = Figure("runs from a trace", 1 - untraced / whole, "of kernel time") if whole else None
    return with_rules(
        subject,
        {"waiting without a trace": "TTP402", "executions unlike the first": "TTP403"},
        by_time("ops", ops, _origin),
        _executions(table),
        by_time("ops that are in no trace", partly, op_name, whole=whole),
        figures=(part,) if part else (),
        notes=tuple(f"differs: {each}" for each in islice(differences(table), _NAMED)),
    )


def _origin(op: Op) -> str:
    return "not traced" if op.trace is None else f"trace {op.trace}, device {op.device}"


def _executions(table: OpTable) -> Section:
    """Return the median kernel time of what ran at least twice."""
    times = table.columns.kernel_ns
    rows = (
        Row(
            what.rpartition(", ")[0],
            median(sum(times[at] for at in run.places) for run in runs),
            count=len(runs),
        )
        for what, runs in sorted(executions(table).items())
    )
    return Section("executions, median time of one", "ns", tuple(rows))


TRACE: Final = Kind(
    "trace", "what runs from a trace, and its replays", (Input.OPS,), _look_at_trace
)
_QUEUES_OF: Final = "of the bytes"


def _look_at_queues(subject: Subject) -> Numbers | Answer:
    assert subject.report is not None
    crossing = crossings(subject.report)
    if not crossing:
        return Answer.not_applicable("the report has no transfer between host and device")
    ways = (Part(_way(each), each.sent) for each in crossing)
    tensors = (Part(str(each), each.sent) for each in crossing)
    return with_rules(
        subject,
        {"padding": "TTP504", "outputs to the host": "TTP505"},
        section("ways", ways, unit="B", of=_QUEUES_OF),
        section("transfers", tensors, unit="B", of=_QUEUES_OF),
        notes=(f"times of transfers: not measured: {NO_IO_TIMES}",),
    )


def _way(crossing: Crossing) -> str:
    way = "to the host" if crossing.outward else "to the device"
    return f"{way}, queue {'unknown' if crossing.queue is None else crossing.queue}"


QUEUES: Final = Kind(
    "queues",
    "transfers between host and device, and their command queues",
    (Input.REPORT,),
    _look_at_queues,
    "op tables have no transfers or command queues",
)


def _look_at_devices(subject: Subject) -> Numbers:
    assert subject.ops is not None
    ops = list(device_ops(subject.ops))
    exchanging = [op for op in ops if category_of(op.signature.op) is Category.COLLECTIVE]
    computing = [op for op in ops if category_of(op.signature.op) is not Category.COLLECTIVE]
    apart = computing if exchanging else []
    return with_rules(
        subject,
        {"fewer, narrower exchanges": "TTP703", "even work on all devices": "TTP704"},
        by_time("devices", ops, _device),
        by_time("devices without collectives", apart, _device, of="of such time"),
        by_time("collectives", exchanging, op_name, whole=sum(op.kernel_ns for op in ops)),
    )


def _device(op: Op) -> str:
    return f"device {op.device}"


DEVICES: Final = Kind(
    "devices", "kernel time by device, and collectives", (Input.OPS,), _look_at_devices
)
