"""``--ttnn-perf-passes`` and ``passes``: leave out the wall or the device pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of
from tests.device.rig import (
    DENSE,
    Rig,
    play,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Ran

GATED = ("--ttnn-perf", "--ttnn-perf-confirm=0")
#: What the device pass tells of a model; a graph is captured in whichever pass there is.
OF_DEVICE = {
    "device_kernel_time",
    "device_kernel_time_elementwise",
    "device_kernel_time_matmul",
    "op_count",
}


@pytest.fixture
def rig(models: tuple[Rig, Ran], tmp_path: Path) -> Rig:
    """Return a project with baselines of both passes, on a machine of its own."""
    return models[0].copied_to(tmp_path)


def test_what_is_left_out_is_not_missed(rig: Rig) -> None:
    (rig.project / "ttnn_perf.toml").write_text('passes = "wall"\n')

    ran = rig.pytest(play(), *GATED, "--ttnn-perf-passes", "device")

    assert (ran.code, counts_of(ran)) == (0, "2 passed"), ran.text
    assert rig.workers() == ["1-device"]
    outcomes = rig.outcomes(DENSE)
    assert outcomes.keys() >= OF_DEVICE | {"report_op_count", "trace_buffer_bytes"}
    assert "wall_time" not in outcomes
    assert set(outcomes.values()) == {"WITHIN"}
