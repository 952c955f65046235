"""The machine as /proc, /sys and tt-smi show it, with no chip touched."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.device.leases import is_held
from pytest_ttnn_perf.device.safe_pytest import DIRTY, LOCKED
from pytest_ttnn_perf.model.doctor import Machine, Tenant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_GOVERNOR: Final = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
_DRIVER: Final = "sys/module/tenstorrent/version"
#: tt-metal maps pages of 1 GB.
_HUGEPAGES: Final = "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
#: By chip where the driver has any, otherwise of the whole host.
_IOMMU: Final = (
    "sys/class/tenstorrent/*/device/iommu_group/type",
    "sys/kernel/iommu_groups/*/type",
)
_NODE: Final = re.compile(r"/dev/tenstorrent/(\d+)")
_SMI_TIMEOUT_S: Final = 30.0
_LONGEST_COMMAND: Final = 60


def machine(
    environment: Mapping[str, str], *, root: Path = Path("/"), devices: Path | None = None
) -> Machine:
    """Look at the machine. What it does not tell is unknown, never an error."""
    nodes = [entry.name for entry in _entries(devices or root / "dev/tenstorrent")]
    chips = tuple(sorted(int(name) for name in nodes if name.isdecimal()))
    tenants, known = _tenants(chips, root / "proc")
    cache = kernel_cache(environment)
    locked, dirty = root / LOCKED, root / DIRTY
    pages = _line(root / _HUGEPAGES)
    return Machine(
        devices=chips,
        governor=_line(root / _GOVERNOR),
        iommu=_iommu(root),
        hugepages=int(pages) if pages is not None and pages.isdecimal() else None,
        driver=_line(root / _DRIVER),
        tenants=tenants,
        tenants_known=known,
        kernel_cache=cache,
        kernels_cached=kernels_cached(environment),
        locked=locked if is_held(locked) else None,
        dirty=dirty if dirty.exists() else None,
    )


def tt_smi_snapshot(environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return what ``tt-smi -s`` prints, and why there is nothing where it prints none.

    It reads the boards' telemetry, and takes no chip from anybody.
    """
    program = shutil.which("tt-smi", path=environment.get("PATH", ""))
    if program is None:
        return None, "tt-smi is not on PATH"
    try:
        done = subprocess.run(
            [program, "-s"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SMI_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"tt-smi -s did not answer within {_SMI_TIMEOUT_S:g} s"
    except OSError as error:
        return None, f"{program} cannot be started: {error.strerror}"
    said = done.stdout.decode(errors="replace")
    if done.returncode or "{" not in said:
        told = (done.stderr.decode(errors="replace") + said).strip().splitlines()
        last = f": {told[-1].strip()}" if told else ""
        return None, f"tt-smi -s ended with exit code {done.returncode}{last}"
    return said[said.index("{") :], None  # some releases log before it


def _tenants(devices: Iterable[int], proc: Path) -> tuple[tuple[Tenant, ...], bool]:
    """Return who has chips open besides this process, and whether all of them could be seen."""
    listed = {chip: _listed(chip, proc) for chip in devices}
    pairs = {(chip, pid) for chip, pids in listed.items() for pid in pids or ()}
    known = True
    unlisted = {chip for chip, pids in listed.items() if pids is None}
    if unlisted:
        opened, known = _opened(proc)
        pairs |= {(chip, pid) for chip, pid in opened if chip in unlisted}
    found = sorted((chip, pid) for chip, pid in pairs if pid != os.getpid())
    return tuple(Tenant(chip, pid, _command(proc / str(pid))) for chip, pid in found), known


def _listed(chip: int, proc: Path) -> list[int] | None:
    """Return the driver's own list, which has the processes of all users; older ones have none."""
    try:
        text = (proc / f"driver/tenstorrent/{chip}/pids").read_text(encoding="utf-8")
        return [int(pid) for pid in text.split()]
    except (OSError, ValueError):
        return None


def _opened(proc: Path) -> tuple[set[tuple[int, int]], bool]:
    """Return the chips that processes have open, and whether all processes could be looked into."""
    processes = [folder for folder in _entries(proc) if folder.name.isdecimal()]
    chips = {int(folder.name): _chips_in(folder / "fd") for folder in processes}
    pairs = {(chip, pid) for pid, found in chips.items() for chip in found or ()}
    return pairs, None not in chips.values()


def _chips_in(descriptors: Path) -> list[int] | None:
    try:
        targets = [str(link.readlink()) for link in descriptors.iterdir()]
    except PermissionError:
        return None
    except OSError:  # the process has ended meanwhile, or closed a file
        return []
    return [int(found[1]) for found in map(_NODE.fullmatch, targets) if found]


def _command(process: Path) -> str:
    with contextlib.suppress(OSError):
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        command = " ".join([Path(words[0]).name, *words[1:]]).strip()
        if command:
            return command if len(command) <= _LONGEST_COMMAND else command[:59] + "…"
    return "unknown"


def _iommu(root: Path) -> bool | None:
    """Tell whether chips reach memory through an IOMMU: one that translates, not one that is on."""
    for pattern in _IOMMU:
        types = [_line(file) for file in sorted(root.glob(pattern))]
        if types:
            return all(kind is not None and kind.startswith("DMA") for kind in types)
    return False if (root / "sys/kernel").is_dir() else None


def kernels_cached(environment: Mapping[str, str]) -> bool:
    """Tell whether any kernel was compiled before."""
    return any(True for entry in _entries(kernel_cache(environment)) if any(_entries(entry)))


def kernel_cache(environment: Mapping[str, str]) -> Path:
    """Return the folder in which compiled kernels are kept."""
    named = environment.get("TT_METAL_CACHE")
    if named:
        return Path(named) / "tt-metal-cache"
    return Path(environment.get("HOME") or "/") / ".cache" / "tt-metal-cache"


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _line(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None
