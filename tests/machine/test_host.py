"""The host: what it is, its load, its boards, and the machine around them."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.cli.doctor import machine
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.machine import inspection
from pytest_ttnn_perf.machine.environment import (
    ROOT,
    host_load,
    on_this_host,
    telemetry,
)
from pytest_ttnn_perf.machine.inspection import tt_smi_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_load(
    root: Path, *, load: str | None = None, governor: str | None = None
) -> dict[str, str]:
    """Write the files of a host; return the environment that names them."""
    for name, text in (
        ("proc/loadavg", load),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor),
    ):
        if text is not None:
            file = root / name
            file.parent.mkdir(parents=True)
            file.write_text(text)
    return {ROOT: str(root)}


def test_load_threads_processors_and_governor(tmp_path: Path) -> None:
    around = write_load(tmp_path, load="12.50 3.10 1.05 9/1234 4242\n", governor="powersave\n")
    assert host_load(around) == {
        "load_1m": 12.5,
        "runnable_threads": 8,  # the one that asks is none of them
        "cpu_count": os.cpu_count(),
        "governor": "powersave",
    }


def write_chip(system: Path, chip: int, **files: str) -> None:
    """Write the files of a chip; those of its sensors are named with ``hwmon_``."""
    for name, text in files.items():
        sensor = name.removeprefix("hwmon_")
        place = f"device/hwmon/hwmon{chip}/{sensor}" if sensor != name else name
        file = system / "class" / "tenstorrent" / f"tenstorrent!{chip}" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_of_several_chips_the_worst_is_told(tmp_path: Path) -> None:
    for chip, clock, watts, degrees in ((0, 1000, 31.5, 44.0), (1, 800, 60.0, 40.5)):
        write_chip(
            tmp_path, chip, tt_aiclk=f"{clock}\n", hwmon_power1_input=f"{watts * 1e6:.0f}\n",
            hwmon_temp1_input=f"{degrees * 1e3:.0f}\n", tt_therm_trip_count=f"{chip}\n",
            tt_fw_bundle_ver="19.2.0\n",
        )  # fmt: skip
    (tmp_path / "module" / "tenstorrent").mkdir(parents=True)
    (tmp_path / "module" / "tenstorrent" / "version").write_text("2.4.1\n")
    assert telemetry(tmp_path) == {
        "clock_mhz": 800.0,
        "power_w": 60.0,
        "temperature_c": 44.0,
        "thermal_trips": 1.0,
        "firmware": "19.2.0",
        "driver": "2.4.1",
    }


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def smi(folder: Path, script: str) -> dict[str, str]:
    """Put a tt-smi on a PATH that has nothing else."""
    program = folder / "tt-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": str(folder)}


def test_the_driver_knows_whether_another_process_has_a_chip_open(tmp_path: Path) -> None:
    own = f"{os.getpid()}\n"
    for pids, are_open in ((own, False), (f"12\n{own}", True)):
        write(tmp_path, {
            "dev/tenstorrent/0": "", "proc/driver/tenstorrent/0/pids": pids,
        })  # fmt: skip
        assert machine({}, root=tmp_path).are_open is are_open


def test_what_another_runner_left(tmp_path: Path) -> None:
    write(tmp_path, {"tmp/tt-device.lock": "", "tmp/tt-device.dirty": ""})
    found = machine({}, root=tmp_path)
    assert (found.locked, found.dirty) == (None, tmp_path / "tmp/tt-device.dirty")
    with (tmp_path / "tmp/tt-device.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert machine({}, root=tmp_path).locked == tmp_path / "tmp/tt-device.lock"


@pytest.mark.parametrize("script", ["echo No chips detected >&2; exit 1", "exec /bin/sleep 60"])
def test_a_tt_smi_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(inspection, "_SMI_TIMEOUT_S", 0.3 if "sleep" in script else 30)
    assert tt_smi_snapshot(smi(tmp_path, script)) is None


def test_machines_that_are_named_in_another_script_are_told_apart() -> None:
    board = Hardware("wormhole_b0", "n150", "1x1")
    hosts = [
        on_this_host(board, ("board", "mesh", "host"), {"TTNN_PERF_MACHINE": name}).host
        for name in ("東京", "大阪", "Lab-7", "")
    ]
    assert len(set(hosts)) == 4
    assert hosts[2] == "lab_7"
