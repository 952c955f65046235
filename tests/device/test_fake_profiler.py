"""What the stand-in's profiler, traces and graphs leave behind can be read as the real thing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.device_csv import read_device_log
from pytest_ttnn_perf.analysis.readers.graph import read_graph_json
from pytest_ttnn_perf.analysis.readers.ops_csv import read_cpp_report, read_ops_csv
from pytest_ttnn_perf.analysis.readers.report_db import read_report_db
from pytest_ttnn_perf.core.ops import TraceReplays
from tests.device.children import ask, command
from tests.device.script import Machine, Op, Script

if TYPE_CHECKING:
    from pathlib import Path

OPS = (
    Op("linear", 20_000),
    Op("linear", 3_000, code="ReshardDeviceOperation", cores=32),
    Op("relu", 5_000),
)
PROFILED = {
    "TT_METAL_DEVICE_PROFILER": "1",
    "TT_METAL_PROFILER_CPP_POST_PROCESS": "1",
    "TT_METAL_PROFILER_MID_RUN_DUMP": "1",
}
MODEL = """
        device = ttnn.open_device(device_id=0, trace_region_size=65536)
        x = tensor(device)

        def model():
            return ttnn.relu(ttnn.linear(x, x))

        def times(data):
            key = "DEVICE KERNEL DURATION [ns]"
            return [[p.program_execution_uid.runtime_id >> 10,
                     p.program_analyses_results[key].duration, p.core_count]
                    for programs in data.values() for p in programs]

        model()
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "machine")
    machine.play(Script(tracy=True, ops=OPS))
    return machine


def test_profiled_programs(machine: Machine, tmp_path: Path) -> None:
    code = f"""{MODEL}
        ttnn.ReadDeviceProfiler(device)
        model()
        before = len(times(ttnn.get_all_programs_perf_data()))
        ttnn.ReadDeviceProfiler(device)
        answer([before, times(ttnn.get_latest_programs_perf_data()),
                times(ttnn.get_all_programs_perf_data())])
    """
    said = ask(machine, code, cwd=tmp_path, TT_METAL_PROFILER_DIR="out", **PROFILED)
    first, second = (
        [[3 * call + 1, 20_000, 64], [3 * call + 2, 3_000, 32], [3 * call + 3, 5_000, 64]]
        for call in (0, 1)
    )
    assert said.answer == [3, second, first + second]
    report = read_cpp_report(tmp_path / "out" / ".logs" / "cpp_device_perf_report.csv")
    assert [op.kernel_ns for op in report] == [20_000, 3_000, 5_000] * 2
    log = read_device_log(tmp_path / "out" / ".logs" / "profile_log_device.csv")
    assert [program.kernel_ns for program in log.programs] == [20_000, 3_000, 5_000] * 2
    assert not ask(
        machine, f"{MODEL}\n        answer(times(ttnn.get_all_programs_perf_data()))", cwd=tmp_path
    ).answer


def test_without_a_dump_mid_run_there_is_nothing_before_the_end(
    machine: Machine, tmp_path: Path
) -> None:
    code = f"""{MODEL}
        ttnn.ReadDeviceProfiler(device)
        before = os.path.exists("generated/profiler")
        ttnn.close_device(device)
        answer([before, len(times(ttnn.get_all_programs_perf_data()))])
    """
    profiled = {n: v for n, v in PROFILED.items() if not n.endswith("MID_RUN_DUMP")}
    assert ask(machine, code, cwd=tmp_path, **profiled).answer == [False, 3]
    assert (tmp_path / "generated" / "profiler" / ".logs" / "cpp_device_perf_report.csv").exists()


@pytest.mark.parametrize(("room", "lost", "kept"), [("2", 0, 2), ("9", 0, 3), ("9", 1, 2)])
def test_what_finds_no_room_is_dropped(
    machine: Machine, tmp_path: Path, room: str, lost: int, kept: int
) -> None:
    machine.play(Script(tracy=True, ops=OPS, lost_programs=lost))
    code = f"""{MODEL}
        ttnn.ReadDeviceProfiler(device)
        answer(len(times(ttnn.get_latest_programs_perf_data())))
    """
    more = {**PROFILED, "TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT": room}
    said = ask(machine, code, cwd=tmp_path, **more)
    assert said.answer == kept
    dropped = (
        "| warning  |           Metal | Profiler DRAM buffers were full, markers were dropped!"
    )
    assert (dropped in said.text) == (kept < 3)


REPLAYED = """
        device = ttnn.open_device(device_id=0, trace_region_size=1024)
        x = tensor(device)
        def capture(model):
            trace = ttnn.begin_trace_capture(device, cq_id=0)
            problems.append(raised(model))
            problems.extend(raised(call, device) for call in
                            (ttnn.synchronize_device, ttnn.ReadDeviceProfiler))
            problems.append(raised(x.to_numpy))
            problems.append(raised(ttnn.end_trace_capture, device, trace, cq_id=0))
            return trace
        problems, outputs = [], []
        def relu(): outputs.append(ttnn.relu(x))
        capture(relu)
        relu(), ttnn.linear(x, x)
        capture(lambda: ttnn.linear(x, x))
        trace = capture(relu)
        ttnn.ReadDeviceProfiler(device)
        before = float(outputs[-1].to_numpy()[0, 0])
        for _ in range(2):
            ttnn.execute_trace(device, trace, cq_id=0, blocking=False)
        ttnn.ReadDeviceProfiler(device)
        uids = [p.program_execution_uid for p in ttnn.get_latest_programs_perf_data()[0]]
        answer([[(p or "").split("info:\\n")[-1].split("\\n")[0] for p in problems], before,
                float(outputs[-1].to_numpy()[0, 0]),
                [[u.runtime_id, u.trace_id - trace, u.trace_id_counter] for u in uids]])
"""


def test_a_trace_runs_when_it_is_replayed(machine: Machine, tmp_path: Path) -> None:
    said = ask(machine, REPLAYED, cwd=tmp_path, **PROFILED)
    problems, before, after, uids = said.answer
    refused = [
        "Event Synchronization is not supported during trace capture.",
        "Reads are not supported during trace capture.",
        "Reads are not supported during trace capture.",
    ]
    assert problems[0].startswith("Cannot load new binaries during trace capture.")
    assert problems[1:4] == problems[6:9] == problems[11:14] == refused
    assert problems[5] == problems[10] == problems[14] == ""
    assert "2048B on MeshDevice 0, but only 1024B is allocated for trace region." in problems[9]
    assert (before, after) == (0.0, 1.0)
    assert [uid[1:] for uid in uids] == [[0, 1], [0, 2]]
    assert uids[0][0] == uids[1][0]


def test_a_captured_graph(machine: Machine, tmp_path: Path) -> None:
    code = f"""{MODEL}
        ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
        model()
        ttnn.graph.end_graph_capture_to_file("graph.json")
        answer(str(ttnn.graph.import_report("graph.json", "report")))
    """
    assert ask(machine, code, cwd=tmp_path).answer == "report/db.sqlite"
    report = read_report_db(tmp_path / "report" / "db.sqlite")
    assert [operation.name for operation in report.operations] == ["ttnn.linear", "ttnn.relu"]
    codes = ("MatmulDeviceOperation", "ReshardDeviceOperation")
    assert report.operations[0].device_operations == codes
    assert len(report.edges) == 1
    graph = read_graph_json(tmp_path / "graph.json")
    assert [operation.name for operation in graph.operations] == ["ttnn.linear", "ttnn.relu"]


TRACED = """
import numpy as np
import ttnn
from tracy import signpost

def test_model():
    device = ttnn.open_device(device_id=0, trace_region_size=65536)
    x = ttnn.from_torch(np.ones((8, 32)), layout=ttnn.TILE_LAYOUT, device=device)
    ttnn.relu(x)
    signpost("start")
    trace = ttnn.begin_trace_capture(device)
    ttnn.relu(x)
    ttnn.end_trace_capture(device, trace)
    for _ in range(3):
        ttnn.execute_trace(device, trace)
    ttnn.close_device(device)
    assert "FAIL" not in __import__("os").environ
"""


def test_the_wrapper_writes_the_table_of_ops_and_hides_how_the_child_ended(
    machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "test_model.py").write_text(TRACED)
    words = (sys.executable, "-m", "tracy", "-r", "-p", "-o", "out", "-n", "mine")
    pytest_words = (
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:ttnn_perf",
        "-p",
        "no:hypothesispytest",
        "test_model.py",
    )
    ended = command(machine, *words, *pytest_words, cwd=tmp_path, FAIL="1")
    assert ended.code == 0
    assert "1 failed" in ended.text
    (file,) = tmp_path.glob("out/reports/mine/*/ops_perf_results_mine_*.csv")
    table = read_ops_csv(file)
    assert [op.kernel_ns for op in table] == [5_000] * 4
    assert table.rows == 1 + 1 + 1 + 3  # a signpost, and a ghost of the captured op
    assert list(table.traces) == [TraceReplays(device=0, trace=0, replays=3, complete=True)]
    checked = command(machine, *words, "--check-exit-code", *pytest_words, cwd=tmp_path, FAIL="1")
    assert checked.code == 4
    machine.play(Script())
    refused = command(machine, *words, *pytest_words, cwd=tmp_path)
    assert refused.code == 1
    assert "Tracy tools were not found. Please make sure you are on a Tracy-e" in refused.errors
