"""``ttnn-perf ab`` on a machine with a device: each side is profiled, and ops say what changed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.device.rig import CONFTEST, DENSE, Rig, play

if TYPE_CHECKING:
    from pathlib import Path

MODEL = """
    import numpy as np
    import pytest
    import ttnn

    @pytest.mark.ttnn_perf(warmup=1, iterations=2)
    def test_dense(ttnn_perf, device):
        ones = np.ones((32, 32), np.float32)
        x = ttnn.from_torch(ones, layout=ttnn.TILE_LAYOUT, device=device)
        ttnn_perf.measure(lambda: ttnn.relu({model}))
"""


def git(rig: Rig, *words: str) -> None:
    who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
    command = ["git", *who, *words]
    subprocess.run(command, cwd=rig.project, env=rig.environment(), capture_output=True, check=True)


@pytest.mark.long
def test_a_new_op_is_found_on_the_device_and_named(tmp_path: Path) -> None:
    rig = Rig(tmp_path).write(
        conftest=CONFTEST, test_models=MODEL.format(model="ttnn.matmul(x, x)")
    )
    git(rig, "init", "--quiet")
    git(rig, "add", "--all")
    git(rig, "commit", "--quiet", "-m", "Start")
    rig.write(test_models=MODEL.format(model="ttnn.add(ttnn.matmul(x, x), x)"))
    rig.machine.play(play(wall=1.0))

    command = [sys.executable, "-m", "pytest_ttnn_perf.cli.main", "ab", "HEAD"]
    done = subprocess.run(
        [*command, "--rounds", "4", "--format", "json"], cwd=rig.project, capture_output=True,
        env=rig.environment(), timeout=300, check=False,
    )  # fmt: skip

    assert done.returncode == 1, done.stderr
    verdicts = {v["metric"]: v for v in json.loads(done.stdout)["verdicts"] if v["test"] == DENSE}
    kernel = verdicts["device_kernel_time"]
    assert (kernel["outcome"], kernel["rounds_before"]) == ("REGRESSED", [6.5e6] * 4)
    assert (verdicts["op_count"]["outcome"], verdicts["op_count"]["after"]) == ("WITHIN", 3)
    assert verdicts["op_count"]["sentence"].endswith(
        "it explains device_kernel_time, which is judged"
    )
    assert kernel["by_op"].startswith("+30.8 % (+2.00 ms) = 1 new Binary")
    assert verdicts["op_count"]["by_op"] is None
    sides = [worker.split("-")[1] for worker in rig.workers()]
    assert sides == ["device", "ab"] * 8, "a device pass and a wall pass of each side in each round"
    assert not (rig.project / "baselines").exists()
    assert not (rig.project / ".ttnn_perf" / "reports").exists(), "whose would they be?"
    assert not list((tmp_path / "tmp").glob("ttnn-perf-ab-*"))
