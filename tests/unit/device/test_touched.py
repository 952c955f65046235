"""Whether a process has touched a chip, and where."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from pytest_ttnn_perf.device.chips import Touched


@pytest.fixture
def ttnn(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a ttnn that is loaded and watched by nobody yet."""
    module = ModuleType("ttnn")
    vars(module).update(
        get_num_devices=lambda: 2,
        open_device=lambda *, device_id: f"device {device_id}",
        get_arch_name=lambda: "blackhole",
        cluster=SimpleNamespace(get_cluster_type=lambda: "P150"),
    )
    monkeypatch.setitem(sys.modules, "ttnn", module)
    return module


def watched() -> Touched:
    touched = Touched()
    touched.watch()
    return touched


def test_the_first_call_is_told_with_its_place(ttnn: ModuleType) -> None:
    touched = watched()
    line = sys._getframe().f_lineno + 1
    assert ttnn.get_num_devices() == 2
    assert ttnn.open_device(device_id=0) == "device 0"
    assert touched.by == f"ttnn.get_num_devices in {__file__}:{line}"


def test_a_question_to_the_cluster_takes_the_chips_too(ttnn: ModuleType) -> None:
    touched = watched()
    assert ttnn.cluster.get_cluster_type() == "P150"
    assert touched.by is not None
    assert touched.by.startswith(f"ttnn.cluster.get_cluster_type in {__file__}:")
