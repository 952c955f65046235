"""The users' ground under the gate: unchanged, and left as it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.behaviour.model import counts_of
from tests.device.ground import ground
from tests.device.rig import Rig, play, said
from tests.device.script import Op

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Ran

MODELS = "models/mlp"
JUNIT = "generated/test_reports/most_recent_tests.xml"
OPS = (Op("linear", 6e6), Op("relu", 5e5), Op("matmul", 3.5e6))
SCRIPT = play(cluster="N300", chips=2, remote=1, ops=OPS, wall=4.0)
#: Folders that a gated run may fill.
OURS = {".ttnn_perf", "baselines"}


def project(path: Path) -> Rig:
    """Return the ground, on a machine of its own."""
    rig = Rig(path)
    ground(rig.project)
    rig.machine.play(SCRIPT)
    return rig


def cases(rig: Rig) -> dict[str, str]:
    """Return how each test ended, as the JUnit report at the user's path has it."""
    found = ET.parse(rig.project / JUNIT).getroot().iter("testcase")
    return {
        f"{case.get('classname')}::{case.get('name')}": next(
            (child.tag for child in case if child.tag in {"failure", "error", "skipped"}), "passed"
        )
        for case in found
    }


def files(rig: Rig) -> set[str]:
    """Return what is in the project, but for what lies in folders of ours."""
    found = (path.relative_to(rig.project) for path in rig.project.rglob("*") if path.is_file())
    return {str(path) for path in found if path.parts[0] not in OURS}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rig, Ran]:
    """Return the ground as its users know it: run without the gate."""
    rig = project(tmp_path_factory.mktemp("plain"))
    return rig, rig.pytest(None, MODELS)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rig, Ran]:
    """Return the ground with baselines, and the run that recorded them."""
    rig = project(tmp_path_factory.mktemp("gated"))
    ran = rig.pytest(None, MODELS, "--ttnn-perf-update=new", "--ttnn-perf-confirm=0")
    assert ran.code == 0, ran.text + ran.errors
    return rig, ran


def test_recording_and_gating_end_as_the_plain_run_does(
    plain: tuple[Rig, Ran], recorded: tuple[Rig, Ran], tmp_path: Path
) -> None:
    (before, without), (_, new) = plain, recorded
    rig = recorded[0].copied_to(tmp_path)
    for ran in (without, new):
        assert ran.code == 0, ran.text
        assert counts_of(ran).startswith("4 passed, 1 skipped")
    keys = {path.name for path in (rig.project / "baselines").iterdir() if path.is_dir()}
    assert keys == {"wormhole_b0-n300-1x1", "wormhole_b0-n300-1x2"}
    assert cases(rig) == cases(before)

    gated = rig.pytest(SCRIPT, MODELS, "--ttnn-perf")

    assert gated.code == 0, gated.text
    assert counts_of(gated).startswith("4 passed, 1 skipped")
    assert cases(rig) == cases(before)
    outcomes = {pair for test in rig.record()["tests"] for pair in rig.outcomes(test).items()}
    assert {outcome for _, outcome in outcomes} == {"WITHIN"}
    assert "wall_time" in {name for name, _ in outcomes}
    assert "ttnn-perf: device pass: profiling 5 tests" in said(gated)


def test_nothing_is_left_beside_the_users_files(
    plain: tuple[Rig, Ran], recorded: tuple[Rig, Ran]
) -> None:
    """What opening a device logs goes to folders of the workers, which are gone."""
    rig, _ = recorded
    by_device = {f"generated/{name}/{name}.log" for name in ("fabric", "inspector", "watcher")}
    assert files(plain[0]) - files(rig) == by_device
    assert files(rig) <= files(plain[0])
    assert {path.name for path in (rig.project / ".ttnn_perf").iterdir()} == {
        ".gitignore", "reports", "runs",
    }  # fmt: skip
    left = [path for path in (rig.path / "tmp").iterdir() if not path.name.startswith("pytest-")]
    assert [path.name for path in left] == ["ttnn-perf-locks"]
