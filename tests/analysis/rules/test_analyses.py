"""Analyses of small captures: what is grouped by what, and what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import BufferType, Device
from pytest_ttnn_perf.analysis.show.groups import ANALYSES, AnalysisOutcome
from pytest_ttnn_perf.cli.captures import ANALYSIS_NAMES as NAMES
from pytest_ttnn_perf.core.finding import Input, Subject
from tests.analysis.rules.kernel_logs import printed
from tests.analysis.rules.reports import Operation, report
from tests.analysis.rules.tables import Op, Tensor, TraceReplays, on_host, op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.show.groups import Analysis

#: Of 1024 elements each: 2048, 1088 and 4096 bytes.
BF16, BFP8, FP32 = (
    tensor(1, 1, 32, 32, dtype=name) for name in ("BFLOAT16", "BFLOAT8_B", "FLOAT32")
)
CUT = tensor(1, 1, 32, 32, memory="L1_HEIGHT_SHARDED")
MATMUL, BINARY = "MatmulDeviceOperation", "BinaryNgDeviceOperation"


def of_ops(name: str, *ops: Op) -> Analysis:
    return ANALYSES[name].analysis(Subject(ops=table(*ops)))


CONV = Operation(1, "ttnn.conv2d", device_operations=("Conv2d",), cb_bytes_per_core=2_500)
RELU = Operation(2, "ttnn.relu", device_operations=("Unary",), bytes_per_bank={BufferType.L1: 100})
VIEW = Operation(3, "ttnn.reshape", bytes_per_bank={BufferType.DRAM: 64})


def test_a_capture_in_doubt_says_so() -> None:
    ops = table(
        op("Softmax", [CUT], replay=(0, 1)),
        op(BINARY, [CUT], replay=(0, 2)),
        traces=(TraceReplays(0, 0, 2, alike=1),),
    )
    assert ANALYSES["trace"].analysis(Subject(ops=ops)).notes == (
        "no time of this capture can be trusted: the replays of trace 0 on device 0 ran "
        "different ops: 1 of 2 complete",
    )


def test_the_names_of_the_command_line_are_those_of_the_analyses() -> None:
    assert tuple(ANALYSES) == NAMES


def of_op(code: str = BINARY, *operands: Tensor, **fields: Any) -> Subject:
    return Subject(ops=table(op(code, operands, **fields)))


def of_calls(*calls: Operation, **fields: Any) -> Subject:
    return Subject(report=replace(report(calls), **fields))


NOT_MEASURED, NOT_APPLICABLE = AnalysisOutcome.NOT_MEASURED, AnalysisOutcome.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("names", "subject", "outcome", "reason"),
    [
        (NAMES, Subject(), NOT_MEASURED, "needs "),
        ("dtype", Subject(), NOT_MEASURED, "needs an op table or a report database"),
        ("queues l1", of_op(), NOT_MEASURED, "needs a report database"),
        ("dtype", Subject(absent={Input.OPS: "it is off"}), NOT_MEASURED, "it is off"),
        ("dtype layout sharding memory padding dram", of_op(), NOT_MEASURED,
         "the capture says nothing about the tensors that ops take and give"),
        ("fidelity", of_op(fidelity="HiFi4"), NOT_APPLICABLE, "no matmul and no convolution ran"),
        ("fidelity", of_op(MATMUL), NOT_MEASURED, "no matmul or convolution gives its fidelity"),
        ("padding", of_op(BINARY, BF16._replace(logical=None)), NOT_MEASURED,
         "the capture has no logical shapes"),
        ("padding", of_op(BINARY, BF16._replace(layout="ROW_MAJOR")), NOT_APPLICABLE,
         "no tensor is in tiles"),
        ("reshards", of_op(), NOT_APPLICABLE, "no op only cuts tensors anew"),
        ("host-overhead", of_op(gap_ns=5.0), NOT_MEASURED,
         "the capture has neither replays of a trace nor a window"),
        ("conv", of_op(), NOT_APPLICABLE, "no convolutions"),
        ("matmul", of_op(), NOT_APPLICABLE, "no matmuls"),
        ("cores", of_op(cores=None), NOT_MEASURED,
         "the capture does not say how many cores ops ran on"),
        ("cores bottlenecks dram", printed(), NOT_MEASURED, "needs an op table"),
        ("queues", of_calls(RELU), NOT_APPLICABLE, "the report has no transfer between host"),
        ("l1", of_calls(CONV), NOT_MEASURED, "the report does not say how much L1 a core has"),
        ("l1", of_calls(VIEW, devices=(Device(0, 64, 10_000, None, 10_000),)), NOT_MEASURED,
         "the report does not say what ran inside its operations"),
    ],
)  # fmt: skip
def test_what_is_not_there_has_a_reason(
    names: str | tuple[str, ...], subject: Subject, outcome: AnalysisOutcome, reason: str
) -> None:
    for name in names.split() if isinstance(names, str) else names:
        found = ANALYSES[name].analysis(subject)
        assert (found.name, found.outcome, found.sections) == (name, outcome, ())
        assert (found.reason or "").startswith(reason)


@pytest.mark.parametrize("name", [n for n in NAMES if Input.OPS in ANALYSES[n].needs])
def test_a_capture_of_the_host_alone_has_no_ops(name: str) -> None:
    for ops in ((), (on_host("(torch) add"),)):
        assert of_ops(name, *ops).reason == "the capture has no op that ran on a device"
