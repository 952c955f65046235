"""A sweep on a device: points are filed under the board, and may run out of its memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of
from tests.device.rig import CONFTEST, KEY, UPDATE, Rig, play

if TYPE_CHECKING:
    from pathlib import Path

#: The model is built by a fixture, as weights are: that is where most run out of memory.
SWEEP = """
    import os

    import numpy as np
    import pytest
    import ttnn

    @pytest.fixture
    def model(device, batch):
        if batch > int(os.environ["ROOM"]):
            raise RuntimeError(
                "TT_FATAL @ /tt_metal/impl/allocator/bank_manager.cpp:462: false\\ninfo:\\n"
                "Out of Memory: Not enough space to allocate 1024 B DRAM buffer across 12 banks\\n"
                "backtrace:\\n --- tt::tt_metal::BankManager"
            )
        x, weight = (
            ttnn.from_torch(np.ones((rows, 32), np.float32), layout=ttnn.TILE_LAYOUT, device=device)
            for rows in (32 * batch, 32)
        )
        return lambda: ttnn.matmul(x, weight)

    @pytest.mark.ttnn_perf(warmup=1, iterations=3, sweep={"batch": [1, 2, 4]})
    def test_model(ttnn_perf, model):
        ttnn_perf.measure(model)
"""


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setenv("ROOM", "4")
    return Rig(tmp_path).write(conftest=CONFTEST, test_models=SWEEP)


@pytest.mark.long
def test_a_point_that_does_not_fit_any_more_fails_under_the_key_of_its_board(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert counts_of(rig.pytest(play(), *UPDATE)) == "3 passed"
    stored = rig.project / "baselines" / KEY / "test_models.json"
    assert len(json.loads(stored.read_text())["tests"]) == 3

    monkeypatch.setenv("ROOM", "2")
    ran = rig.pytest(play(), "--ttnn-perf", "--ttnn-perf-confirm=0")

    assert counts_of(ran) == "2 passed, 1 error"  # pytest calls a failed setup so
    assert "REGRESSED: out of memory, and it used to fit (baseline device_kernel_time" in ran.text
    record = rig.record()
    point = record["tests"]["test_models.py::test_model[batch=4]"]
    assert point["hardware"]["arch"] == "wormhole_b0"
    assert point["out_of_memory"].startswith("Not enough space to allocate 1024 B")
    (sweep,) = record["sweeps"]
    assert [each["state"] for each in sweep["points"]] == ["measured", "measured", "out of memory"]
