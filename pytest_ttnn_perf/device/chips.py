"""One run per chip: who holds a chip's lock measures on it, and the others wait.

Chips are counted as the driver does, /dev/tenstorrent/0 and so on. A lock is the kernel's: it is
free as soon as its holder is gone, however that ended. Who holds it stands in a file beside it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import stat
import sys
import tempfile
import time
from dataclasses import field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.device.environment import devices_of, is_simulated
from pytest_ttnn_perf.device.ttnn import put_in_place, when_imported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from filelock import BaseFileLock


DEVICES: Final = devices_of({})
VISIBLE: Final = "TT_VISIBLE_DEVICES"
_POLL_S: Final = 0.2
#: Everybody may make a lock there, and nobody remove another's.
_SHARED_FOLDER: Final = 0o777 | stat.S_ISVTX
_SHARED_FILE: Final = 0o666
_LONGEST_COMMAND: Final = 60


@dataclass(slots=True)
class Lease:
    """The chips that this process may use; used as a context, they are given back when it ends.

    So they are when nothing refers to it any more.
    """

    chips: tuple[int, ...]
    _locks: list[tuple[BaseFileLock, Path]] = field(default_factory=list)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process must be given so that it uses these chips and no other."""
        return {VISIBLE: ",".join(map(str, self.chips))} if self.chips else {}

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Give the chips back. The lock files stay: unlinking a lock splits its waiters."""
        while self._locks:
            lock, beside = self._locks.pop()
            with contextlib.suppress(OSError):
                os.truncate(beside, 0)
            lock.release()


def lock_folder(temporary: Path | None = None) -> Path:
    """Return where locks are kept unless another folder is named: the same for all users."""
    return (temporary or Path(tempfile.gettempdir())) / "ttnn-perf-locks"


def visible_chips(environment: Mapping[str, str], devices: Path = DEVICES) -> tuple[int, ...]:
    """Return the chips that a process with this environment would use."""
    if is_simulated(environment):
        return ()
    try:
        present = sorted(int(entry.name) for entry in devices.iterdir() if entry.name.isdecimal())
    except OSError:
        return ()
    named = [name.strip() for name in environment.get(VISIBLE, "").split(",") if name.strip()]
    # Bus ids are not resolved here: to lock more chips than are used is safe.
    if not named or not all(name.isdecimal() for name in named):
        return tuple(present)
    return tuple(chip for chip in present if chip in map(int, named))


def take(
    chips: Sequence[int], folder: Path, *, timeout_s: float, print_line: Callable[[str], None]
) -> Lease:
    """Take all of the chips, one after another in the same order everywhere: no two runs deadlock.

    Raises:
        UsageError: another run still holds one of them, or the locks cannot be made.
    """
    deadline = time.monotonic() + timeout_s
    locks: list[tuple[BaseFileLock, Path]] = []
    lease = Lease(tuple(sorted(set(chips))), locks)
    try:
        for chip in lease.chips:
            _, lock = _Wait((chip,), folder, deadline, timeout_s).first(print_line)
            locks.append(lock)
    except BaseException:
        lease.release()
        raise
    return lease


def take_one(
    chips: Sequence[int], folder: Path, *, timeout_s: float, print_line: Callable[[str], None]
) -> Lease:
    """Take the first of the chips that is free: for one of several workers side by side.

    Raises:
        UsageError: other runs still hold all of them, or the locks cannot be made.
    """
    wait = _Wait(tuple(sorted(set(chips))), folder, time.monotonic() + timeout_s, timeout_s)
    chip, lock = wait.first(print_line)
    return Lease((chip,), [lock])


def holder_of(chip: int, folder: Path) -> str | None:
    """Return who holds a chip's lock, in words; None when it is free."""
    lock, beside = _files(chip, folder)
    return _holder(beside) if is_held(lock) else None


def is_held(lock: Path) -> bool:
    """Tell whether any process holds the lock on this file; one that cannot be read is not held."""
    from fcntl import LOCK_NB, LOCK_SH, flock

    try:
        with lock.open("rb") as stream:
            flock(stream, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@dataclass(frozen=True, slots=True)
class _Wait:
    """For the first of some chips, until the deadline."""

    chips: tuple[int, ...]
    folder: Path
    deadline: float
    timeout_s: float

    def first(self, print_line: Callable[[str], None]) -> tuple[int, tuple[BaseFileLock, Path]]:
        printed = False
        while True:
            for chip in self.chips:
                lock = _try_lock(chip, self.folder)
                if lock is not None:
                    return chip, lock
            if time.monotonic() >= self.deadline:
                raise UsageError(self._refusal())
            if not printed:
                print_line(f"waiting for {self._held()}")
                printed = True
            time.sleep(_POLL_S)

    def _held(self) -> str:
        beside = ((chip, _files(chip, self.folder)[1]) for chip in self.chips)
        return "; ".join(f"chip {chip}: held by {_holder(file)}" for chip, file in beside)

    def _refusal(self) -> str:
        return (
            f"waited {self.timeout_s:g} s for {self._held()}: let it end, or name chips that are "
            f"free in {VISIBLE}"
        )


def _try_lock(chip: int, folder: Path) -> tuple[BaseFileLock, Path] | None:
    """Lock a chip if it is free."""
    from filelock import FileLock, Timeout

    file, beside = _files(chip, folder)
    try:
        _make(folder)
        # Not bound to a thread: a run may end in another than it began in.
        lock = FileLock(file, mode=_SHARED_FILE, thread_local=False)
        lock.acquire(blocking=False)
        # A holder that cannot say who it is holds the lock all the same.
        with contextlib.suppress(OSError):
            _write_shared(beside, _myself())
    except Timeout:
        return None
    except OSError as error:
        message = f"{file}: cannot lock chip {chip}: {error.strerror or error}: name a folder "
        raise UsageError(f"{message}that every user of the chip can write to") from error
    return lock, beside


def _files(chip: int, folder: Path) -> tuple[Path, Path]:
    return folder / f"chip-{chip}.lock", folder / f"chip-{chip}.holder"


def _make(folder: Path) -> None:
    if folder.is_dir():
        return
    try:
        folder.mkdir(parents=True)
        folder.chmod(_SHARED_FOLDER)  # mkdir's own mode is cut by the umask
    except FileExistsError:  # made by another run meanwhile, or something else of that name
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None


def _write_shared(file: Path, text: str) -> None:
    """Write in place: among users who share a folder, only a file's owner may replace it.

    The kernel lets nobody open another's file there with O_CREAT either.
    """
    try:
        handle = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
    except FileNotFoundError:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _SHARED_FILE)
        os.fchmod(handle, _SHARED_FILE)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)


def _myself() -> str:
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]).strip()
    if len(command) > _LONGEST_COMMAND:
        command = command[: _LONGEST_COMMAND - 1] + "…"
    since = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({"pid": os.getpid(), "command": command, "since": since})


def _holder(beside: Path) -> str:
    """Return who wrote itself down beside a lock; it may be about to."""
    try:
        holder = json.loads(beside.read_text(encoding="utf-8"))
        return f"pid {holder['pid']} ({holder['command']}) since {holder['since']}"
    except (OSError, ValueError, TypeError, LookupError):
        return "a process that has not said who it is"


#: Each of these creates the context that owns the chips; ``get_arch_name`` does not.
_TOUCHING: Final = (
    "get_num_devices", "GetNumAvailableDevices", "GetNumPCIeDevices", "GetPCIeDeviceID",
    "get_device_ids", "get_pcie_device_ids", "open_device", "open_mesh_device", "CreateDevice",
    "CreateDevices",
)  # fmt: skip
_OF_CLUSTER: Final = ("get_cluster_type", "serialize_cluster_descriptor")


@dataclass(slots=True)
class Touched:
    """Remembers the first call that touched a chip."""

    by: str | None = None

    def watch(self) -> None:
        """Take notice of every such call from now on."""
        when_imported("ttnn", self._watch)

    def _watch(self, ttnn: ModuleType) -> None:
        for name in _TOUCHING:
            put_in_place(name, ttnn, functools.partial(self._noticing, f"ttnn.{name}"))
        cluster = getattr(ttnn, "cluster", None)
        for name in _OF_CLUSTER:
            original = getattr(cluster, name, None)
            if original is not None:
                wrapped = self._noticing(f"ttnn.cluster.{name}", original)
                setattr(cluster, name, wrapped)

    def _noticing(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def touching(*args: Any, **kwargs: Any) -> Any:
            if self.by is None:
                caller = sys._getframe(1)  # noqa: SLF001 (its place is what helps)
                self.by = f"{name} in {caller.f_code.co_filename}:{caller.f_lineno}"
            return original(*args, **kwargs)

        return touching


#: What launchers tell a process about itself: its rank, and how many there are.
_LAUNCHERS: Final = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    # Of a step, not of the allocation, in which a single process may run as well.
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)


class Rank(NamedTuple):
    """One of several processes that a launcher has started for one program."""

    number: int
    size: int

    def __str__(self) -> str:
        return f"rank {self.number} of {self.size}"


def rank_of(environment: Mapping[str, str]) -> Rank | None:
    """Return which of several processes this is; None for the only one."""
    for number, size in _LAUNCHERS:
        values = environment.get(number, ""), environment.get(size, "")
        if all(text.isdecimal() for text in values) and int(values[1]) > 1:
            return Rank(int(values[0]), int(values[1]))
    return None
