"""What ops and kernels read from DRAM and write to it, as far as can be told."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import Part, by_bytes, section
from pytest_ttnn_perf.checklist.dram_use import dram_use
from pytest_ttnn_perf.checklist.kernels import kernels_of
from pytest_ttnn_perf.checklist.operands import NO_OPERANDS, operands_of
from pytest_ttnn_perf.checklist.residency import in_dram
from pytest_ttnn_perf.checklist.rule import not_measured
from pytest_ttnn_perf.checklist.rules.ttp303_hot_data_in_dram import HotDataInDram
from pytest_ttnn_perf.checklist.rules.ttp311_matmul_not_dram_sharded import MatmulNotDramSharded
from pytest_ttnn_perf.model.analysis import Figure, Row, Section
from pytest_ttnn_perf.model.attribution import short_code
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.kernels import Kernel
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.ops import OpTable
    from pytest_ttnn_perf.model.subject import Subject

_UNIT: Final = "of the DRAM bandwidth"
_ESTIMATE: Final = (
    "an estimate: each operand in DRAM counts once, and none of those that ops read a part of"
)
_UNKNOWN: Final = "what part of the DRAM bandwidth of {} ops use cannot be told"
_RULES: Final = {
    "ops that read activations from DRAM": HotDataInDram,
    "matmuls bound by DRAM, not DRAM-sharded": MatmulNotDramSharded,
}


def _look(subject: Subject) -> Numbers | Answer:
    operands = operands_of(subject) if subject.ops is not None else ()
    kernels = kernels_of(subject.kernels) if subject.kernels is not None else NO_OPERANDS
    if not operands and isinstance(kernels, str):
        return not_measured(kernels)
    use = dram_use(subject.ops) if subject.ops is not None else None
    stored = [each for each in operands if in_dram(each.tensor)]
    return judged(
        subject,
        _RULES,
        *(_bandwidth(subject.ops) if subject.ops is not None and use is not None else ()),
        by_bytes("operands in DRAM", stored, lambda each: each.op, of="of such bytes"),
        *(_moved(kernels) if not isinstance(kernels, str) else ()),
        figures=() if use is None else (Figure("bandwidth in use, weighted by time", use, _UNIT),),
        notes=tuple(_notes(subject.ops, use)) if subject.ops is not None and operands else (),
    )


def _notes(table: OpTable, use: float | None) -> Iterator[str]:
    arch = table.arch or "an unnamed architecture"
    yield _ESTIMATE if use is not None else _UNKNOWN.format(arch)


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
    yield Section("bandwidth while ops run", _UNIT, rows, _UNIT)


def _moved(kernels: list[Kernel]) -> Iterator[Section]:
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


DRAM: Final = Kind("dram", "traffic between DRAM and cores", (Input.OPS, Input.KERNELS), _look)
