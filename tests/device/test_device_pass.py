"""The device pass: what devices tell of a model is recorded, gated, and put down to its ops."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.behaviour.model import counts_of, failure_of
from tests.device.rig import (
    CONFTEST,
    DENSE,
    KEY,
    MODELS,
    OPS,
    SUM,
    UPDATE,
    Rig,
    play,
    said,
    sampled,
)
from tests.device.script import Op

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Ran


def test_times_counts_and_ops_are_recorded_with_their_source_and_key(
    models: tuple[Rig, Ran],
) -> None:
    rig, ran = models
    assert (ran.code, counts_of(ran)) == (0, "2 passed")
    assert said(ran) == [
        "ttnn-perf: gate on, keys of the devices that tests open, baselines baselines, update new, "
        "profiler device (ttnn 0.81.1 is Tracy-enabled)",
        "ttnn-perf: device pass: profiling 2 tests",
    ]
    assert rig.workers() == ["1-device", "2-wall"]
    stored = json.loads((rig.project / "baselines" / KEY / "test_models.json").read_text())
    assert stored["hardware"] == {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"}
    metrics = stored["tests"]["test_dense"]["metrics"]
    for metric in metrics.values():
        metric["sessions"] = [session[:3] for session in metric["sessions"]]
    assert {name: (m["source"], m["sessions"]) for name, m in metrics.items() if "device" in name} \
        == {
            "device_kernel_time": ("device", [[6_500_000, 0, 3]]),
            "device_kernel_time_matmul": ("device", [[6_000_000, 0, 1]]),
            "device_kernel_time_elementwise": ("device", [[500_000, 0, 1]]),
        }  # fmt: skip
    assert (metrics["op_count"]["source"], metrics["op_count"]["sessions"]) == (
        "device",
        [[2, 0, 1]],
    )
    assert (metrics["wall_time"]["source"], metrics["wall_time"]["sessions"][0][2]) == ("wall", 3)
    table = rig.project / "baselines" / KEY / "test_models.ops" / "test_dense.csv"
    assert table.read_text().splitlines() == [
        "op,inputs,outputs,cores,fidelity,settings,count,total_ns,median_ns,time",
        "MatmulDeviceOperation,,,64,,,1,6000000,6000000,DEVICE KERNEL DURATION [ns]",
        "UnaryDeviceOperation,,,64,,,1,500000,500000,DEVICE KERNEL DURATION [ns]",
    ]


def test_a_slower_op_fails_its_test_by_name_and_a_faster_one_is_reported(
    models: tuple[Rig, Ran], tmp_path: Path
) -> None:
    rig = models[0].copied_to(tmp_path)
    ops = (Op("matmul", 8e6, cores=32), OPS[1], Op("add", 1.4e6))

    ran = rig.pytest(play(ops=ops), "--ttnn-perf", "--ttnn-perf-confirm=1")

    assert (ran.code, counts_of(ran)) == (1, "1 failed, 1 passed")
    assert said(ran)[1:] == [
        "ttnn-perf: device pass: profiling 2 tests",
        f"ttnn-perf: {DENSE}: device_kernel_time 30.8 % slower: to be measured again",
        "confirm 1/1: 1 test again in a fresh process",
        f"confirm 1/1, {DENSE}: device_kernel_time 8.500 ms, baseline 6.500 ms: "
        "beyond its limit again",
    ]
    assert failure_of(ran, "test_dense").splitlines() == [
        "REGRESSED: device_kernel_time 30.8 % slower, limit 3.9 % (8.500 ms, baseline 6.500 ms) "
        "(provisional: 1 run)",
        "  cause: +30.8 % (+2.00 ms) = Matmul +2.00 ms (64 → 32 cores)",
        "  accept: ttnn-perf baseline accept .ttnn_perf/runs/RUN-ID.json "
        f'--reason "why" -- {DENSE}',
    ]
    gain = ran.text.partition(f"IMPROVED {SUM}: ")[2].splitlines()[:3]
    assert gain == [
        "device_kernel_time 30.0 % faster, limit 3.7 % (1.400 ms, baseline 2.000 ms) "
        "(provisional: 1 run)",
        "  cause: -30.0 % (-600 µs) = BinaryNg -600 µs",
        f"  keep: pytest {SUM} --ttnn-perf-update",
    ]
    # Confirmed as it was measured: profiled, and no other way.
    assert rig.workers() == ["1-device", "2-wall", "3-confirm"]
    profiled = ["TT_METAL_DEVICE_PROFILER" in each["variables"] for each in rig.machine.journal()]
    assert profiled == [True, False, True]


OTHERS = (
    MODELS
    + """
    @quick
    @pytest.mark.parametrize("device", [{"trace_region_size": 65536}], indirect=True, ids=[""])
    def test_traced(ttnn_perf, device):
        x = put(device)
        ttnn.add(x, x)
        trace = ttnn.begin_trace_capture(device, cq_id=0)
        output = ttnn.add(x, x)
        ttnn.end_trace_capture(device, trace, cq_id=0)
        ttnn_perf.measure(ttnn.execute_trace, device, trace, cq_id=0, blocking=False)
        print("checked in", "profile" if ttnn.get_latest_programs_perf_data() else "wall")
        ttnn_perf.check_pcc(np.full((32, 32), 2.0), output.to_numpy())

    @quick
    @pytest.mark.parametrize("mesh", [(1, 2), (2, 4)], ids=["1x2", "2x4"], indirect=True)
    def test_mesh(ttnn_perf, mesh):
        x = put(mesh)
        ttnn_perf.measure(ttnn.add, x, x)

    @quick
    def test_skipped_inside(ttnn_perf, device):
        pytest.skip("not on this board")
"""
)


def test_traces_and_meshes_are_profiled_replay_by_replay_and_chip_by_chip(tmp_path: Path) -> None:
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_models=OTHERS)
    # The last chip is slower: it decides how long the mesh takes.
    ops = (Op("add", 2e6), Op("add", 1e6, code="AllGatherDeviceOperation", chips=(7,)))
    script = play(cluster="T3K", chips=8, remote=4, ops=ops)
    tests = ("-k", "traced or mesh or skipped", "-s")

    ran = rig.pytest(script, *UPDATE, *tests)

    assert (ran.code, counts_of(ran)) == (0, "3 passed, 1 skipped, 2 deselected")
    assert "ttnn-perf: device pass: profiling 4 tests" in said(ran)
    # Only the wall pass is shown, and checks what comes out.
    assert re.findall("checked in .*", ran.text) == ["checked in wall"]
    assert rig.metrics("test_models.py::test_traced[]")["pcc"]["samples"] == [1]
    told = {
        test: sampled(rig.metrics(f"test_models.py::{test}"), "device")["device_kernel_time"]
        for test in ("test_traced[]", "test_mesh[1x2]", "test_mesh[2x4]")
    }
    assert told == {
        "test_traced[]": ("device", [2e6, 2e6, 2e6]),
        "test_mesh[1x2]": ("device", [2e6, 2e6, 2e6]),
        "test_mesh[2x4]": ("device", [3e6, 3e6, 3e6]),
    }
    assert sorted(path.name for path in (rig.project / "baselines").iterdir() if path.is_dir()) == [
        "wormhole_b0-t3k-1x1", "wormhole_b0-t3k-1x2", "wormhole_b0-t3k-2x4",
    ]  # fmt: skip
    assert "test_models.py::test_skipped_inside" not in rig.record()["tests"]
