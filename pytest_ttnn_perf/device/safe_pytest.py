"""The files by which tt-metal's run_safe_pytest.sh says that it uses the devices, or left them."""

from __future__ import annotations

import contextlib
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

    A run that was started by the script itself finds the lock in its own hands, or in those of a
    process above it. While the script runs, its mark of a dirty device is always there, and means
    nothing.
    """
    locked, dirty = root / LOCKED, root / DIRTY
    if is_held(locked):
        return _held_by_another(locked, root / "proc")
    if dirty.exists():
        return f"{dirty}: a run on the devices was cut short: tt-smi -r && rm {dirty}"
    return None


def _held_by_another(locked: Path, proc: Path) -> str | None:
    """Say who holds the lock; None if it is this run's own.

    The kernel names who took it, and that may be a program that has ended, as after ``exec 9>FILE;
    flock 9``: the lock lives on in the descriptor, in every process that inherited it.
    """
    lock, taken_by = locked.stat(), _taken_by(locked, proc)
    above = list(_ancestors(os.getpid(), proc))
    if taken_by in above or any(_holds(proc / str(pid), lock) for pid in above):
        return None
    others = sorted(int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal())
    holder = next((pid for pid in others if _holds(proc / str(pid), lock)), taken_by)
    if holder is None:
        unseen = "a process that cannot be seen here, such as one of another container"
        return f"{locked} is held by {unseen}: let it end"
    return f"{locked} is held by pid {holder}, which runs tests on the devices: let it end"


def _holds(process: Path, lock: os.stat_result) -> bool:
    """Tell whether a process has the descriptor by which a file is locked."""
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:  # another user's, or it has ended
        return False
    for descriptor in descriptors:
        with contextlib.suppress(OSError):  # closed meanwhile, as that of the listing itself
            told = (process / "fdinfo" / descriptor.name).read_text(encoding="utf-8")
            if "FLOCK" in told and os.path.samestat(descriptor.stat(), lock):
                return True
    return False


def _taken_by(file: Path, proc: Path) -> int | None:
    """Return who took the lock on a file; None where the kernel does not tell, as in containers."""
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
