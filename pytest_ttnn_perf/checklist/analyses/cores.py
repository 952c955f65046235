"""How many cores ops and kernels run on, and how much of the chip that leaves idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import Part, by_time, section
from pytest_ttnn_perf.checklist.kernels import kernels_of
from pytest_ttnn_perf.checklist.matmuls import is_dram_sharded
from pytest_ttnn_perf.checklist.op_times import described, device_ops
from pytest_ttnn_perf.checklist.rule import not_measured
from pytest_ttnn_perf.checklist.rules.ttp305_unused_cores import UnusedCores
from pytest_ttnn_perf.checklist.rules.ttp306_core_skew import CoreSkew
from pytest_ttnn_perf.checklist.rules.ttp801_grid_underused import GridUnderused
from pytest_ttnn_perf.model.analysis import Figure
from pytest_ttnn_perf.model.category import Category, category_of
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.kernels import Kernel
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.analysis import Section
    from pytest_ttnn_perf.model.ops import Op
    from pytest_ttnn_perf.model.subject import Subject

_RULES: Final = {
    "cores in use, ops that count": UnusedCores,
    "times of single cores": CoreSkew,
    "cores in use, kernels": GridUnderused,
}
_UNTOLD: Final = "the capture does not tell how many cores ops ran on"
_LEFT_OUT: Final = (
    "idle cores: without collectives and DRAM-sharded matmuls, whose number of cores says little"
)


def _look(subject: Subject) -> Numbers | Answer:
    ops = list(device_ops(subject.ops)) if subject.ops is not None else []
    known = [op for op in ops if op.cores is not None]
    kernels = kernels_of(subject.kernels) if subject.kernels is not None else _UNTOLD
    if not known and isinstance(kernels, str):
        return not_measured(kernels)
    available = _available(subject)
    return judged(
        subject,
        _RULES,
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
    judged = [
        op
        for op in ops
        if category_of(op.signature.op) is not Category.COLLECTIVE and not is_dram_sharded(op)
    ]
    shares = ((op, max(0.0, 1 - (op.cores or 0) / available)) for op in judged)
    parts = (
        Part(f"{_cores(op)}, {described(op)}", op.kernel_ns * idle) for op, idle in shares if idle
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


CORES: Final = Kind("cores", "cores that ops and kernels run on", (Input.OPS, Input.KERNELS), _look)
