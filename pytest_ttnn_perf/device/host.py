"""The host, without a slow call: what /proc and platform tell at once."""

from __future__ import annotations

import hashlib
import os
import platform
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Final

from pytest_ttnn_perf.model.hardware import Environment, Hardware

_GOVERNOR: Final = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_CPUINFO: Final = Path("/proc/cpuinfo")


def host_hardware() -> Hardware:
    """Return the identity of a machine without a device."""
    return Hardware(arch="host", board=platform.machine() or "unknown")


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
        governor=_first_line(_GOVERNOR),
        # Runs on one host can be told apart without its name leaving the company.
        host_hash=hashlib.sha256(platform.node().encode()).hexdigest()[:12],
        pytest=_version("pytest"),
        plugin=_version("pytest-ttnn-perf"),
        numpy=_version("numpy"),
        torch=_version("torch"),
        ttnn=_version("ttnn"),
    )


def _version(distribution: str) -> str | None:
    """Return an installed version without importing the package."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


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


def _first_line(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
