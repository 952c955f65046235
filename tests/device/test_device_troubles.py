"""Devices in trouble: what they could not tell is never a pass, and no other test pays for it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, failure_of
from tests.device.rig import CONFTEST, DENSE, MODELS, SILENCE, SUM, UPDATE, Rig, play, said
from tests.device.script import Fault
from tests.harness.captures import capture, op

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Ran

GATED = ("--ttnn-perf", "--ttnn-perf-confirm=0")
MORE_ROOM = "TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT"


@pytest.fixture
def rig(models: tuple[Rig, Ran], tmp_path: Path) -> Rig:
    """Return a project with baselines, on a machine of its own."""
    return models[0].copied_to(tmp_path)


def no_data(ran: Ran, why: str) -> None:
    """Assert that the first test failed for what its device did not tell, and nothing else."""
    assert (ran.code, counts_of(ran)) == (1, "1 failed, 1 passed")
    lines = failure_of(ran, "test_dense").splitlines()
    assert re.fullmatch(f"NO_DATA: device_kernel_time has no samples: {why}", lines[0]), lines[0]
    # It says so for its parts.
    assert [line for line in lines if line.startswith("NO_DATA")] == lines[:1]


def judged(rig: Rig) -> None:
    """Assert that the wall metrics of the first test, and all of the other, were judged."""
    first = {name: outcome for name, outcome in rig.outcomes(DENSE).items() if outcome != "NO_DATA"}
    assert "wall_time" in first
    assert {*first.values(), *rig.outcomes(SUM).values()} == {"WITHIN"}


def test_dropped_markers_are_given_more_room_and_a_test_that_still_lacks_it_fails(rig: Rig) -> None:
    ran = rig.pytest(play(lost_programs=1), *GATED)

    assert (ran.code, counts_of(ran)) == (1, "2 failed")
    assert said(ran)[1:] == [
        "ttnn-perf: device pass: profiling 2 tests",
        "ttnn-perf: device pass: profiling 2 tests again, with more room: the profiler dropped "
        "markers",
    ]
    failure = failure_of(ran, "test_dense").splitlines()
    assert failure[0] == (
        "TTP001 profiler-data-dropped (error): profiler data are not whole: the device profiler "
        "ran out of room and dropped markers (limit: 0 losses)"
    )
    assert failure[4] == (
        "NO_DATA: device_kernel_time has no samples: the profiler ran out of room and dropped "
        "markers"
    )
    assert rig.outcomes(SUM)["device_kernel_time"] == "NO_DATA"
    room = [each["variables"].get(MORE_ROOM) for each in rig.machine.journal()]
    assert rig.workers() == ["1-device", "2-device", "3-wall"]
    assert room == [None, "10000", None]


def test_a_crash_under_the_profiler_costs_one_test_its_device_metrics(rig: Rig) -> None:
    fault = Fault(kind="segfault", number=3, profiled=True, processes=(0,))

    ran = rig.pytest(play(faults=(fault,)), *GATED, "--ttnn-perf-reset", "echo >> reset")

    log = r".*/\.ttnn_perf/passes/RUN-ID/1-device/worker\.log"
    no_data(ran, f"device pass: its worker was killed by SIGSEGV; log: {log}")
    assert rig.workers() == ["1-device", "2-device", "3-wall"]
    assert [file.parent.name for file in rig.project.rglob("worker.log")] == ["1-device"]
    # It may have left the device in any state.
    assert said(ran)[-1] == "ttnn-perf: resetting the device: echo >> reset"
    assert (rig.project / "reset").read_text() == "\n"
    judged(rig)


def test_a_hang_under_the_profiler_ends_a_run_that_cannot_reset_the_device(rig: Rig) -> None:
    fault = Fault(kind="hang", number=3, profiled=True)

    ran = rig.pytest(play(faults=(fault,)), *GATED, *SILENCE)

    assert ran.code == 1
    assert "its worker hung: no sign of life for 60 s, killed; log: " in ran.text
    assert (
        "; it left a device in an unusable state: reset it, and let --ttnn-perf-reset 'tt-smi -r' "
        "do so next time !"
    ) in ran.text
    assert rig.workers() == ["1-device"]
    (log,) = rig.project.rglob("worker.log")
    assert 'test_models.py", line' in log.read_text()


#: A capture attached beside the profiler; and a model that is left out where it is profiled.
MISTAKEN = (
    MODELS.replace(
        "def test_dense(ttnn_perf, device):\n",
        "def test_dense(ttnn_perf, device):\n        ttnn_perf.attach('other.csv')\n",
    )
    + """
    @quick
    def test_left_out(ttnn_perf, device):
        import os
        if os.environ.get("TT_METAL_DEVICE_PROFILER"):
            pytest.skip("too large")
        x = put(device)
        ttnn_perf.measure(ttnn.add, x, x)
"""
)


def test_a_new_baseline_is_not_stored_without_what_the_device_pass_was_to_tell(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_models=MISTAKEN)
    (rig.project / "other.csv").write_text(capture(op("Matmul", 20_000)))

    ran = rig.pytest(play(), *UPDATE)

    assert (ran.code, counts_of(ran)) == (1, "2 failed, 1 passed")
    assert failure_of(ran, "test_dense").splitlines()[0] == (
        "device_kernel_time and 2 more: given by attach('other.csv') and by what the run observed "
        "itself; leave out one of them: an attach, or the profiler with --ttnn-perf-profiler off"
    )
    assert (
        "NO_DATA: device_kernel_time has no samples: device pass: the test was skipped in "
        "it, or did not measure; --ttnn-perf-passes=wall records a baseline without it"
    ) in ran.text.splitlines()
    (file,) = (rig.project / "baselines").rglob("*.json")
    assert list(json.loads(file.read_text())["tests"]) == ["test_sum"]
