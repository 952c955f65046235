"""Two runs in one checkout, and several processes of one run: none sees the files of another."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.behaviour.model import counts_of
from tests.device.rig import CONFTEST, Rig, play

if TYPE_CHECKING:
    from pathlib import Path

#: Two sides of one test. That with more ops has captured its first call when it lets the other
#: run, from its beginning to its end, before it goes on to read what it has captured.
SIDES = """
    import os, time
    from pathlib import Path

    import numpy as np
    import pytest
    import ttnn

    calls = 0

    @pytest.mark.ttnn_perf(warmup=1, iterations=2)
    def test_side(ttnn_perf, device):
        ones = np.ones((32, 32), np.float32)
        x = ttnn.from_torch(ones, layout=ttnn.TILE_LAYOUT, device=device)

        def longer():
            global calls
            calls += 1
            if calls == 2:
                Path("captured").touch()
                while not Path("other-ended").exists():
                    time.sleep(0.01)
            return ttnn.relu(ttnn.matmul(x, x))

        ttnn_perf.measure(longer if os.environ["SIDE"] == "longer" else lambda: ttnn.add(x, x))
"""
TEST = "test_side.py::test_side"
PATIENCE_S = 300.0


def two_chips(rig: Rig) -> Rig:
    (rig.path / "devices").mkdir()
    for chip in ("0", "1"):
        (rig.path / "devices" / chip).touch()
    rig.machine.play(play(chips=2, tracy=False))
    return rig


def test_two_runs_in_one_checkout_read_what_they_have_captured_themselves(tmp_path: Path) -> None:
    rig = two_chips(Rig(tmp_path).write(conftest=CONFTEST, test_side=SIDES))
    common = ("--ttnn-perf-isolate=process", "--ttnn-perf-confirm=0")
    words = [*common, "--ttnn-perf-update=new", "--ttnn-perf-json=longer.json"]
    longer = subprocess.Popen(
        [sys.executable, "-m", "pytest", *words], cwd=rig.project, text=True,
        env=rig.environment(SIDE="longer", TT_VISIBLE_DEVICES="0"), stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        end_s = time.monotonic() + PATIENCE_S
        while not (rig.project / "captured").exists() and time.monotonic() < end_s:
            time.sleep(0.01)
        other = rig.pytest(
            None, *common, "--ttnn-perf", "--ttnn-perf-json=other.json", SIDE="other",
            TT_VISIBLE_DEVICES="1",
        )  # fmt: skip
        (rig.project / "other-ended").touch()
        said, _ = longer.communicate(timeout=PATIENCE_S)
    finally:
        longer.kill()

    assert longer.returncode == 0, said
    assert "1 failed" in counts_of(other), "it has no baseline"
    for side, ops in (("longer", 2), ("other", 1)):
        record = json.loads((rig.project / f"{side}.json").read_text())
        metrics = record["tests"][TEST]["metrics"]
        assert metrics["report_op_count"]["samples"] == [ops], side
    (file,) = (rig.project / "baselines").rglob("test_side.json")
    stored = json.loads(file.read_text())["tests"]["test_side"]["metrics"]
    assert [session[:3] for session in stored["report_op_count"]["sessions"]] == [[2, 0, 1]]
