"""Instruments of a process, by what is installed, asked for and assigned."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_ttnn_perf.core.settings import ProfilerKind, Settings, TestSettings
from pytest_ttnn_perf.measure.devices import BesideDevices, Printing, Profiling, Signposting
from pytest_ttnn_perf.measure.instruments import Instruments, Replaying, instruments_for
from pytest_ttnn_perf.measure.observer import Observer
from pytest_ttnn_perf.measure.profilers import OpenDevices


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
    observer = Observer("test_decode", settings, Settings(), instruments)
    observer.record("latency", 5.0, unit="ns")
    assert ("load_1m" in observer.finish().environment) is expected


def test_ttnn_is_not_imported_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "ttnn", raising=False)
    (tmp_path / "ttnn.py").write_text("raise AssertionError", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    found = instruments_for(Settings(), ProfilerKind.OFF)
    assert isinstance(found, BesideDevices)
    assert (found.devices.runtime, found.sync) == (None, None)
    assert "ttnn" not in sys.modules


def test_a_simulator_that_stands_in_for_ttnn_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ttnn", ModuleType("ttl.sim.ttnnsim"))
    with pytest.raises(ValueError, match=r"ttnn\.__spec__ is None"):
        importlib.util.find_spec("ttnn")
    assert isinstance(instruments_for(Settings(), ProfilerKind.OFF), Instruments)
