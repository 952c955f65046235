"""``--ttnn-perf-profiler ttlang``: what kernels print in a device pass of one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.test_printed import EXPECTED, SUMMARY
from tests.device.rig import CONFTEST, Rig, play

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = """
    import os
    from pathlib import Path

    import numpy as np
    import pytest
    import ttnn

    @pytest.mark.ttnn_perf(tolerance={"wall_time": 0.9})
    def test_kernel(ttnn_perf, device):
        x = ttnn.from_torch(np.ones((32, 32)), layout=ttnn.TILE_LAYOUT, device=device)

        def kernel():
            if os.environ.get("TTLANG_PERF_DUMP") == "1":
                print(Path(__file__).with_name("printed.txt").read_text())
            return ttnn.add(x, x)

        ttnn_perf.measure(kernel)
"""
TEST = "test_kernel.py::test_kernel"


def test_what_a_kernel_prints_is_taken_from_its_one_call(tmp_path: Path) -> None:
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_kernel=KERNEL)
    (rig.project / "printed.txt").write_text(SUMMARY.replace("blackhole", "wormhole_b0"))

    ran = rig.pytest(
        play(tracy=True), "--ttnn-perf-update=new", "--ttnn-perf-confirm=0",
        "--ttnn-perf-profiler=ttlang",
    )  # fmt: skip

    assert ran.code == 0, ran.text
    metrics = rig.metrics(TEST)
    measured = {name: metrics[name]["samples"] for name in metrics if name.startswith("kernel_")}
    assert measured == EXPECTED
    assert metrics["wall_time"]["source"] == "wall"
    profiled, plain = rig.machine.journal()
    assert profiled["variables"]["TTLANG_PERF_DUMP"] == "1"
    assert "TTLANG_PERF_DUMP" not in plain["variables"]
