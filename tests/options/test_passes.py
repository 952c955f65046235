"""``--ttnn-perf-passes`` and ``passes``: leave out the wall or the device pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, refusal_of
from tests.device.rig import (
    CONFTEST,
    DENSE,
    KEY,
    MODELS,
    UPDATE,
    Rig,
    play,
    said,
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


@pytest.mark.long
def test_what_is_left_out_is_not_recorded_and_can_be_added_later(tmp_path: Path) -> None:
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_models=MODELS)

    wall = rig.pytest(play(), *UPDATE, "-k", "dense", "--ttnn-perf-passes=wall")

    assert (wall.code, counts_of(wall)) == (0, "1 passed, 1 deselected")
    assert not OF_DEVICE & set(rig.outcomes(DENSE))
    assert (rig.project / "baselines" / KEY / "test_models.json").exists()

    both = rig.pytest(play(), *UPDATE, "-k", "dense")

    assert (both.code, counts_of(both)) == (0, "1 passed, 1 deselected")
    outcomes = rig.outcomes(DENSE)
    assert {name for name, outcome in outcomes.items() if outcome == "NO_BASELINE"} == OF_DEVICE
    assert set(rig.record()["tests"][DENSE]["written"]) == OF_DEVICE


@pytest.mark.long
@pytest.mark.parametrize(
    ("profiler", "why"),
    [
        ("realtime", "there is no device pass: profiler realtime (as asked)"),
        ("tracy", "tracy needs a wall pass too; use device"),
    ],
)
def test_a_device_pass_that_there_is_not_is_refused(rig: Rig, profiler: str, why: str) -> None:
    options = ("--ttnn-perf-passes=device", f"--ttnn-perf-profiler={profiler}")

    ran = rig.pytest(play(), *GATED, *options)

    assert refusal_of(ran) == f"--ttnn-perf-passes device: {why}"
    assert said(ran) == []
    assert rig.machine.journal() == []
