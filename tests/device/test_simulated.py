"""Simulated devices: a key of their own, dispatch as a configuration, times that are not gated."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.device.rig import CONFTEST, DENSE, MODELS, UPDATE, Rig, play
from tests.device.test_ab import git

if TYPE_CHECKING:
    from pathlib import Path

SIMULATOR = {"TT_METAL_SIMULATOR": "/sim.so"}


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


@pytest.mark.long
def test_its_times_are_recorded_and_its_op_counts_gated(rig: Rig) -> None:
    run(rig, *UPDATE, **SIMULATOR)
    slower = run_at(50.0, rig, **SIMULATOR)

    assert slower["passed"]
    wall_time = slower["metrics"]["wall_time"]
    assert (len(wall_time["samples"]), wall_time["gated"]) == (3, False)
    assert set(slower["verdicts"]) >= {"report_op_count"}
    assert "wall_time" not in slower["verdicts"]
    assert {v["outcome"] for v in slower["verdicts"].values()} == {"WITHIN"}
    assert "recorded only, times of simulated devices among them" in slower["text"]
    assert "TTP006" not in slower["text"]  # a busy host is in nobody's way
    assert "full profile" not in slower["text"]


def test_an_op_count_that_changed_names_the_ops(rig: Rig) -> None:
    run(rig, *UPDATE, **SIMULATOR)
    (table,) = rig.project.rglob("baselines/**/*.ops/*.csv")
    assert table.read_text().splitlines()[1:] == [
        "ttnn.matmul,32x32 TILE BFLOAT16 DRAM_INTERLEAVED; 32x32 TILE BFLOAT16 DRAM_INTERLEAVED,"
        "32x32 TILE BFLOAT16 DRAM_INTERLEAVED,,,,1,0,0,calls",
        "ttnn.relu,32x32 TILE BFLOAT16 DRAM_INTERLEAVED,"
        "32x32 TILE BFLOAT16 DRAM_INTERLEAVED,,,,1,0,0,calls",
    ]
    twice = "ttnn.add(ttnn.add(ttnn.matmul(x, x), x), x)"
    more = MODELS.replace("ttnn.relu(ttnn.matmul(x, x))", twice)
    assert more != MODELS
    rig.write(test_models=more)

    changed = run(rig, **SIMULATOR)

    assert not changed["passed"]
    assert (
        "report_op_count 3, baseline 2: 50.0 % higher, limit no change (1 sample against 1 "
        "session); added: 2 ttnn.add 32x32; removed: 1 ttnn.relu 32x32"
    ) in " ".join(changed["text"].split())


@pytest.mark.long
def test_what_lies_there_before_the_call_is_gated(rig: Rig) -> None:
    recorded = run(rig, *UPDATE, **SIMULATOR)
    assert recorded["metrics"]["dram_resident_bytes"]["samples"] == [2048]
    assert recorded["metrics"]["l1_resident_bytes"]["samples"] == [0]
    rig.write(test_models=MODELS.replace("np.ones((32, 32)", "np.ones((4, 32, 32)"))

    larger = run(rig, **SIMULATOR)

    assert larger["verdicts"]["dram_resident_bytes"]["outcome"] == "REGRESSED"
    assert larger["verdicts"]["dram_resident_bytes"]["observed"] == 4 * 2048


@pytest.mark.long
@pytest.mark.parametrize("name", ["_added_bytes", "_peak_bytes"])
def test_sizes_that_were_stored_when_they_meant_something_else_are_not_compared_with(
    rig: Rig, name: str
) -> None:
    """They were what is left after each op, of the source ``device``, once under another name."""
    run(rig, *UPDATE, **SIMULATOR)
    (file,) = rig.project.rglob("baselines/*/*.json")
    text = file.read_text()
    assert text.count('"source": "graph"') == 3 * text.count("dram_added_bytes") > 0
    old = text.replace('"source": "graph"', '"source": "device"').replace("_added_bytes", name)
    file.write_text(old)

    again = run(rig, **SIMULATOR)

    added = {"l1_added_bytes", "dram_added_bytes", "trace_buffer_bytes"}
    outcomes = {metric: verdict["outcome"] for metric, verdict in again["verdicts"].items()}
    assert {m for m, outcome in outcomes.items() if outcome == "NOT_COMPARABLE"} == added
    assert {outcomes[metric] for metric in outcomes.keys() - added} == {"WITHIN"}
    assert "source is graph, in the baseline device" in " ".join(again["text"].split())
    assert "accept it with: ttnn-perf baseline accept" in " ".join(again["text"].split())

    run(rig, "--ttnn-perf-update=all", "--ttnn-perf-reason=another meaning", **SIMULATOR)
    assert {v["outcome"] for v in run(rig, **SIMULATOR)["verdicts"].values()} == {"WITHIN"}
    assert "_peak_bytes" not in file.read_text()


MODEL = """
    import numpy as np
    import ttnn

    class Model:
        def __init__(self, device):
            ones = np.ones(({count}, 32, 32), np.float32)
            self.weights = ttnn.from_torch(ones, layout=ttnn.TILE_LAYOUT, device=device)

        def __call__(self, x):
            return {call}
"""
TRIED = """
    import numpy as np
    import pytest
    import ttnn
    from model import Model

    @pytest.mark.ttnn_perf(warmup=1, iterations=2)
    def test_model(ttnn_perf, device):
        ones = np.ones((32, 32), np.float32)
        x = ttnn.from_torch(ones, layout=ttnn.TILE_LAYOUT, device=device)
        ttnn_perf.measure(Model(device), x)
"""
ADDED = "ttnn.add(ttnn.add(ttnn.relu(ttnn.matmul(x, self.weights)), x), x)"


@pytest.mark.long
@pytest.mark.parametrize(
    ("call", "decision", "reason"),
    [
        (
            "ttnn.relu(ttnn.matmul(x, self.weights))",
            "CANNOT_TELL",
            "no times here: memory -50.0 % (dram_added_bytes), "
            "memory -50.0 % (dram_resident_bytes), 2 ops fewer; measure on hardware",
        ),
        (f"ttnn.add({ADDED}, x)", "REVERT", "report_op_count 5, "),
    ],
)
def test_a_change_is_tried_once_and_kept_or_not_on_hardware(
    rig: Rig, call: str, decision: str, reason: str
) -> None:
    rig.write(model=MODEL.format(count=3, call=ADDED), test_models=TRIED)
    git(rig, "init", "--quiet")
    git(rig, "add", "--all")
    git(rig, "commit", "--quiet", "-m", "Start")
    rig.write(model=MODEL.format(count=1, call=call))
    rig.machine.play(play(tracy=False))

    done = subprocess.run(
        [sys.executable, "-m", "pytest_ttnn_perf.cli.main", "try", "-m", "x", "--format", "json"],
        cwd=rig.project, capture_output=True, env=rig.environment(**SIMULATOR), timeout=300,
        check=False,
    )  # fmt: skip

    told = json.loads(done.stdout)
    assert (told["decision"], told["rounds"]) == (decision, 1), done.stderr
    assert reason in told["reasons"][0]
    assert ("revert it" in told["commands"]) is (decision == "REVERT")
    assert "measure longer" not in told["commands"]
