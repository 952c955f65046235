"""Which instruments a process has, by what is installed, asked for and assigned."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from pytest_ttnn_perf.core.settings import ProfilerKind, Settings
from pytest_ttnn_perf.machine.ttnn import error_text
from pytest_ttnn_perf.measure.devices import BesideDevices
from pytest_ttnn_perf.measure.instruments import Instruments, instruments_for

OFF, REALTIME = ProfilerKind.OFF, ProfilerKind.REALTIME
SETTINGS = Settings(artifacts=Path("/project/.ttnn_perf"))


@pytest.fixture
def ttnn(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a loaded ttnn that can open a device."""
    module = ModuleType("ttnn")
    module.__spec__ = ModuleSpec("ttnn", None)
    device = SimpleNamespace(arch=lambda: "wormhole_b0", get_device_ids=lambda: [0])
    vars(module)["open_device"] = lambda **_: device
    monkeypatch.setitem(sys.modules, "ttnn", module)
    monkeypatch.setenv("TT_METAL_CACHE", "/does/not/exist")
    return module


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("ValueError", "shapes differ", "ValueError: shapes differ"),
        ("ValueError", "\n  shapes differ\nin two dimensions", "ValueError: shapes differ"),
        ("AssertionError", "", "AssertionError"),
        ("AssertionError", " \n ", "AssertionError"),
        (
            "RuntimeError",
            "TT_FATAL @ /project/tt_metal/a.cpp:129: n > 0\ninfo:\nNo chips\ndetected\n"
            "backtrace:\n --- f()",
            "RuntimeError: No chips detected",
        ),
        (
            "RuntimeError",
            "TT_THROW @ a.cpp:1: tt::exception\nbacktrace:\n --- f()",
            "RuntimeError: TT_THROW @ a.cpp:1: tt::exception",
        ),
    ],
    ids=["one line", "two lines", "none", "blank", "cause", "no cause"],
)
def test_an_error_in_one_line(kind: str, text: str, told: str) -> None:
    assert error_text(kind, text) == told


@pytest.mark.usefixtures("ttnn")
def test_kernels_that_were_compiled_before_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tt-metal-cache" / "build" / "kernel").mkdir(parents=True)
    monkeypatch.setenv("TT_METAL_CACHE", str(tmp_path))
    found = instruments_for(SETTINGS, OFF)
    assert isinstance(found, BesideDevices)
    assert found.kernels_cached


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
