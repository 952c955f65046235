"""The files by which tt-metal's run_safe_pytest.sh says that it uses the devices, or left them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.device.leases import is_held

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCKED: Final = "tmp/tt-device.lock"
DIRTY: Final = "tmp/tt-device.dirty"


def in_the_way(root: Path = Path("/")) -> str | None:
    """Say why no device may be used now, and what to do; None if nothing is against it.

    A run that was started by the script itself finds its lock held by a process above it. While the
    script runs, its mark of a dirty device is always there, and means nothing.
    """
    locked, dirty = root / LOCKED, root / DIRTY
    if is_held(locked):
        holder = _holder(locked, root / "proc")
        if holder is None or holder in set(_ancestors(os.getpid(), root / "proc")):
            return None
        return f"{locked} is held by pid {holder}, which runs tests on the devices: let it end"
    if dirty.exists():
        return f"{dirty}: a run on the devices was cut short: tt-smi -r && rm {dirty}"
    return None


def _holder(file: Path, proc: Path) -> int | None:
    """Return who holds the lock on a file; None where the kernel does not tell."""
    try:
        inode = file.stat().st_ino
        lines = (proc / "locks").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):
            return int(fields[4]) if fields[4].isdecimal() else None
    return None


def _ancestors(pid: int, proc: Path) -> Iterator[int]:
    while pid > 0:
        yield pid
        try:
            text = (proc / str(pid) / "stat").read_text(encoding="utf-8")
        except OSError:
            return
        # After the name, which may hold anything, come the state and the parent.
        pid = int(text.rpartition(")")[2].split()[1])
