"""Simulated devices: a key of their own, dispatch as a configuration, times that are not gated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.device.rig import CONFTEST, DENSE, MODELS, UPDATE, Rig, play

if TYPE_CHECKING:
    from pathlib import Path

SLOW = "TT_METAL_SLOW_DISPATCH_MODE"
SIMULATOR = {"TT_METAL_SIMULATOR": "/sim.so"}
MOCK = {"TT_METAL_MOCK_CLUSTER_DESC_PATH": "/cluster.yaml"}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path).write(conftest=CONFTEST, test_models=MODELS)


def run(rig: Rig, *arguments: str, **variables: str) -> dict[str, Any]:
    return run_at(5.0, rig, *arguments, **variables)


def run_at(wall: float, rig: Rig, *arguments: str, **variables: str) -> dict[str, Any]:
    """Run on a host that waits ``wall`` times as long as its device works."""
    script = play(tracy=False, wall=wall)
    ran = rig.pytest(
        script, "--ttnn-perf", "--ttnn-perf-json=run.json", *arguments, DENSE, **variables
    )
    return {"passed": ran.code == 0, "text": ran.text, **rig.record()["tests"][DENSE]}


def test_a_simulated_device_is_filed_apart_from_a_real_one(rig: Rig) -> None:
    recorded = run(rig, *UPDATE, **SIMULATOR)

    assert recorded["passed"]
    assert recorded["hardware"] == {
        "arch": "wormhole_b0", "board": "n150", "mesh": "1x1", "simulated": True,
    }  # fmt: skip
    files = [file.parent.name for file in rig.project.rglob("baselines/*/*.json")]
    assert files == ["wormhole_b0-n150-1x1-sim"]
    on_hardware = run(rig)
    assert not on_hardware["passed"]
    assert "wormhole_b0-n150-1x1-sim" in on_hardware["text"]
    assert {v["outcome"] for v in on_hardware["verdicts"].values()} == {"NOT_COMPARABLE"}


def test_its_times_are_recorded_and_its_op_counts_gated(rig: Rig) -> None:
    run(rig, *UPDATE, **SIMULATOR)
    slower = run_at(50.0, rig, **SIMULATOR)

    assert slower["passed"]
    wall_time = slower["metrics"]["wall_time"]
    assert (len(wall_time["samples"]), wall_time["gated"]) == (3, False)
    assert wall_time["note"] == "the device is simulated: its times are recorded, not gated"
    assert set(slower["verdicts"]) >= {"report_op_count"}
    assert "wall_time" not in slower["verdicts"]
    assert {v["outcome"] for v in slower["verdicts"].values()} == {"WITHIN"}
    assert "recorded only" in slower["text"]


@pytest.mark.parametrize("simulated", [SIMULATOR, MOCK], ids=["simulator", "mock"])
def test_slow_and_fast_dispatch_are_different_configurations(
    rig: Rig, simulated: dict[str, str]
) -> None:
    recorded = run(rig, *UPDATE, **simulated, **{SLOW: "1"})
    assert recorded["configuration"]["slow_dispatch"] is True
    assert ("mock_cluster" in recorded["configuration"]) is (simulated is MOCK)

    fast = run(rig, **simulated)

    assert "slow_dispatch" not in fast["configuration"]
    assert {v["outcome"] for v in fast["verdicts"].values()} == {"NOT_COMPARABLE"}
    assert "slow_dispatch is None, in the baseline True" in fast["text"]
