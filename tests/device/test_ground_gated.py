"""The users' ground under the gate: unchanged, and left as it was found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from tests.behaviour.model import counts_of
from tests.device.ground import ground
from tests.device.rig import Rig, play, said
from tests.device.script import Fault, Op

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Ran

MODELS = "models/mlp"
JUNIT = "generated/test_reports/most_recent_tests.xml"
OPS = (Op("linear", 6e6), Op("relu", 5e5), Op("matmul", 3.5e6))
SCRIPT = play(cluster="N300", chips=2, remote=1, ops=OPS, wall=4.0)
#: Keeps the environment that each process of a run begins and ends with, beside the project.
SPY = """\
import atexit, json, os
from pathlib import Path

def environment():
    found = {os.fsdecode(name): os.fsdecode(value) for name, value in os.environb.items()}
    found.pop("PYTEST_VERSION", None)  # which pytest sets for as long as it runs
    return found

before = environment()

@atexit.register  # conftest files are told the role of a process until pytest is over
def write():
    kept = {"before": before, "after": environment()}
    Path(os.environ["SPY"], f"{os.getpid()}.json").write_text(json.dumps(kept))
"""
#: Folders that a gated run may fill.
OURS = {".ttnn_perf", "baselines"}
PROFILING = (
    "TT_METAL_DEVICE_PROFILER",
    "TT_METAL_PROFILER_MID_RUN_DUMP",
    "TT_METAL_PROFILER_CPP_POST_PROCESS",
    "TT_METAL_PROFILER_DIR",
)


def project(path: Path) -> Rig:
    """Return the ground, on a machine of its own."""
    rig = Rig(path)
    ground(rig.project)
    (path / "plugins").mkdir()
    (path / "plugins" / "spy.py").write_text(SPY)
    (path / "spied").mkdir()
    return rig


def run(rig: Rig, *arguments: str, spied: bool = False) -> Ran:
    """Run its tests as its users do."""
    if not spied:
        return rig.pytest(None, *arguments)
    path = f"{rig.path / 'plugins'}:{rig.machine.environment()['PYTHONPATH']}"
    return rig.pytest(None, "-p", "spy", *arguments, PYTHONPATH=path, SPY=str(rig.path / "spied"))


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
    rig.machine.play(SCRIPT)
    return rig, run(rig, MODELS)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rig, Ran]:
    """Return the ground with baselines, and the run that recorded them."""
    rig = project(tmp_path_factory.mktemp("gated"))
    rig.machine.play(SCRIPT)
    ran = run(rig, MODELS, "--ttnn-perf-update=new", "--ttnn-perf-confirm=0", spied=True)
    assert ran.code == 0, ran.text + ran.errors
    return rig, ran


def processes(rig: Rig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what was spied of the pytest that the user started, and of its workers, by pid."""
    spied = {file.stem: json.loads(file.read_text()) for file in (rig.path / "spied").iterdir()}
    workers = {pid for pid, kept in spied.items() if "TTNN_PERF_ASSIGNMENT" in kept["before"]}
    first = {pid: kept for pid, kept in spied.items() if pid not in workers}
    return first, {pid: spied[pid] for pid in workers}


def test_recording_and_gating_end_as_the_plain_run_does(
    plain: tuple[Rig, Ran], recorded: tuple[Rig, Ran], tmp_path: Path
) -> None:
    (before, without), (_, new) = plain, recorded
    rig = recorded[0].copied_to(tmp_path)
    rig.machine.play(SCRIPT)
    for ran in (without, new):
        assert ran.code == 0, ran.text
        assert counts_of(ran).startswith("6 passed, 1 skipped")
    keys = {path.name for path in (rig.project / "baselines").iterdir() if path.is_dir()}
    assert keys == {"wormhole_b0-n300-1x1", "wormhole_b0-n300-1x2"}
    assert cases(rig) == cases(before)

    gated = run(rig, MODELS, "--ttnn-perf")

    assert gated.code == 0, gated.text
    assert counts_of(gated).startswith("6 passed, 1 skipped")
    assert cases(rig) == cases(before)
    outcomes = {pair for test in rig.record()["tests"] for pair in rig.outcomes(test).items()}
    assert {outcome for _, outcome in outcomes} == {"WITHIN"}
    assert "wall_time" in {name for name, _ in outcomes}
    assert "ttnn-perf: device pass: profiling 7 tests" in said(gated)


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


@pytest.mark.long
def test_chips_have_one_owner_after_another_which_is_never_the_first_process(
    recorded: tuple[Rig, Ran],
) -> None:
    rig, _ = recorded
    (orchestrator,), workers = processes(rig)
    owners = rig.machine.journal()
    pids = [str(owner["pid"]) for owner in owners]
    # No two had it at once: one that waits for another ends with an error.
    assert (len(pids), set(pids)) == (2, set(workers))
    assert orchestrator not in pids
    assert all(MODELS in owner["argv"] for owner in owners)
    device, wall = (owner["variables"] for owner in owners)
    assert {name: device[name] for name in PROFILING[:3]} == dict.fromkeys(PROFILING[:3], "1")
    assert "/passes/" in device["TT_METAL_PROFILER_DIR"]
    assert not [name for name in wall if "PROFILE" in name]


@pytest.mark.long
def test_a_test_that_fails_is_noted_once_by_the_project_itself(
    recorded: tuple[Rig, Ran], tmp_path: Path
) -> None:
    rig = recorded[0].copied_to(tmp_path)
    assert not (rig.project / "generated" / "resets.txt").exists()
    fault = Fault(kind="TT_FATAL", number=4, profiled=False)
    rig.machine.play(play(ops=OPS, faults=(fault,)))

    ran = run(rig, f"{MODELS}/tests/test_mlp_traced.py", "--ttnn-perf")

    assert ran.code == 1
    noted = (rig.project / "generated" / "resets.txt").read_text()
    assert noted == f"{MODELS}/tests/test_mlp_traced.py::test_mlp_traced[device_params0] [0]\n"
    assert set(cases(rig).values()) == {"failure"}


def test_a_test_that_profiles_itself_is_left_alone_and_its_report_is_taken(tmp_path: Path) -> None:
    rig = project(tmp_path)
    rig.machine.play(SCRIPT)
    marker = "models_device_performance_bare_metal"
    (rig.project / "ttnn_perf.toml").write_text(f"markers = ['{marker}']\n")

    ran = run(rig, "models/perf", "--ttnn-perf-update=new", "--ttnn-perf-confirm=0")

    assert ran.code == 0, ran.text
    assert "1 passed" in counts_of(ran)
    assert len(said(ran)) == 1  # the heading alone
    (owner,) = rig.machine.journal()
    # The child's profiler is its own, and knows nothing of us.
    assert owner["argv"][-1] == "models/mlp/tests/test_mlp.py::test_mlp[8]"
    assert owner["variables"]["TT_METAL_PROFILER_DIR"] == "generated/profiler/mlp"
    assert "TTNN_PERF_ASSIGNMENT" not in owner["variables"]
    (test,) = rig.record()["tests"]
    metrics = rig.metrics(test)
    assert (metrics["device_kernel_time"]["source"], metrics["op_count"]["samples"]) == (
        "device", [3],
    )  # fmt: skip
    assert metrics["device_kernel_time"]["samples"] == [1e7]
