"""Where tensors lie, and how full L1 gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import Part, by_bytes, section
from pytest_ttnn_perf.checklist.operands import operands_of
from pytest_ttnn_perf.checklist.report_operations import (
    budget_bytes,
    called,
    has_graphs,
    used_bytes,
)
from pytest_ttnn_perf.checklist.rule import not_measured
from pytest_ttnn_perf.checklist.rules.ttp303_hot_data_in_dram import HotDataInDram
from pytest_ttnn_perf.checklist.rules.ttp304_low_l1_headroom import LowL1Headroom
from pytest_ttnn_perf.model.analysis import Figure, Row, Section
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.operands import Operand
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.report import Report
    from pytest_ttnn_perf.model.subject import Subject

_LOWER: Final = "what L1 holds is a lower bound: not every operation tells its circular buffers"


def _look(subject: Subject) -> Numbers | Answer:
    operands = operands_of(subject)
    report = subject.report
    if not operands and report is None:
        return not_measured("the capture does not tell where tensors lie")
    return judged(
        subject,
        {"activations read from DRAM": HotDataInDram, "L1 left free": LowL1Headroom},
        by_bytes("operands", operands, _place, of="of operand bytes"),
        by_bytes("ops", operands, lambda each: f"{each.op} {_place(each)}", of="of operand bytes"),
        *(_alive(report) if report else ()),
        figures=tuple(_budget(report)) if report else (),
        notes=(_LOWER,) if report and _is_lower_bound(report) else (),
    )


def _place(operand: Operand) -> str:
    return operand.tensor.memory.partition("_")[0] or "not told"


def _budget(report: Report) -> Iterator[Figure]:
    budget = budget_bytes(report)
    if budget is not None:
        yield Figure("L1 of a core for tensors and circular buffers", budget, "B")


def _is_lower_bound(report: Report) -> bool:
    running = [each for each in report.operations if each.device_operations]
    return any(each.cb_bytes_per_core is None for each in running)


def _alive(report: Report) -> Iterator[Section]:
    peaks = report.peak_bytes_per_bank
    rows = tuple(
        Row(kind.value, float(peaks[kind])) for kind in sorted(peaks, key=lambda k: k.value)
    )
    yield Section("most alive at one operation, per bank", "B", rows)
    if has_graphs(report):
        running = (each for each in report.operations if each.device_operations)
        parts = (Part(called(report, each), used_bytes(each)) for each in running)
        budget = budget_bytes(report)
        yield section("L1 of a core in use", parts, unit="B", of="of L1", whole=budget or 0)


MEMORY: Final = Kind(
    "memory", "where tensors lie, and how full L1 gets", (Input.OPS, Input.REPORT), _look
)
