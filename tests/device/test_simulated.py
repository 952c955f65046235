"""Simulated devices: a key of their own, dispatch as a configuration, times that are not gated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.device.rig import CONFTEST, DENSE, MODELS, UPDATE, Rig, play

if TYPE_CHECKING:
    from pathlib import Path

SIMULATOR = {"TT_METAL_SIMULATOR": "/sim.so"}


def run(wall: float, rig: Rig, *arguments: str, **variables: str) -> dict[str, Any]:
    """Run on a host that waits ``wall`` times as long as its device works."""
    script = play(tracy=False, wall=wall)
    ran = rig.pytest(
        script, "--ttnn-perf", "--ttnn-perf-json=run.json", *arguments, DENSE, **variables
    )
    return {"passed": ran.code == 0, "text": ran.text, **rig.record()["tests"][DENSE]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rig, dict[str, Any]]:
    """Return a project with baselines of a simulated device, and what recorded them."""
    rig = Rig(tmp_path_factory.mktemp("simulated")).write(conftest=CONFTEST, test_models=MODELS)
    return rig, run(5.0, rig, *UPDATE, **SIMULATOR)


def test_a_simulated_device_is_filed_apart_from_a_real_one(
    recorded: tuple[Rig, dict[str, Any]],
) -> None:
    rig, simulated = recorded
    assert simulated["passed"]
    assert simulated["hardware"] == {
        "arch": "wormhole_b0", "board": "n150", "mesh": "1x1", "simulated": True,
    }  # fmt: skip
    files = [file.parent.name for file in rig.project.rglob("baselines/*/*.json")]
    assert files == ["wormhole_b0-n150-1x1-sim"]
    on_hardware = run(5.0, rig)
    assert not on_hardware["passed"]
    assert "wormhole_b0-n150-1x1-sim" in on_hardware["text"]
    assert {v["outcome"] for v in on_hardware["verdicts"].values()} == {"NOT_COMPARABLE"}


def test_its_times_are_recorded_and_its_op_counts_gated_by_name(
    recorded: tuple[Rig, dict[str, Any]], tmp_path: Path
) -> None:
    rig = recorded[0].copied_to(tmp_path)
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

    changed = run(50.0, rig, **SIMULATOR)

    assert not changed["passed"]
    assert (
        "report_op_count 50.0 % higher, none allowed (3, baseline 2); "
        "added: 2 ttnn.add 32x32; removed: 1 ttnn.relu 32x32"
    ) in " ".join(changed["text"].split())
    wall_time = changed["metrics"]["wall_time"]
    assert (len(wall_time["samples"]), wall_time["gated"]) == (3, False)
    assert "wall_time" not in changed["verdicts"]
    assert "TTP006" not in changed["text"]  # a busy host is in nobody's way


UNTIMED = """
    import numpy as np
    import pytest
    import ttnn

    @pytest.mark.{marker}
    def test_sum(device):
        x = ttnn.from_torch(np.ones((32, 32), np.float32), layout=ttnn.TILE_LAYOUT, device=device)
        ttnn.add(x, x)
"""


def test_a_test_gated_as_it_is_says_that_nothing_is_timed(tmp_path: Path) -> None:
    marked = {f"test_{name}": UNTIMED.format(marker=name) for name in ("model_perf", "ttnn_perf")}
    rig = Rig(tmp_path).write(conftest=CONFTEST, **marked)
    settings = 'gate_call_time = true\nmarkers = ["model_perf"]\n'
    (rig.project / "ttnn_perf.toml").write_text(settings)

    ran = rig.pytest(play(tracy=False), "--ttnn-perf", "--ttnn-perf-missing=fail", **SIMULATOR)

    said = " ".join(ran.text.split())
    assert "nothing is timed on a simulated device" in said
    assert "gate_call_time" not in said
    tests = rig.record()["tests"]
    (verdict,) = tests["test_model_perf.py::test_sum"]["verdicts"].values()
    assert (verdict["outcome"], verdict["reason"]) == ("NO_DATA", "nothing timed")
    found = {
        one["code"]: one["outcome"] for one in tests["test_ttnn_perf.py::test_sum"]["findings"]
    }
    assert found.get("TTP017") != "FOUND"
