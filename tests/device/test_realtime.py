"""Builds without Tracy: the real-time profiler tells device times, beside the wall times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, failure_of
from tests.device.rig import (
    CONFTEST,
    DENSE,
    MODELS,
    UPDATE,
    Rig,
    play,
    said,
    sampled,
)

if TYPE_CHECKING:
    from pathlib import Path

#: The last has a device of its own making, which is open only while it measures.
WITH_MESH = (
    MODELS
    + """
    @quick
    @pytest.mark.parametrize("mesh", [(1, 2)], ids=["1x2"], indirect=True)
    def test_mesh(ttnn_perf, mesh):
        x = put(mesh)
        ttnn_perf.measure(ttnn.add, x, x)

    @quick
    def test_host(ttnn_perf):
        ttnn_perf.measure(lambda: None)

    @quick
    def test_opens_inside(ttnn_perf):
        def model():
            device = ttnn.open_device(device_id=0)
            ttnn.add(put(device), put(device))
            ttnn.close_device(device)
        ttnn_perf.measure(model)
"""
)
MESH, HOST = "test_models.py::test_mesh[1x2]", "test_models.py::test_host"
INSIDE = "test_models.py::test_opens_inside"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path).write(conftest=CONFTEST, test_models=WITH_MESH)


def test_times_come_from_the_wall_pass_and_chips_that_tell_nothing_are_named(rig: Rig) -> None:
    ran = rig.pytest(play(tracy=False, cluster="N300", chips=2, remote=1), *UPDATE)

    # The second chip of an N300 is behind the first one, and has no such profiler.
    assert (ran.code, counts_of(ran)) == (1, "1 failed, 4 passed")
    assert said(ran) == [
        "ttnn-perf: gate on, keys of the devices that tests open, baselines baselines, update new, "
        "profiler realtime (ttnn 0.81.1 is built without Tracy)"
    ]
    assert sampled(rig.metrics(DENSE), "realtime") == {
        "device_kernel_time": ("realtime", [6.5e6, 6.5e6, 6.5e6]),
        "op_count": ("realtime", [2]),
    }
    assert rig.metrics(DENSE)["wall_time"]["source"] == "wall"
    assert failure_of(ran, "test_mesh[1x2]").splitlines()[0] == (
        "NO_DATA: device_kernel_time has no samples: nothing was recorded for chip 1 of 2"
    )
    # It was never asked for before a device was open: that ends the process.
    assert rig.workers() == ["1-wall"]
    for test in (HOST, INSIDE):
        assert not sampled(rig.metrics(test), "realtime")
    keys = (path for path in (rig.project / "baselines").iterdir() if path.is_dir())
    assert {"wormhole_b0-n300-1x1"} < {path.name for path in keys}
