"""Which instruments a process has, by what is installed, asked for and assigned."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_ttnn_perf.core.settings import ProfilerKind, Settings
from pytest_ttnn_perf.measure.devices import BesideDevices
from pytest_ttnn_perf.measure.instruments import Instruments, instruments_for

OFF, REALTIME = ProfilerKind.OFF, ProfilerKind.REALTIME
SETTINGS = Settings(artifacts=Path("/project/.ttnn_perf"))


def test_ttnn_is_not_imported_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "ttnn", raising=False)
    (tmp_path / "ttnn.py").write_text("raise AssertionError", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    found = instruments_for(SETTINGS, OFF)
    assert isinstance(found, BesideDevices)
    assert (found.devices.runtime, found.sync) == (None, None)
    assert "ttnn" not in sys.modules


def test_a_simulator_that_stands_in_for_ttnn_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ttnn", ModuleType("ttl.sim.ttnnsim"))
    with pytest.raises(ValueError, match=r"ttnn\.__spec__ is None"):
        importlib.util.find_spec("ttnn")
    assert isinstance(instruments_for(SETTINGS, OFF), Instruments)
