"""``ttnn-perf hardware-check`` on the scripted device: every step holds."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.device.rig import Rig, play
from tests.device.script import Op

if TYPE_CHECKING:
    from pathlib import Path

MAIN = "import sys; from pytest_ttnn_perf.cli.main import main; sys.exit(main())"


@pytest.mark.long  # waits for the planted hang to be silent for twenty seconds
def test_every_step_holds_on_a_device_with_tracy(tmp_path: Path) -> None:
    rig = Rig(tmp_path).write(conftest="")
    rig.machine.play(play(ops=(Op("matmul", 6e6), Op("add", 2e6), Op("relu", 5e5))))

    done = subprocess.run(
        [sys.executable, "-c", MAIN, "hardware-check", "--reset", "true"], cwd=rig.project,
        env=rig.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip

    text = (rig.project / "hardware-check" / "bundle.json").read_text()
    bundle = json.loads(text)
    told = {step["name"]: step["held"] for step in bundle["steps"]}
    expected = (
        "record", "memory", "profiler realtime", "profiler device", "profiler tracy",
        "same model", "planted slow-down", "PCC", "planted hang", "two processes",
    )  # fmt: skip
    assert [name for name in expected if told.get(name) is not True] == [], done.stdout
    assert bundle["hardware"] == "wormhole_b0-n150-1x1"
    assert str(tmp_path) not in text
    assert platform.node() not in text
