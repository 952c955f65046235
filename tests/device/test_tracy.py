"""``--ttnn-perf-profiler tracy``: tests run under its launcher, and found in its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.model import counts_of
from tests.device.rig import (
    CONFTEST,
    DENSE,
    KEY,
    MODELS,
    SUM,
    UPDATE,
    Rig,
    play,
    said,
    sampled,
)

if TYPE_CHECKING:
    from pathlib import Path

TRACY = "--ttnn-perf-profiler=tracy"
HEADING = "ttnn-perf: device pass: profiling with Tracy; its report comes at the end"
#: Ids with what a shell, or a reader of signposts, may take for something else: the launcher hands
#: its words to a shell, and one ends as the signpost does of the test that it follows.
ODD = (
    MODELS
    + """
    @quick
    @pytest.mark.parametrize("what", ["$HOME; a 'b' \\"c\\" *"])
    def test_odd(ttnn_perf, device, what):
        ttnn_perf.measure(ttnn.add, put(device), put(device))

    @quick
    def test_sum_END(ttnn_perf, device):
        ttnn_perf.measure(ttnn.add, put(device), put(device))
"""
)


def test_each_call_is_found_between_its_signposts(tmp_path: Path) -> None:
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_models=ODD)

    ran = rig.pytest(play(), *UPDATE, TRACY)

    assert (ran.code, counts_of(ran)) == (0, "4 passed"), ran.text + ran.errors
    heading, *rest = said(ran)
    assert heading.endswith(", profiler tracy (as asked)")
    assert rest == [HEADING]
    assert rig.workers() == ["1-device", "2-wall"]
    # One warm call, then three between signposts: what is outside them does not count.
    assert sampled(rig.metrics(DENSE), "tracy") == {
        "device_kernel_time": ("tracy", [6.5e6] * 3),
        "op_count": ("tracy", [2]),
        "device_kernel_time_matmul": ("tracy", [6e6] * 3),
        "device_kernel_time_elementwise": ("tracy", [5e5] * 3),
    }
    (odd,) = (test for test in rig.record()["tests"] if "test_odd" in test)
    for test in (odd, SUM, f"{SUM}_END"):
        assert sampled(rig.metrics(test), "tracy")["device_kernel_time"] == ("tracy", [2e6] * 3)
    table = rig.project / "baselines" / KEY / "test_models.ops" / "test_dense.csv"
    operand = "1x1x32x32 TILE BFLOAT16 DRAM_INTERLEAVED"
    assert table.read_text().splitlines()[1:] == [
        f"MatmulDeviceOperation,{operand},,64,HiFi2,activation=none,1,6000000,6000000,"
        "DEVICE KERNEL DURATION [ns]",
        f"UnaryDeviceOperation,{operand},,64,HiFi2,activation=none,1,500000,500000,"
        "DEVICE KERNEL DURATION [ns]",
    ]
    assert not (rig.project / ".ttnn_perf" / "passes").exists()
