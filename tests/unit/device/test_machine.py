"""The machine, from files that a test puts in the place of /proc, /sys and /dev."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.device import host as module
from pytest_ttnn_perf.device.host import Tenant, machine, tt_smi_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

GOVERNOR = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
PAGES = "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def process(root: Path, pid: int, *targets: str, command: str = "") -> None:
    descriptors = root / f"proc/{pid}/fd"
    descriptors.mkdir(parents=True)
    for number, target in enumerate(targets):
        (descriptors / str(number)).symlink_to(target)
    write(root, {f"proc/{pid}/cmdline": command})


def smi(folder: Path, script: str) -> dict[str, str]:
    """Put a tt-smi on a PATH that has nothing else."""
    program = folder / "tt-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": str(folder)}


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    found = machine({}, root=tmp_path)
    assert (found.devices, found.tenants, found.tenants_known) == ((), (), True)
    assert (found.governor, found.iommu, found.hugepages, found.driver) == (None,) * 4
    assert (found.locked, found.dirty) == (None, None)
    assert found.kernel_cache == Path("/.cache/tt-metal-cache")


def test_what_files_tell(tmp_path: Path) -> None:
    write(tmp_path, {
        GOVERNOR: "powersave\n",
        PAGES: "4\n",
        "sys/module/tenstorrent/version": "2.4.1\n",
        "dev/tenstorrent/0": "",
        "dev/tenstorrent/1": "",
        "dev/tenstorrent/by-id/x": "",
    })  # fmt: skip
    found = machine({}, root=tmp_path)
    assert (found.governor, found.hugepages, found.driver) == ("powersave", 4, "2.4.1")
    assert found.devices == (0, 1)


@pytest.mark.parametrize(
    ("files", "iommu"),
    [
        ({"sys/kernel/x": ""}, False),
        ({"sys/kernel/iommu_groups/0/type": "DMA-FQ\n"}, True),
        ({"sys/kernel/iommu_groups/0/type": "identity\n"}, False),
        (
            {
                "sys/kernel/iommu_groups/0/type": "DMA-FQ\n",
                "sys/class/tenstorrent/tenstorrent!0/device/iommu_group/type": "identity\n",
            },
            False,
        ),
        ({"sys/class/tenstorrent/tenstorrent!0/device/iommu_group/type": "DMA\n"}, True),
    ],
)
def test_an_iommu_counts_when_it_translates(
    tmp_path: Path, files: dict[str, str], iommu: bool
) -> None:
    write(tmp_path, files)
    assert machine({}, root=tmp_path).iommu is iommu


@pytest.mark.parametrize("text", ["", "many\n"])
def test_a_number_that_is_none_is_unknown(tmp_path: Path, text: str) -> None:
    write(tmp_path, {PAGES: text})
    assert machine({}, root=tmp_path).hugepages is None


def test_who_has_a_chip_open(tmp_path: Path) -> None:
    write(tmp_path, {"dev/tenstorrent/0": "", "dev/tenstorrent/1": "", "proc/meminfo": ""})
    process(tmp_path, 7, "/dev/null", "/dev/tenstorrent/1", command="/usr/bin/python\0serve.py\0")
    process(tmp_path, 8, "/dev/tenstorrent/0/x", "/dev/null")
    process(tmp_path, os.getpid(), "/dev/tenstorrent/0")
    (tmp_path / "proc/9").mkdir()  # it has ended meanwhile
    found = machine({}, root=tmp_path)
    assert found.tenants == (Tenant(1, 7, "python serve.py"),)
    assert found.tenants_known


def test_the_driver_knows_who_has_a_chip_open(tmp_path: Path) -> None:
    write(tmp_path, {
        "dev/tenstorrent/0": "",
        "proc/driver/tenstorrent/0/pids": f"12\n{os.getpid()}\n",
        "proc/12/cmdline": "python\0" + "x" * 100,
    })  # fmt: skip
    found = machine({}, root=tmp_path)
    assert found.tenants == (Tenant(0, 12, "python " + "x" * 52 + "…"),)
    write(tmp_path, {"proc/driver/tenstorrent/0/pids": "12\n", "proc/12/cmdline": ""})
    assert machine({}, root=tmp_path).tenants == (Tenant(0, 12, "unknown"),)


def test_processes_of_others_may_be_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"dev/tenstorrent/0": ""})
    process(tmp_path, 7, "/dev/tenstorrent/0")
    real = Path.iterdir

    def refused(folder: Path) -> object:
        if folder.name == "fd":
            raise PermissionError
        return real(folder)

    monkeypatch.setattr(Path, "iterdir", refused)
    found = machine({}, root=tmp_path)
    assert (found.tenants, found.tenants_known) == ((), False)


def test_the_kernel_cache(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path / "home")}
    found = machine(home, root=tmp_path)
    assert found.kernel_cache == tmp_path / "home/.cache/tt-metal-cache"
    assert not found.kernels_cached

    write(tmp_path, {"shared/tt-metal-cache/1234/kernels": ""})
    found = machine({**home, "TT_METAL_CACHE": str(tmp_path / "shared")}, root=tmp_path)
    assert (found.kernel_cache, found.kernels_cached) == (tmp_path / "shared/tt-metal-cache", True)


def test_what_another_runner_left(tmp_path: Path) -> None:
    write(tmp_path, {"tmp/tt-device.lock": "", "tmp/tt-device.dirty": ""})
    found = machine({}, root=tmp_path)
    assert (found.locked, found.dirty) == (None, tmp_path / "tmp/tt-device.dirty")
    with (tmp_path / "tmp/tt-device.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert machine({}, root=tmp_path).locked == tmp_path / "tmp/tt-device.lock"


def test_tt_smi_that_is_not_there(tmp_path: Path) -> None:
    assert tt_smi_snapshot({"PATH": str(tmp_path)}) == (None, "tt-smi is not on PATH")
    assert tt_smi_snapshot({}) == (None, "tt-smi is not on PATH")


def test_what_tt_smi_prints(tmp_path: Path) -> None:
    environment = smi(tmp_path, 'echo "a warning"; echo "{\\"asked\\": \\"$1\\"}"')
    assert tt_smi_snapshot(environment) == ('{"asked": "-s"}\n', None)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (
            "echo No chips detected >&2; exit 1",
            "tt-smi -s ended with exit code 1: No chips detected",
        ),
        ("exit 3", "tt-smi -s ended with exit code 3"),
        ("echo Gathering", "tt-smi -s ended with exit code 0: Gathering"),
        ("exec /bin/sleep 60", "tt-smi -s did not answer within 0.3 s"),
    ],
)
def test_a_tt_smi_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    monkeypatch.setattr(module, "_SMI_TIMEOUT_S", 0.3 if "sleep" in script else 30)
    assert tt_smi_snapshot(smi(tmp_path, script)) == (None, problem)


def test_a_tt_smi_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "tt-smi").write_text("#!/does/not/exist\n")
    (tmp_path / "tt-smi").chmod(0o755)
    text, problem = tt_smi_snapshot({"PATH": str(tmp_path)})
    assert text is None
    assert problem == f"{tmp_path}/tt-smi cannot be started: No such file or directory"
