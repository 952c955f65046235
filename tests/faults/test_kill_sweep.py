"""Commands that are killed while they change baselines: some of the steps of each.

All of them: ``python -m tests.faults.kill_sweep``.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.faults.kill_sweep import SCENES, Scene, Sweep

if TYPE_CHECKING:
    from pathlib import Path

#: A run of pytest takes a second, a command of ours some milliseconds.
TRIES = {"update": 3, "calibrate": 1}


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name.replace(" ", "_"))
def test_a_command_that_is_killed_has_done_all_or_nothing_and_can_be_given_again(
    tmp_path: Path, scene: Scene
) -> None:
    if scene.name == "merge" and shutil.which("git") is None:
        pytest.skip("needs git")
    sweep = Sweep(scene, tmp_path / "sweep", most_tries=TRIES.get(scene.name, 12))
    found = dict(sweep.failures())
    assert found
    assert {number: text for number, text in found.items() if text is not None} == {}
