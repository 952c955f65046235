"""What devices told in a pass of their own: taken in test by test, and put to the wall times."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import MetricObservation, Observation
from pytest_ttnn_perf.core.ops import OpGroups
from pytest_ttnn_perf.gate.judging import with_device

TIME = Metric("device_kernel_time", "ns", Better.LOWER, Kind.TIME, Source.DEVICE)
WALL = MetricObservation(Metric("latency", "ns"), (1.0, 2.0))
DEVICE = MetricObservation(TIME, (500.0,))
OPS, OTHER_OPS = OpGroups("KERNEL", ()), OpGroups("FW", ())


def seen(test: str = "a", **changes: Any) -> Observation:
    return replace(Observation(test, {"latency": WALL}), **changes)


def told(test: str = "a", **changes: Any) -> Observation:
    return replace(Observation(test, {TIME.name: DEVICE}), **changes)


@pytest.mark.parametrize(
    ("of_wall", "of_device", "merged"),
    [
        ({"metrics": {TIME.name: replace(DEVICE, samples=(900.0,)), "latency": WALL}}, {},
         {"metrics": {TIME.name: DEVICE, "latency": WALL}}),
        ({"ops": OTHER_OPS}, {"ops": OPS}, {"ops": OPS}),
        ({"ops": OTHER_OPS}, {}, {"ops": OTHER_OPS}),
        ({}, {"ops": OPS}, {"ops": OPS}),
        # What was true meanwhile is that of the wall pass where both tell.
        ({"environment": {"clock": 1000, "cache": 3}}, {"environment": {"clock": 500, "log": "x"}},
         {"environment": {"clock": 1000, "cache": 3, "log": "x"}}),
        ({"problems": ("wall",)}, {"problems": ("device",)}, {"problems": ("wall", "device")}),
    ],
    ids=["metrics", "ops of both", "ops of wall", "ops of device", "environment", "problems"],
)  # fmt: skip
def test_what_both_passes_told(
    of_wall: dict[str, Any], of_device: dict[str, Any], merged: dict[str, Any]
) -> None:
    found = with_device(seen(**of_wall), told(**of_device))
    assert {name: getattr(found, name) for name in merged} == merged
