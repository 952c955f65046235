"""Who else has a say in the devices: tt-metal's run_safe_pytest.sh, the broker tt-device-mcp."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.device.chips import is_held
from pytest_ttnn_perf.processes.commands import listener_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


LOCKED: Final = "tmp/tt-device.lock"
DIRTY: Final = "tmp/tt-device.dirty"
#: How a device is reset where nobody else looks after it.
RESET: Final = "tt-smi -r"


def in_the_way(root: Path = Path("/"), *, reset: str = RESET) -> str | None:
    """Say why no device may be used now, and what to do; None if nothing is against it.

    A run that was started by the script itself finds the lock in its own hands, or in those of a
    process above it. While the script runs, its mark of a dirty device is always there, and means
    nothing.
    """
    locked, dirty = root / LOCKED, root / DIRTY
    if is_held(locked):
        holder = held_by_another(locked, root / "proc")
        return holder and f"{locked} is held {holder}: let it end"
    if dirty.exists():
        return f"{dirty}: a run on the devices was cut short: {reset} && rm {dirty}"
    return None


def held_by_another(locked: Path, proc: Path) -> str | None:
    """Say who holds a lock that is held; None if it is this run's own.

    The kernel names who took it, and that may be a program that has ended, as after ``exec 9>FILE;
    flock 9``: the lock lives on in the descriptor, in every process that inherited it.
    """
    lock, taken_by = locked.stat(), _taken_by(locked, proc)
    above = list(_ancestors(os.getpid(), proc))
    if taken_by in above or any(_holds(proc / str(pid), lock) for pid in above):
        return None
    others = sorted(int(entry.name) for entry in proc.glob("[0-9]*"))
    holder = next((pid for pid in others if _holds(proc / str(pid), lock)), None)
    if holder is None and taken_by in others:
        holder = taken_by
    if holder is not None:
        return f"by pid {holder}, which runs tests on the devices"
    if taken_by is not None:
        ended = f"by a process that cannot be inspected; pid {taken_by}, which took it, has ended"
        return f"{ended}, and passed it on, perhaps to another user's"
    return "by a process that /proc/locks does not show, such as one of another container"


def _holds(process: Path, lock: os.stat_result) -> bool:
    """Tell whether a process has the descriptor by which a file is locked."""
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:  # another user's, or it has ended
        return False
    for descriptor in descriptors:
        with contextlib.suppress(OSError):  # closed meanwhile, as that of the listing itself
            locks = (process / "fdinfo" / descriptor.name).read_text(encoding="utf-8")
            if "FLOCK" in locks and os.path.samestat(descriptor.stat(), lock):
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
            return int(fields[4]) if fields[4].isdecimal() and fields[4] != "0" else None
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


BROKER: Final = "tt-device-mcp"
#: Where the broker of a host listens.
_OF_HOST: Final = "run/tt-device-broker/broker.sock"
#: What the control groups of its jobs are called, where it runs them as their users.
_JOB: Final = "ttdev-job-"


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that is up: tests go through its queue, and it alone resets the devices.

    ``runs_us``: whether this process belongs to one of its jobs; None where that cannot be told.
    """

    socket: Path
    runs_us: bool | None

    @property
    def reset(self) -> str:
        """How its devices are reset."""
        return f"{BROKER} reset"

    def allows(self, command: str) -> bool:
        """Tell whether a command may reset its devices.

        In a job none may: the broker would end the job first.
        """
        return self.runs_us is False and command.split()[:2] == self.reset.split()

    @property
    def instead(self) -> str:
        """What happens instead of a reset by hand, or what to do."""
        if self.runs_us:
            return f"the device broker {BROKER} resets its devices itself, after this job"
        return f"the device broker {BROKER} is up ({self.socket}): {self.reset}"


def find_broker(environment: Mapping[str, str], root: Path = Path("/")) -> Broker | None:
    """Return the device broker that is up on this machine; None where nobody listens."""
    for file in _sockets(environment, root):
        pid = listener_of(file)
        if pid is not None:
            return Broker(file, _runs_us(pid, root / "proc"))
    return None


def _sockets(environment: Mapping[str, str], root: Path) -> Iterator[Path]:
    """Yield where a broker may listen, in the order in which its own client looks."""
    named = environment.get("TT_DEVICE_MCP_SOCKET")
    if named:
        yield Path(named)
        return
    yield root / _OF_HOST
    installed = environment.get("TT_DEVICE_MCP_INSTALL_DIR", "").strip()
    base = Path(installed) if installed else root / f"tmp/tt-device-mcp-{os.getuid()}"
    state = environment.get("TT_DEVICE_MCP_STATE_DIR", "").strip()
    for folder in (Path(state),) if state else (base / "state", base):
        yield folder / "daemon.sock"


def _runs_us(broker: int, proc: Path) -> bool | None:
    with contextlib.suppress(OSError):
        if _JOB in (proc / "self" / "cgroup").read_text(encoding="utf-8"):
            return True
    if broker <= 1:  # one of another container, or a socket that init keeps open for it
        return None
    return broker in list(_ancestors(os.getpid(), proc))[1:]
