"""``--ttnn-perf-reset`` and ``reset``: what makes a device usable again that a worker left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of
from tests.device.rig import CONFTEST, MODELS, Rig, play, said
from tests.device.script import Fault

if TYPE_CHECKING:
    from pathlib import Path


OPTIONS = ("--ttnn-perf", "--ttnn-perf-missing=ignore", "--ttnn-perf-confirm=0")
WALL = "--ttnn-perf-passes=wall"
#: The first process to have the chip dies with it.
CRASH = play(faults=(Fault(kind="segfault", number=3, processes=(0,)),))


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path).write(conftest=CONFTEST, test_models=MODELS)


def reset(rig: Rig) -> str | None:
    """Return what the command left, once."""
    file = rig.project / "reset"
    text = file.read_text() if file.exists() else None
    file.unlink(missing_ok=True)
    return text


def test_twin(rig: Rig) -> None:
    (rig.project / "ttnn_perf.toml").write_text("reset = \"echo 'the file' >> reset\"\n")

    ran = rig.pytest(CRASH, *OPTIONS, WALL)

    assert (ran.code, counts_of(ran)) == (1, "1 failed, 1 passed")
    assert said(ran)[-1] == "ttnn-perf: resetting the device: echo 'the file' >> reset"
    assert reset(rig) == "the file\n"
    assert rig.workers() == ["1-wall", "2-wall"]


def test_a_device_that_is_fine_is_left_alone(rig: Rig) -> None:
    ran = rig.pytest(play(), *OPTIONS, WALL, "--ttnn-perf-reset", "touch reset")

    assert (ran.code, counts_of(ran)) == (0, "2 passed")
    assert reset(rig) is None


def test_a_worker_that_had_no_device_leaves_none(rig: Rig) -> None:
    rig.write(test_models="import os\ndef test_model(ttnn_perf):\n    os.abort()")

    ran = rig.pytest(play(), *OPTIONS, WALL, "--ttnn-perf-reset", "touch reset")

    assert (ran.code, counts_of(ran)) == (1, "1 failed")
    assert reset(rig) is None


def test_the_option_wins_and_a_command_that_fails_ends_the_pass(rig: Rig) -> None:
    (rig.project / "ttnn_perf.toml").write_text('reset = "touch reset"\n')

    ran = rig.pytest(CRASH, *OPTIONS, WALL, "--ttnn-perf-reset", "no-such-command")

    assert (ran.code, counts_of(ran)) == (1, "1 failed, 1 error")
    assert (
        "its worker was not started: one before it left a device that is not usable: "
        "no-such-command ended with code 127: "
    ) in ran.text
    assert rig.workers() == ["1-wall"]
    assert reset(rig) is None
