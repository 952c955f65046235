"""Commands that are killed while they change baselines: some of the steps of each, or all."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.faults.kill_sweep import SCENES, Scene, Sweep

if TYPE_CHECKING:
    from pathlib import Path

#: How many kills each gets in every run. A run of pytest takes a second, and gets none; of commands
#: that write through the same store, one is looked at closely.
TRIES = {"accept": 4, "rename": 2, "refresh": 2, "forget": 2, "prune": 2, "merge": 3}


@pytest.mark.parametrize(
    ("scene", "tries"),
    [
        *(
            pytest.param(s, TRIES[s.name], id=s.name.replace(" ", "_"))
            for s in SCENES
            if s.name in TRIES
        ),
        *(
            pytest.param(s, None, id=f"all_of_{s.name}".replace(" ", "_"), marks=pytest.mark.long)
            for s in SCENES
        ),
    ],
)
def test_a_command_that_is_killed_has_done_all_or_nothing_and_can_be_given_again(
    tmp_path: Path, scene: Scene, tries: int | None
) -> None:
    if scene.name == "merge" and shutil.which("git") is None:
        pytest.skip("needs git")
    sweep = Sweep(scene, tmp_path / "sweep", most_tries=tries)
    found = dict(sweep.failures())
    assert found
    assert {number: text for number, text in found.items() if text is not None} == {}
