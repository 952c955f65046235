"""The host: its identity, its load, its chips by their driver."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import tempfile
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import Environment, Hardware

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.machine.chips import Broker


class Tenant(Struct, frozen=True):
    """A process that has a chip open."""

    chip: int
    pid: int
    command: str


class Machine(Struct, frozen=True):
    """A host and its chips, with no chip touched; None is unknown.

    ``tenants_known`` is false where processes of other users cannot be seen. ``locked`` and
    ``dirty`` are the files by which tt-metal's run_safe_pytest.sh says that it uses the devices,
    and that they were left in a state which needs a reset. ``lock_holder`` says who has the lock;
    None if it is this process' own.
    """

    devices: tuple[int, ...]
    governor: str | None
    iommu: bool | None
    hugepages: int | None
    driver: str | None
    tenants: tuple[Tenant, ...]
    tenants_known: bool
    kernel_cache: Path
    kernels_cached: bool
    locked: Path | None = None
    dirty: Path | None = None
    lock_holder: str | None = None
    broker: Broker | None = None


#: Below the root of a host's files.
_GOVERNOR_FILE: Final = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
_GOVERNOR: Final = Path("/", _GOVERNOR_FILE)
_CPUINFO: Final = Path("/proc/cpuinfo")
_VERSION: Final = re.compile(r"^Version: (\S+)", re.MULTILINE)


def host_hardware() -> Hardware:
    """Return the identity of a machine without a device."""
    return Hardware(arch="host", board=platform.machine() or "unknown")


#: Names the machine in keys; where it is not set, a hash of its name stands for it.
MACHINE: Final = "TTNN_PERF_MACHINE"


def on_this_host(
    hardware: Hardware, parts: Collection[str], environment: Mapping[str, str]
) -> Hardware:
    """Add this machine to hardware, if keys name the host.

    Of the machine's own name only a hash is kept: baselines may leave the company. It changes with
    every container, which is what the variable is for.
    """
    if "host" not in parts:
        return hardware
    name = environment.get(MACHINE, "").strip().lower()
    named = re.sub(r"[^a-z0-9_]", "_", name)
    if not named.strip("_"):  # nothing is left of a name in another script
        named = _host_hash(name or platform.node())
    return replace(hardware, host=named)


def _host_hash(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:12]


def host_environment(*, now: datetime) -> Environment:
    """Record what is true of this host."""
    return Environment(
        started_at=now.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.release()}",
        cpu=_cpu_model(),
        cpu_count=os.cpu_count(),
        memory_bytes=_memory_bytes(),
        load_1m=_load(),
        governor=line_of(_GOVERNOR),
        # Runs on one host can be told apart without its name leaving the company.
        host_hash=_host_hash(platform.node()),
        pytest=installed_version("pytest"),
        plugin=installed_version("pytest-ttnn-perf"),
        numpy=installed_version("numpy"),
        torch=installed_version("torch"),
        ttnn=installed_version("ttnn"),
    )


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution; imports nothing."""
    try:
        found = metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return None
    # By its line: parsing all of it, as metadata.version does, takes ten times as long.
    stated = _VERSION.search(found.read_text("METADATA") or "")
    return stated[1] if stated else found.version


def _cpu_model() -> str | None:
    try:
        with _CPUINFO.open(encoding="utf-8") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() in {"model name", "Model"}:
                    return value.strip()
    except OSError:
        pass
    return platform.processor() or None


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


#: Names the folder that holds ``proc`` and ``sys`` of the host, where a container has them.
ROOT: Final = "TTNN_PERF_HOST"
_LOAD: Final = "proc/loadavg"


def host_load(environment: Mapping[str, str]) -> Mapping[str, Scalar]:
    """Return the load, the processors and their governor, where known.

    ``load_1m`` counts what the test itself did in the last minute, such as computing what it
    expects. ``runnable_threads``, of this moment, are all others: while it asks, a test does
    nothing else.
    """
    root = Path(environment.get(ROOT) or "/")
    words = (line_of(root / _LOAD) or "").split()
    found: dict[str, Scalar] = {}
    try:
        found["load_1m"] = float(words[0])
        found["runnable_threads"] = int(words[3].partition("/")[0]) - 1
    except (IndexError, ValueError):
        found = {}
    # All that there are, not those that this process may use: the load is of all as well.
    known = {"cpu_count": os.cpu_count(), "governor": line_of(root / _GOVERNOR_FILE)}
    return {**found, **{name: value for name, value in known.items() if value is not None}}


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
    """Look at the machine; nothing missing is an error."""
    from pytest_ttnn_perf.machine.chips import DIRTY, LOCKED, find_broker, held_by_another, is_held

    nodes = [entry.name for entry in _entries(devices or root / "dev/tenstorrent")]
    chips = tuple(sorted(int(name) for name in nodes if name.isdecimal()))
    tenants, known = _tenants(chips, root / "proc")
    cache = kernel_cache(environment)
    locked, dirty = root / LOCKED, root / DIRTY
    pages = line_of(root / _HUGEPAGES)
    return Machine(
        devices=chips,
        governor=line_of(root / _GOVERNOR_FILE),
        iommu=_iommu(root),
        hugepages=int(pages) if pages is not None and pages.isdecimal() else None,
        driver=line_of(root / _DRIVER),
        tenants=tenants,
        tenants_known=known,
        kernel_cache=cache,
        kernels_cached=kernels_cached(environment),
        locked=locked if is_held(locked) else None,
        lock_holder=held_by_another(locked, root / "proc") if is_held(locked) else None,
        dirty=dirty if dirty.exists() else None,
        broker=find_broker(environment, root),
    )


def tt_smi_snapshot(environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the output of ``tt-smi -s``, or why it is missing.

    It reads the boards' telemetry, and takes no chip from anybody.
    """
    program = shutil.which("tt-smi", path=environment.get("PATH", ""))
    if program is None:
        return None, "tt-smi is not on PATH"
    from pytest_ttnn_perf.machine.processes import run_bounded

    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            ending = run_bounded(
                [program, "-s"],
                timeout_s=_SMI_TIMEOUT_S,
                stdout=output,
                stderr=errors,
                environment=environment,
            )
        except OSError as error:
            return None, f"{program} cannot be started: {error.strerror}"
        for file in (output, errors):
            file.seek(0)
        printed = output.read().decode(errors="replace")
        complaints = errors.read().decode(errors="replace")
    if ending.hung:
        return None, f"tt-smi -s did not answer within {_SMI_TIMEOUT_S:g} s"
    if ending.code or "{" not in printed:
        lines = (complaints + printed).strip().splitlines()
        last = f": {lines[-1].strip()}" if lines else ""
        return None, f"tt-smi -s ended with exit code {ending.code}{last}"
    return printed[printed.index("{") :], None  # some releases log before it


def _tenants(devices: Iterable[int], proc: Path) -> tuple[tuple[Tenant, ...], bool]:
    """Return who else has chips open, and whether all were seen."""
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
    """Return the driver's list of all users; older drivers have none."""
    try:
        text = (proc / f"driver/tenstorrent/{chip}/pids").read_text(encoding="utf-8")
        return [int(pid) for pid in text.split()]
    except (OSError, ValueError):
        return None


def _opened(proc: Path) -> tuple[set[tuple[int, int]], bool]:
    """Return the chips that processes have open, and whether all were seen."""
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
    """Return whether an IOMMU translates for the chips, not just exists."""
    for pattern in _IOMMU:
        types = [line_of(file) for file in sorted(root.glob(pattern))]
        if types:
            return all(kind is not None and kind.startswith("DMA") for kind in types)
    return False if (root / "sys/kernel").is_dir() else None


def kernels_cached(environment: Mapping[str, str]) -> bool:
    """Return whether any kernel was compiled before."""
    return any(_entries(entry) for entry in _entries(kernel_cache(environment)))


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


def line_of(file: Path) -> str | None:
    """Return the text of a small file; None where there is nothing."""
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None


def telemetry(system: Path = Path("/sys")) -> Mapping[str, Scalar]:
    """Return the slowest clock, the largest power and temperature of the chips.

    What the driver does not tell is left out.
    """
    chips = sorted(system.glob("class/tenstorrent/tenstorrent!*"))
    found: dict[str, Scalar] = {
        "clock_mhz": min(_numbers(chips, "tt_aiclk"), default=None),
        "power_w": max(_numbers(chips, "device/hwmon/hwmon*/power1_input", per=1e6), default=None),
        "temperature_c": max(
            _numbers(chips, "device/hwmon/hwmon*/temp1_input", per=1e3), default=None
        ),
        "thermal_trips": max(_numbers(chips, "tt_therm_trip_count"), default=None),
        "firmware": ", ".join(sorted(set(_texts(chips, "tt_fw_bundle_ver")))) or None,
        "driver": line_of(system / "module/tenstorrent/version"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _numbers(folders: Iterable[Path], name: str, *, per: float = 1.0) -> Iterator[float]:
    for text in _texts(folders, name):
        if text.isdecimal():
            yield int(text) / per


def _texts(folders: Iterable[Path], name: str) -> Iterator[str]:
    for folder in folders:
        for file in sorted(folder.glob(name)):
            text = line_of(file)
            if text is not None:
                yield text
