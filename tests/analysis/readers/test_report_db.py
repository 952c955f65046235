"""What a report database says, in the layouts of several releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.report_db import (
    BufferType,
    Comparison,
    Edge,
    Reshard,
    Scope,
    read_report_db,
)
from tests.analysis.readers.report_db_tables import (
    LEGACY,
    RANKED,
    RELEASE,
    build,
    circular,
    function,
    graph,
    one_op,
    report_of,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_ranks_are_never_mixed(tmp_path: Path) -> None:
    file = build(
        tmp_path / "db.sqlite",
        RANKED,
        operations=[one_op("of 3", rank=3), one_op("of 1", rank=1)],
        tensors=[{"tensor_id": 1, "shape": f"[{rank}]", "rank": rank} for rank in (1, 3)],
        buffers=[{"operation_id": 1, "max_size_per_bank": rank, "buffer_type": 1, "rank": rank}
                 for rank in (1, 3)],
    )  # fmt: skip
    lowest = read_report_db(file)
    assert [operation.name for operation in lowest.operations] == ["of 1"]
    assert lowest.tensors[1].shape == (1,)
    assert lowest.peak_bytes_per_bank == {BufferType.L1: 1}


def test_buffers_are_summed_per_op_and_the_peak_is_no_sum_over_ops(tmp_path: Path) -> None:
    rows = [
        {"operation_id": op, "device_id": device, "max_size_per_bank": size, "buffer_type": kind}
        for op, device, size, kind in [
            (1, 0, 100, 1), (1, 0, 50, 1), (1, 1, 120, "L1"), (1, 0, 7, 3),
            (2, 0, 130, "BufferType::L1"), (2, 0, 10, 0), (2, 0, 1, 4), (2, 0, 2, 9), (99, 0, 5, 1),
        ]
    ]  # fmt: skip
    report = report_of(tmp_path, operations=[one_op(), one_op(identity=2)], buffers=rows)
    first, second = report.operations
    assert first.bytes_per_bank == {BufferType.L1: 150, BufferType.L1_SMALL: 7}
    assert second.bytes_per_bank == {
        BufferType.L1: 130, BufferType.DRAM: 10, BufferType.TRACE: 1, BufferType.OTHER: 2,
    }  # fmt: skip
    assert report.peak_bytes_per_bank[BufferType.L1] == 150


def test_a_tensor_without_a_memory_configuration(tmp_path: Path) -> None:
    rows = [
        {"tensor_id": 1, "buffer_type": 0, "dtype": "torch.bfloat16", "layout": "torch.strided",
         "shape": "torch.Size([2])"},
        {"tensor_id": 2, "buffer_type": 1, "address": 4, "dtype": "UINT16", "shape": "unreadable"},
    ]  # fmt: skip
    report = report_of(tmp_path, LEGACY, tensors=rows)
    host, device = report.tensors[1], report.tensors[2]
    assert host[1:5] == ((2,), "BFLOAT16", "STRIDED", None)
    assert device[1:5] == (None, "UINT16", None, "L1")


def test_edges_come_from_the_last_producer_before(tmp_path: Path) -> None:
    report = report_of(
        tmp_path,
        operations=[one_op(identity=number) for number in (1, 2, 3, 4)],
        input_tensors=[{"operation_id": op, "tensor_id": t, "input_index": 0}
                       for op, t in [(1, 8), (2, 5), (3, 5), (4, 6)]],
        output_tensors=[{"operation_id": op, "tensor_id": t, "output_index": 0}
                        for op, t in [(1, 5), (2, 5), (3, 8)]],
    )  # fmt: skip
    assert report.edges == (Edge(5, 1, 2), Edge(5, 2, 3))


def test_comparisons_and_errors(tmp_path: Path) -> None:
    record = {"tensor_id": 1, "desired_pcc": 0.99}
    report = report_of(
        tmp_path,
        LEGACY,
        local_tensor_comparison_records=[{**record, "actual_pcc": 1.0}],
        global_tensor_comparison_records=[{**record, "actual_pcc": None}],
        errors=[{"operation_id": 1, "operation_name": "ttnn.relu", "error_type": "RuntimeError",
                 "error_message": "TT_FATAL @ a.cpp\ninfo:\n  no room in L1\nbacktrace:\n x"},
                {"operation_id": 1, "error_message": "just this"}, {"error_message": ""}],
    )  # fmt: skip
    assert report.comparisons == (
        Comparison(Scope.LOCAL, 1, desired_pcc=0.99, actual_pcc=1.0),
        Comparison(Scope.GLOBAL, 1, desired_pcc=0.99, actual_pcc=None),
    )
    assert [error.reason for error in report.errors] == ["no room in L1", "just this", None]
    assert report.errors[0][:3] == (1, "ttnn.relu", "RuntimeError")


def test_sources_of_the_user_are_not_in_the_report(tmp_path: Path) -> None:
    report = report_of(
        tmp_path, source_files=[{"id": 1, "path": "secret.py", "contents": "SECRET = 1"}]
    )
    assert "secret" not in repr(report).lower()


def test_a_very_long_argument_is_cut_and_says_so(tmp_path: Path) -> None:
    value = "x" * 20_100
    rows = [{"operation_id": 1, "name": "0", "value": value}]
    report = report_of(tmp_path, operation_arguments=rows)
    assert report.operations[0].arguments["0"] == "x" * 20_000 + "…"


def test_what_runs_inside_an_operation(tmp_path: Path) -> None:
    nodes = [
        *function("Tensor::to_layout"),
        *function("ns::HaloDeviceOperation", RELEASE, circular("100"), circular(50),
                  arguments=["Config(math_fidelity=HiFi4)"]),
        *function("Pool2D", RELEASE, circular(70), circular(500, globally_allocated="1")),
        *function("Conv2dDeviceOperation", arguments=["C(math_fidelity=MathFidelity::LoFi,x=1)"]),
    ]  # fmt: skip
    (operation,) = report_of(tmp_path, captured_graph=graph(*nodes)).operations
    assert operation.device_operations == (
        "HaloDeviceOperation", "Pool2D", "Conv2dDeviceOperation",
    )  # fmt: skip
    assert (operation.cb_bytes_per_core, operation.fidelity) == (150, "LoFi")


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([], None),
        ([circular(9, globally_allocated="1")], 0),
        ([circular(5, "{[0-0 - 3-3]}"), circular(7, "{[4-0 - 7-7]}")], 7),
        ([circular(5, "{[0-0 - 3-3]}"), circular(7, "{[3-3 - 7-7], [0-7 - 0-7]}")], 12),
        ([circular(5, "{[(x=0,y=0) - (x=3,y=3)]}"), circular(7, "{[0-0 - 0-0]}")], 12),
        ([circular(5, device_id=0), circular(7, device_id="1")], 7),
    ],
)
def test_circular_buffers_of_the_fullest_core(
    tmp_path: Path, nodes: list[dict[str, object]], expected: int | None
) -> None:
    rows = graph(*function("XDeviceOperation", *nodes))
    (operation,) = report_of(tmp_path, captured_graph=rows).operations
    assert operation.cb_bytes_per_core == expected


@pytest.mark.parametrize(
    ("name", "inside", "expected"),
    [
        ("ttnn.to_memory_config", "ReshardDeviceOperation", Reshard.EXPLICIT),
        ("ReshardDeviceOperation", "ReshardDeviceOperation", Reshard.EXPLICIT),
        ("ttnn.conv2d", "ReshardDeviceOperation", Reshard.HIDDEN),
        ("ttnn.to_memory_config", "InterleavedToShardedDeviceOperation", Reshard.NONE),
    ],
)
def test_reshards(tmp_path: Path, name: str, inside: str, expected: Reshard) -> None:
    report = report_of(tmp_path, operations=[one_op(name)], captured_graph=graph(*function(inside)))
    assert report.operations[0].reshard is expected
