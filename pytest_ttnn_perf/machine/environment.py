"""The host, and variables for workers and profilers."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import Environment, Hardware
from pytest_ttnn_perf.core.settings import ProfilerKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pytest_ttnn_perf.core.hardware import Scalar


#: Either of them stands in for chips that are not there; the second is taken where both are set.
MOCK: Final = "TT_METAL_MOCK_CLUSTER_DESC_PATH"
SIMULATOR: Final = "TT_METAL_SIMULATOR"
#: Programs go out one by one, even where it is set to 0.
SLOW_DISPATCH: Final = "TT_METAL_SLOW_DISPATCH_MODE"


#: Where the driver's devices are, if not in the usual place: in a container, or for a test.
_DEVICES: Final = "TTNN_PERF_DEVICES"


def devices_of(environment: Mapping[str, str]) -> Path:
    return Path(environment.get(_DEVICES) or "/dev/tenstorrent")


def is_simulated(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name) for name in (MOCK, SIMULATOR))


#: The profiler's own report, in the folder that it is given.
REPORT: Final = ".logs/cpp_device_perf_report.csv"
#: Where tt-lang looks for what the profiler writes, below TT_METAL_HOME.
TTLANG_LOGS: Final = "generated/profiler/.logs"
_FOLDER: Final = "profiler"
_LOGS_PATH: Final = "TT_METAL_LOGS_PATH"
_PROFILER_DIR: Final = "TT_METAL_PROFILER_DIR"
PROGRAM_ROOM: Final = "TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT"
#: How many programs the profiler is given room for where the usual thousand were not enough.
_MORE_PROGRAMS: Final = 10_000
#: A device that answers no op for so long hangs; the longest ops take seconds.
_OPERATION_TIMEOUT_S: Final = 300


#: Variables that decide what a test measures, and hold no secret.
_CHOOSING: Final = (
    "ARCH_NAME",
    "MESH_DEVICE",
    "HF_MODEL",
    "LLAMA_DIR",
    "FAKE_DEVICE",
    "WH_ARCH_YAML",
)
_CHOOSING_PREFIXES: Final = ("TT_METAL_", "TT_VISIBLE_", "TT_MESH_", "TTNN_CONFIG", "TTLANG_")


def chosen_variables(environment: Mapping[str, str]) -> str | None:
    """Return the variables that decide what is measured, for a shell."""
    chosen = (
        f"{name}={shlex.quote(value)}"
        for name, value in sorted(environment.items())
        if name in _CHOOSING or name.startswith(_CHOOSING_PREFIXES)
    )
    return " ".join(chosen) or None


def worker_variables(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the variables of every worker, unless the user set them.

    Opening a device writes logs: into the worker's ``folder``, not where the user stands.
    """
    given = {
        _LOGS_PATH: str(folder / "logs"),
        "TT_METAL_OPERATION_TIMEOUT_SECONDS": str(_OPERATION_TIMEOUT_S),
    }
    return {name: value for name, value in given.items() if name not in environment}


def profiler_variables(kind: ProfilerKind, folder: Path, *, more_room: bool) -> dict[str, str]:
    """Return what a worker is given whose tests are profiled.

    With ``more_room`` fewer markers are dropped; kernels are compiled anew for it, and the device
    has less memory.
    """
    if kind is ProfilerKind.TTLANG:
        # Not with a profiler folder of its own: tt-lang looks for the traces in the usual one.
        return {
            "TTLANG_PERF_DUMP": "1",
            "TT_METAL_DEVICE_PROFILER": "1",
            "TT_METAL_DEVICE_PROFILER_NOC_EVENTS": "1",
            "TT_METAL_PROFILER_MID_RUN_DUMP": "1",
        }
    if kind is ProfilerKind.TRACY:
        return {}  # its launcher sets them
    variables = {
        "TT_METAL_DEVICE_PROFILER": "1",
        "TT_METAL_PROFILER_MID_RUN_DUMP": "1",
        "TT_METAL_PROFILER_CPP_POST_PROCESS": "1",
        _PROFILER_DIR: str(folder / _FOLDER),
    }
    if more_room:
        variables[PROGRAM_ROOM] = str(_MORE_PROGRAMS)
    return variables


def move_folders(environment: Mapping[str, str], shared: Path, own: Path) -> dict[str, str]:
    """Move the folders of a worker into one process' own."""
    given = {name: Path(environment.get(name, "")) for name in (_LOGS_PATH, _PROFILER_DIR)}
    return {
        name: str(own / place.relative_to(shared))
        for name, place in given.items()
        if place.is_relative_to(shared)
    }


def report_in(folder: Path) -> Path:
    return folder / _FOLDER / REPORT


# The host: its identity, its load, its chips by their driver.

#: Below the root of a host's files.
GOVERNOR_FILE: Final = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
_GOVERNOR: Final = Path("/", GOVERNOR_FILE)
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
    return Environment(
        started_at=now.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.release()}",
        cpu=_cpu_model(),
        cpu_count=os.cpu_count(),
        load_1m=round(os.getloadavg()[0], 2),
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
    known = {"cpu_count": os.cpu_count(), "governor": line_of(root / GOVERNOR_FILE)}
    return {**found, **{name: value for name, value in known.items() if value is not None}}


def kernels_cached(environment: Mapping[str, str]) -> bool:
    return any(entries(entry) for entry in entries(kernel_cache(environment)))


def kernel_cache(environment: Mapping[str, str]) -> Path:
    named = environment.get("TT_METAL_CACHE")
    if named:
        return Path(named) / "tt-metal-cache"
    return Path(environment.get("HOME") or "/") / ".cache" / "tt-metal-cache"


def entries(folder: Path) -> list[Path]:
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
