"""``--ttnn-perf-profiler tracy``: tests run under its launcher, and found in its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, refusal_of
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

    from tests.harness.project import Ran

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


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rig, Ran]:
    """Return a project with baselines from Tracy, and the run that recorded them."""
    rig = Rig(tmp_path_factory.mktemp("recorded")).write(conftest=CONFTEST, test_models=ODD)
    ran = rig.pytest(play(), *UPDATE, TRACY)
    assert ran.code == 0, ran.text + ran.errors
    return rig, ran


def test_each_call_is_found_between_its_signposts(recorded: tuple[Rig, Ran]) -> None:
    rig, ran = recorded
    assert (ran.code, counts_of(ran)) == (0, "4 passed")
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


def test_a_build_without_tracy_is_refused(tmp_path: Path) -> None:
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_models=MODELS)

    ran = rig.pytest(play(tracy=False), "--ttnn-perf", TRACY)

    assert refusal_of(ran) == (
        "--ttnn-perf-profiler tracy: ttnn 0.81.1 is built without Tracy; use realtime, or a "
        "Tracy-enabled build"
    )
    assert rig.machine.journal() == []


@pytest.mark.long
def test_tracy_that_ends_without_a_report_is_said_and_its_metrics_are_no_data(
    recorded: tuple[Rig, Ran], tmp_path: Path
) -> None:
    rig = recorded[0].copied_to(tmp_path)

    ran = rig.pytest(play(lost_programs=1), "--ttnn-perf", "--ttnn-perf-confirm=0", TRACY)

    assert (ran.code, counts_of(ran)) == (1, "2 failed")
    folder = next((rig.project / ".ttnn_perf" / "passes").rglob("1-device"))
    place = str(folder).replace(folder.parent.name, "RUN-ID")
    assert said(ran)[1:] == [
        HEADING,
        f"ttnn-perf: device pass: Tracy ended with exit code 1 without a report; see {place}",
    ]
    assert "Device data missing" in (folder / "worker.log").read_text()
    told = rig.outcomes(SUM)
    assert told["device_kernel_time"] == "NO_DATA"  # and says so for its parts
    assert told["wall_time"] == "WITHIN"
