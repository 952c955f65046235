"""What TTNN recorded of a program: calls, memory per bank, and the least PCC."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.device_csv import call_metrics, report_metrics
from pytest_ttnn_perf.analysis.readers.report_db import (
    BufferType,
    Comparison,
    CoreRange,
    Operation,
    OperationError,
    Report,
    Scope,
    Shard,
    TensorRecord,
)
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import Limits, MetricObservation

OPERATIONS = (
    Operation(1, "ttnn.add", bytes_per_bank={BufferType.DRAM: 400, BufferType.L1_SMALL: 9}),
    Operation(2, "ttnn.conv2d", cb_bytes_per_core=70, bytes_per_bank={BufferType.DRAM: 300}),
    Operation(3, "ttnn.relu", cb_bytes_per_core=80, bytes_per_bank={BufferType.L1: 50}),
)
BARE = (Operation(1, "ttnn.add"),)


def report(
    *operations: Operation,
    comparisons: tuple[Comparison, ...] = (),
    errors: tuple[OperationError, ...] = (),
) -> Report:
    return Report((), operations, {}, (), comparisons, errors)


def counted(
    *counts: float, name: str = "report_op_count", note: str | None = None
) -> MetricObservation:
    metric = Metric(name, "", Better.LOWER, Kind.COUNT, Source.DEVICE)
    return MetricObservation(metric, counts, note=note)


def sized(
    name: str, size: float, *, gated: bool = True, source: Source = Source.DEVICE
) -> MetricObservation:
    metric = Metric(name, "B", Better.LOWER, Kind.BYTES, source)
    return MetricObservation(metric, (size,), gated=gated)


def compared(actual: float | None, desired: float | None, tensor: int = 1) -> Comparison:
    return Comparison(Scope.GLOBAL, tensor, desired, actual)


def test_the_peaks_of_a_program() -> None:
    memory = [
        sized("l1_peak_bytes", 50),
        sized("dram_peak_bytes", 400),
        sized("trace_buffer_bytes", 0),
        sized("cb_peak_bytes", 80, gated=False),
    ]
    assert list(report_metrics(report(*OPERATIONS))) == [counted(3), *memory]


@pytest.mark.parametrize(
    ("errors", "note"),
    [
        ([(2, "ttnn.conv2d", "RuntimeError", "Out of Memory")], "ttnn.conv2d: Out of Memory"),
        ([(2, "ttnn.conv2d", "incomplete_operation", None)], "ttnn.conv2d: incomplete_operation"),
        ([(None, None, None, None)], "unnamed"),
        ([(1, "a", None, "b"), (2, "c", None, "d"), (3, "e", None, "f")], "a: b, and 2 more"),
    ],
    ids=["reason", "kind", "nothing told", "several"],
)
def test_a_program_in_which_operations_failed_has_no_numbers(
    errors: list[tuple[int | None, str | None, str | None, str | None]], note: str
) -> None:
    failed = tuple(OperationError(*error) for error in errors)
    program = report(*OPERATIONS, errors=failed)
    called = call_metrics(program, {BufferType.L1: 8})
    for found in map(list, (report_metrics(program), called)):
        assert {each.note for each in found} == {f"an operation failed: {note}"}
        assert {each.samples for each in found} == {()}


def tensor(number: int, *, address: int | None, **known: Any) -> TensorRecord:
    described = {
        "shape": (1, 1, 50, 100), "dtype": "BFLOAT8_B", "layout": "TILE",
        "memory": "DRAM_INTERLEAVED", "shard": None, "device": 1,
    }  # fmt: skip
    return TensorRecord(number, address=address, **{**described, **known})


def test_what_a_call_finds_there_and_what_it_adds() -> None:
    cut = Shard((32, 64), (CoreRange(0, 0, 7, 0),))
    tensors = [
        tensor(1, address=64),
        tensor(2, address=64),  # the same under another number
        tensor(3, address=128, dtype="BFLOAT16", memory="L1_HEIGHT_SHARDED", shard=cut),
        tensor(4, address=256),  # made by the call, and read by another
        tensor(5, address=256, shape=(1, 100, 50)),  # a view of it
        tensor(6, address=None),  # told by nobody where it is
        tensor(7, address=None, memory=None),
        tensor(8, address=512, dtype="FLOAT32", layout="ROW_MAJOR", shape=(3, 5)),
    ]
    operations = (
        Operation(1, "ttnn.matmul", inputs=(1, 3), outputs=(4,),
                  bytes_per_bank={BufferType.DRAM: 300}),
        Operation(2, "ttnn.add", inputs=(2, 5, 6, 7, 8), outputs=(9,)),
    )  # fmt: skip
    called = replace(report(*operations), tensors={each.id: each for each in tensors})

    assert list(call_metrics(called, {BufferType.DRAM: 400})) == [
        counted(2),
        sized("l1_added_bytes", 0, source=Source.GRAPH),
        sized("dram_added_bytes", 400, source=Source.GRAPH),
        sized("trace_buffer_bytes", 0, source=Source.GRAPH),
        sized("l1_resident_bytes", 8 * 32 * 64 * 2),
        sized("dram_resident_bytes", 64 * 128 * 1.0625 + 3 * 5 * 4),
    ]


def test_the_least_pcc_of_each_scope() -> None:
    alone = Comparison(Scope.LOCAL, 5, 0.99, 0.995)
    comparisons = (compared(0.9999, 0.999), alone, compared(0.9991, 0.999, 8))

    found = list(report_metrics(report(*BARE, comparisons=comparisons)))
    assert found == [
        counted(1),
        *(
            MetricObservation(
                Metric(name, "", Better.HIGHER, Kind.ACCURACY, Source.DEVICE),
                (pcc,),
                limits=Limits(at_least=limit),
                note=note,
            )
            for name, pcc, limit, note in [
                ("comparison_pcc_local", 0.995, 0.99, "tensor 5, the worst of 1"),
                ("comparison_pcc_global", 0.9991, 0.999, "tensor 8, the worst of 2"),
            ]
        ),
    ]
