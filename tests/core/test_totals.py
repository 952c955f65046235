"""Which metrics explain which times."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.core.metric import Metric, Source


@pytest.mark.parametrize(
    ("name", "totals"),
    [
        ("device_kernel_time_matmul", ("device_kernel_time",)),
        ("decode_device_kernel_time_matmul", ("decode_device_kernel_time",)),
        ("op_count", ("device_kernel_time",)),
        ("report_op_count", ("device_kernel_time", "wall_time", "throughput_time")),
        ("decode_report_op_count", ("decode_device_kernel_time", "decode")),
        ("device_kernel_time", ()),
        ("stop_count", ()),
        ("kernel_dram_transfers", ()),
        ("kernel_time_1", ()),
        ("l1_peak_bytes", ()),
    ],
)
def test_the_times_that_a_metric_is_a_part_of(name: str, totals: tuple[str, ...]) -> None:
    assert Metric(name, "", source=Source.REPLAY).totals == totals
    assert Metric(name, "", source=Source.WALL).totals == ()
