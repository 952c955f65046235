"""A clock alone, and artifacts in place of devices."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import Artifact, MetricObservation, Observation
from pytest_ttnn_perf.core.settings import Settings, TestSettings
from pytest_ttnn_perf.machine.ttnn import OpenDevices
from pytest_ttnn_perf.measure.devices import BesideDevices, Printing, Profiling, Signposting
from pytest_ttnn_perf.measure.instruments import Instruments, Replaying
from pytest_ttnn_perf.measure.observer import Observer

TEST = "models/test_llama.py::test_decode"
TIME = Metric("device_kernel_time", "ns", Better.LOWER, Kind.TIME, Source.REPLAY)
WALL = MetricObservation(Metric("latency", "ns"), (5.0,))
PCC = MetricObservation(Metric("pcc", "", Better.HIGHER, Kind.ACCURACY), (0.99,))


@pytest.mark.parametrize(
    ("instruments", "expected"),
    [
        (Instruments(), True),
        (BesideDevices(OpenDevices()), True),
        (Replaying(Path()), False),
        (Profiling(OpenDevices()), False),
        (Printing(OpenDevices()), False),
        (Signposting(OpenDevices()), False),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_host_is_asked_only_where_its_own_times_count(
    instruments: Instruments, expected: bool
) -> None:
    assert instruments.by_the_clock is expected
    settings = TestSettings(warmup=0, iterations=1, pcc=0.99)
    observer = Observer(TEST, settings, Settings(), instruments)
    observer.record("latency", 5.0, unit="ns")
    assert ("load_1m" in observer.finish().environment) is expected


def test_the_times_of_this_machine_are_left_out(tmp_path: Path) -> None:
    replayed = MetricObservation(TIME, (700.0,))
    observed = Observation(
        TEST, {"latency": WALL, "pcc": PCC, TIME.name: replayed}, hardware=Hardware("host", "x86")
    )
    found = Replaying(tmp_path).complete(observed, Artifact(arch="blackhole", devices=4))
    assert found == replace(
        observed,
        metrics={"pcc": PCC, TIME.name: replayed},
        hardware=Hardware("blackhole", "unknown", "1x4"),
    )
