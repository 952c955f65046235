"""The host, without a slow call: what /proc, platform and git tell at once."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Final

from pytest_ttnn_perf.model.hardware import Environment, Hardware

#: A repository that takes longer than this to answer is recorded as unknown.
_GIT_TIMEOUT_S: Final = 5.0
_GOVERNOR: Final = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_CPUINFO: Final = Path("/proc/cpuinfo")


def host_hardware() -> Hardware:
    """Return the identity of a machine without a device."""
    return Hardware(arch="host", board=platform.machine() or "unknown")


def host_environment(project: Path, *, now: datetime) -> Environment:
    """Record what is true of this host and of the ``project`` checked out on it."""
    commit, dirty = _git_state(project)
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
        commit=commit,
        dirty=dirty,
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


def _git_state(project: Path) -> tuple[str | None, bool | None]:
    """Return the commit and whether tracked files differ from it; None where git cannot tell."""
    command = ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    command.append("--ignore-submodules=dirty")  # looking into large ones takes seconds
    try:
        answer = subprocess.run(
            command,
            cwd=project,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=True,
            # Asking must not take the index lock from a git command of the user's.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None, None
    lines = answer.stdout.splitlines()
    commits = [line.split()[-1] for line in lines if line.startswith("# branch.oid ")]
    commit = commits[0] if commits and commits[0] != "(initial)" else None
    return commit, any(not line.startswith("#") for line in lines)
