"""The stand-in behaves as the real package does, where the gate depends on it."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.device.children import ask, source
from tests.device.script import Fault, Machine, Op, Script, Slower

if TYPE_CHECKING:
    from pathlib import Path

    from tests.device.script import FaultKind


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "machine")
    machine.play(Script())
    return machine


def test_without_hardware_only_the_architecture_can_be_asked_for(tmp_path: Path) -> None:
    said = ask(
        Machine(tmp_path),
        """
        queries = [ttnn.get_num_devices, ttnn.get_device_ids, ttnn.GetNumPCIeDevices,
                   ttnn.GetNumAvailableDevices, ttnn.cluster.get_cluster_type,
                   ttnn.open_mesh_device, ttnn.device.IsProgramRealtimeProfilerActive,
                   lambda: ttnn.open_device(device_id=0)]
        errors = [raised(query) for query in queries * 2]
        answer([ttnn.get_arch_name(), sorted(set(errors)), ttnn.get_all_programs_perf_data(),
                ttnn.get_latest_programs_perf_data(), ttnn.GetDefaultDevice()])
        """,
        cwd=tmp_path,
    )
    arch, (error,), everything, latest, default = said.answer
    assert (arch, everything, latest, default) == ("invalid", {}, {}, None)
    lines = error.splitlines()
    assert lines[0] == "TT_FATAL @ /project/tt_metal/llrt/tt_cluster.cpp:129: num_chips > 0"
    assert lines[1:4] == ["info:", "No chips detected in the cluster", "backtrace:"]
    assert len([line for line in lines if line.startswith(" --- ")]) == 35
    assert "| critical |          Always | TT_FATAL: No chips" in said.text
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", ["1", "0", ""])
def test_without_tracy_the_profiler_variable_breaks_everything_until_it_is_gone(
    machine: Machine, tmp_path: Path, value: str
) -> None:
    said = ask(
        machine,
        """
        errors = [raised(ttnn.get_arch_name), raised(ttnn.get_num_devices)]
        del os.environ["TT_METAL_DEVICE_PROFILER"]
        answer([errors, ttnn.get_arch_name(), ttnn.get_num_devices()])
        """,
        cwd=tmp_path,
        TT_METAL_DEVICE_PROFILER=value,
    )
    errors, arch, devices = said.answer
    wanted = "info:\nTT_METAL_DEVICE_PROFILER requires a Tracy-enabled build of tt-metal.\n"
    assert all(wanted in error for error in errors)
    assert (arch, devices) == ("wormhole_b0", 1)


def test_what_is_asked_of_a_machine(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine")
    machine.play(Script(cluster="T3K", chips=8, remote=4, cache_misses=True))
    said = ask(
        machine,
        """
        mesh = ttnn.open_mesh_device(ttnn.MeshShape(2, 4), trace_region_size=1024)
        grid = mesh.compute_with_storage_grid_size()
        for _ in range(3):
            ttnn.add(tensor(mesh), tensor(mesh))
        view = ttnn.get_memory_view(mesh, ttnn.BufferType.DRAM)
        answer([ttnn.get_num_devices(), ttnn.GetNumPCIeDevices(), ttnn.get_pcie_device_ids(),
                ttnn.cluster.get_cluster_type().name, mesh.arch().name, str(mesh.shape),
                mesh.get_device_ids(), [grid.x, grid.y], mesh.num_program_cache_entries(),
                view.num_banks, view.total_bytes_allocated_per_bank])
        ttnn.close_mesh_device(mesh)
        """,
        cwd=tmp_path,
    )
    assert said.answer == [
        8, 4, [0, 1, 2, 3], "T3K", "WORMHOLE_B0", "MeshShape([2, 4])", list(range(8)), [8, 8], 3,
        12, 2_097_152,
    ]  # fmt: skip
    # Chips behind others have no lock of their own.
    assert len(list(machine.path.glob("TT_UMD_LOCK.CHIP_IN_USE_*_PCIe"))) == 4


def test_options_are_read_when_a_device_is_first_asked_for_and_never_again(
    machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    ask(
        machine,
        """
        os.environ["TT_METAL_LOGS_PATH"] = "../first"
        ttnn.get_arch_name(), ttnn.get_num_devices()
        os.environ["TT_METAL_LOGS_PATH"] = "../second"
        ttnn.close_device(ttnn.open_device(device_id=0))
        ttnn.close_device(ttnn.CreateDevice(0))
        """,
        cwd=tmp_path / "here",
    )
    written = sorted(folder.name for folder in (tmp_path / "first" / "generated").iterdir())
    assert written == ["fabric", "inspector", "watcher"]
    assert not (tmp_path / "second").exists()
    assert not list((tmp_path / "here").iterdir())


def test_a_process_keeps_the_chip_until_it_exits(machine: Machine, tmp_path: Path) -> None:
    code = "ttnn.close_device(ttnn.open_device(device_id=0)); answer(0); sys.stdin.read()"
    first = subprocess.Popen(
        [sys.executable, "-c", source(code)], cwd=tmp_path, env=machine.environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert first.stdout is not None
    assert first.stdout.readline() == "ANSWER 0\n"
    query = "answer([ttnn.get_arch_name(), raised(ttnn.get_num_devices)])"
    impatient = ask(machine, query, cwd=tmp_path, FAKE_TTNN_PATIENCE="0.1")
    assert impatient.code == -signal.SIGABRT
    held = f"CHIP_IN_USE_0_PCIe, held by thread TID: 0, PID: {first.pid}"
    assert f"FAKE_TTNN: gave up after 0.1 s of waiting for {held}" in impatient.errors
    assert "Waiting for lock 'CHIP_IN_USE_0_PCIe' which is currently held by" in impatient.text
    assert ask(machine, "answer(ttnn.get_arch_name())", cwd=tmp_path).answer == "wormhole_b0"
    first.communicate("")
    assert ask(machine, query, cwd=tmp_path).answer == ["wormhole_b0", None]
    before, after = machine.journal()
    assert before["pid"] == first.pid != after["pid"]


@pytest.mark.parametrize(
    "call", ["IsProgramRealtimeProfilerActive()", "RegisterProgramRealtimeProfilerCallback(print)"]
)
def test_asking_for_records_before_a_device_is_open_ends_the_process(
    machine: Machine, tmp_path: Path, call: str
) -> None:
    assert ask(machine, f"ttnn.device.{call}", cwd=tmp_path).code == -signal.SIGSEGV


LISTENING = """
        import threading
        got, kept = [], []
        def callback(batch):
            kept.extend(batch.records)
            on_main = threading.current_thread() is threading.main_thread()
            got.append([batch.dropped, on_main, [
                [r.runtime_id, r.chip_id, len(r.kernel_sources),
                 round((r.end_timestamp - r.start_timestamp) / r.frequency)]
                for r in batch.records]])
        device = ttnn.open_mesh_device(ttnn.MeshShape(1, 3))
        handle = ttnn.device.RegisterProgramRealtimeProfilerCallback(callback)
        ttnn.add(tensor(device), tensor(device))
        ttnn.synchronize_device(device)
        early = len(got)
        end = time.monotonic() + 300
        while len(kept) < 3 and time.monotonic() < end:
            time.sleep(0.01)
        ttnn.device.UnregisterProgramRealtimeProfilerCallback(handle)
        ttnn.add(tensor(device), tensor(device))
        late = raised(lambda: kept[0].kernel_sources)
        active = ttnn.device.IsProgramRealtimeProfilerActive()
        answer([handle, early, got, late, active])
"""


def test_records_come_later_from_another_thread(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine")
    ops = (Op("add", 4000), Op("add", 1500, chips=(1,)))
    script = Script(
        chips=3, clock_mhz=1350, ops=ops,
        realtime_missing=(2,), realtime_dropped=7, realtime_delay_s=2.0,
    )  # fmt: skip
    machine.play(script)
    said = ask(machine, LISTENING, cwd=tmp_path)
    handle, early, got, late, active = said.answer
    assert (handle, early, active) == (0, 0, True)
    assert [batch[:2] for batch in got] == [[7, False], *[[0, False]] * (len(got) - 1)]
    records = [record for batch in got for record in batch[2]]
    assert records == [[1, 0, 1, 4000], [1, 1, 1, 4000], [2, 1, 1, 1500]]
    assert "after the callback had returned" in late


@pytest.mark.parametrize(
    ("kind", "code", "told"),
    [
        ("TT_FATAL", 1, "RuntimeError: TT_FATAL @"),
        ("out of memory", 1, "Out of Memory: Not enough space to allocate"),
        ("segfault", -signal.SIGSEGV, ""),
        ("abort", -signal.SIGABRT, "terminate called"),
        ("exit", 5, ""),
    ],
)
def test_the_device_fails_as_scripted(
    machine: Machine, tmp_path: Path, kind: FaultKind, code: int, told: str
) -> None:
    fault = Fault(kind=kind, number=2, processes=(1,), exit_code=5)
    machine.play(Script(faults=(fault,), garbage="\xff\x00noise\n"))
    lines = """
        device = ttnn.open_device(device_id=0)
        for number in range(4):
            ttnn.relu(tensor(device))
            answer(number)
    """
    first, second = (ask(machine, lines, cwd=tmp_path) for _ in range(2))
    assert (first.code, first.answer) == (0, 3)
    assert (second.code, second.answer) == (code, 1)
    assert told in second.errors
    assert "\xff\x00noise" in first.text
    assert "\xff\x00noise" in first.errors


def test_time_of_the_host_passes_as_scripted(machine: Machine, tmp_path: Path) -> None:
    slower = Slower(factor=3, code="UnaryDeviceOperation", call=1)
    machine.play(Script(ops=(Op("relu", 2e7),), slower=(slower,), wall=1.0, compile_s=0.1))
    lines = """
        device = ttnn.open_device(device_id=0)
        times = []
        for _ in range(2):
            start = time.perf_counter()
            ttnn.relu(tensor(device))
            ttnn.synchronize_device(device)
            times.append(time.perf_counter() - start)
        answer(times)
    """
    cold, warm = (ask(machine, lines, cwd=tmp_path).answer for _ in range(2))
    assert cold[0] >= 0.12
    assert warm[0] >= 0.02
    assert min(cold[1], warm[1]) >= 0.06
    assert list((machine.path / "cache").glob("tt-metal-cache/*/kernels/UnaryDeviceOperation"))
