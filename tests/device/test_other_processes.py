"""Devices beside other processes: launchers, a conftest that has the chips, xdist, full memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import refusal_of
from tests.device.rig import CONFTEST, MODELS, UPDATE, Rig, play

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path).write(conftest=CONFTEST, test_models=MODELS)


def ranked(number: int, size: int = 2) -> dict[str, str]:
    return {"OMPI_COMM_WORLD_RANK": str(number), "OMPI_COMM_WORLD_SIZE": str(size)}


def test_under_a_launcher_rank_0_judges_in_its_own_process(rig: Rig) -> None:
    ran = rig.pytest(play(tracy=True), *UPDATE, **ranked(0))

    assert ran.code == 0, ran.text
    assert "profiler off (device needs a worker)" in ran.text
    assert len(rig.machine.journal()) == 1
    assert (rig.project / "baselines" / "wormhole_b0-n150-1x1" / "test_models.json").exists()


def test_a_conftest_that_has_the_chips_is_named_and_nothing_waits(rig: Rig) -> None:
    rig.write(conftest=CONFTEST + "\n    COUNT = ttnn.get_num_devices()\n")

    ran = rig.pytest(play(), "--ttnn-perf")

    assert ran.code == 4
    place = f"ttnn.get_num_devices in {rig.project}/conftest.py:"
    said = refusal_of(ran)
    assert said.startswith(f"--ttnn-perf: {place}")
    assert said.endswith(
        " took the chips, so no worker can use them: "
        "call it in a fixture, or use --ttnn-perf-isolate inline"
    )


def test_more_processes_than_chips_are_refused_before_anything_runs(rig: Rig) -> None:
    ran = rig.pytest(play(), "--ttnn-perf", "-n", "2", PYTEST_ADDOPTS="-p no:hypothesispytest")

    assert refusal_of(ran) == (
        "-n 2: each process needs a chip of its own, and there is 1 chip: use -n 1"
    )
    assert rig.machine.journal() == []
