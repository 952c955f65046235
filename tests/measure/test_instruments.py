"""A clock alone, and artifacts in place of devices."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import Artifact, MetricObservation, Observation
from pytest_ttnn_perf.core.settings import Settings, TestSettings
from pytest_ttnn_perf.measure.devices import BesideDevices, Printing, Profiling, Signposting
from pytest_ttnn_perf.measure.instruments import Instruments, Replaying
from pytest_ttnn_perf.measure.observer import Observer
from pytest_ttnn_perf.measure.profilers import CapturedGraph, OpenDevices

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


@pytest.mark.parametrize("needed", [True, False])
def test_a_capture_that_failed_is_no_data_where_it_is_needed(*, needed: bool) -> None:
    beside = BesideDevices(OpenDevices(), needed=needed)
    found = beside._read_capture(CapturedGraph(problem="RuntimeError: database is locked"))
    why = (
        "the graph capture failed: RuntimeError: database is locked; do without with "
        "--ttnn-perf-profiler off"
    )
    told = [(each.metric.name, each.samples, each.note) for each in found.metrics]
    assert told == ([("report_op_count", (), why)] if needed else [])


def test_kernels_that_print_nothing_are_no_data() -> None:
    (found,) = Printing(OpenDevices()).read_output("of the kernel").metrics
    why = "tt-lang printed no profile: no kernel of its own ran"
    assert (found.metric.name, found.samples, found.note) == ("kernel_time", (), why)
