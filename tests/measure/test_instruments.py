"""A clock alone, and artifacts in place of devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.settings import Settings, TestSettings
from pytest_ttnn_perf.measure.devices import BesideDevices, Printing, Profiling, Signposting
from pytest_ttnn_perf.measure.instruments import Instruments, Replaying
from pytest_ttnn_perf.measure.observer import Observer
from pytest_ttnn_perf.measure.profilers import OpenDevices

TEST = "models/test_llama.py::test_decode"
TIME = Metric("device_kernel_time", "ns", Better.LOWER, Kind.TIME, Source.REPLAY)


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
