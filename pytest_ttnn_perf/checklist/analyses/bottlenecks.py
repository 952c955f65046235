"""What holds a program back, and where its time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import Part, by_time, section
from pytest_ttnn_perf.checklist.bottleneck import bottleneck_of
from pytest_ttnn_perf.checklist.kernels import kernels_of, roofline_of
from pytest_ttnn_perf.checklist.op_times import described, device_ops
from pytest_ttnn_perf.checklist.rule import not_measured
from pytest_ttnn_perf.checklist.rules.ttp401_host_bound import HostBound
from pytest_ttnn_perf.checklist.rules.ttp804_bound import Bound
from pytest_ttnn_perf.model.analysis import Figure
from pytest_ttnn_perf.model.attribution import short_code
from pytest_ttnn_perf.model.category import category_of
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.analysis import Section
    from pytest_ttnn_perf.model.bottleneck import Bottleneck
    from pytest_ttnn_perf.model.ops import OpTable
    from pytest_ttnn_perf.model.subject import Subject
    from pytest_ttnn_perf.model.ttlang import TtlangLog


def _look(subject: Subject) -> Numbers | Answer:
    log = subject.kernels
    if subject.ops is None and log is not None:
        kernels, line = kernels_of(log), roofline_of(log)
        if isinstance(kernels, str) and isinstance(line, str):
            return not_measured(kernels if kernels == line else f"{kernels}; {line}")
    found = bottleneck_of(subject)
    return judged(
        subject,
        {"devices wait": HostBound, "imbalance of the roofline": Bound},
        *(_times(subject.ops) if subject.ops is not None else ()),
        *(_programs(log) if log is not None else ()),
        figures=tuple(_deciding(found)),
        notes=(found.sentence if found else "no bottleneck can be named from this",),
    )


def _deciding(found: Bottleneck | None) -> Iterator[Figure]:
    if found is not None:
        yield Figure(f"bottleneck, {found.kind.value}", found.value, found.unit)
        yield Figure("its limit", found.limit, found.unit)


def _times(table: OpTable) -> Iterator[Section]:
    ops = list(device_ops(table))
    yield by_time("kinds of work", ops, lambda op: category_of(op.signature.op).value)
    yield by_time("op codes", ops, lambda op: short_code(op.signature.op))
    yield by_time("ops", ops, described)


def _programs(log: TtlangLog) -> Iterator[Section]:
    kernels = kernels_of(log)
    if not isinstance(kernels, str):
        parts = (Part(str(each), each.program.duration.cycles) for each in kernels)
        yield section("kernels", parts, unit="cycles", of="of kernel time")


BOTTLENECKS: Final = Kind(
    "bottlenecks",
    "what holds a program back, and where its time goes",
    (Input.OPS, Input.KERNELS),
    _look,
)
