"""One run per chip: who holds a chip's lock measures on it, and the others wait.

Chips are counted as the driver does, /dev/tenstorrent/0 and so on. A lock is the kernel's: it is
free as soon as its holder is gone, however that ended. Who holds it stands in a file beside it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from filelock import BaseFileLock

DEVICES: Final = Path("/dev/tenstorrent")
VISIBLE: Final = "TT_VISIBLE_DEVICES"
#: Any of them stands in for chips that are not there.
_SIMULATED: Final = ("TT_METAL_MOCK_CLUSTER_DESC_PATH", "TT_METAL_SIMULATOR")
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


def is_simulated(environment: Mapping[str, str]) -> bool:
    """Tell whether ttnn is asked to leave the hardware alone."""
    return any(environment.get(name) for name in _SIMULATED)


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
    chips: Sequence[int], folder: Path, *, timeout_s: float, say: Callable[[str], None]
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
            _, lock = _Wait((chip,), folder, deadline, timeout_s).first(say)
            locks.append(lock)
    except BaseException:
        lease.release()
        raise
    return lease


def take_one(
    chips: Sequence[int], folder: Path, *, timeout_s: float, say: Callable[[str], None]
) -> Lease:
    """Take the first of the chips that is free: for one of several workers side by side.

    Raises:
        UsageError: other runs still hold all of them, or the locks cannot be made.
    """
    wait = _Wait(tuple(sorted(set(chips))), folder, time.monotonic() + timeout_s, timeout_s)
    chip, lock = wait.first(say)
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

    def first(self, say: Callable[[str], None]) -> tuple[int, tuple[BaseFileLock, Path]]:
        told = False
        while True:
            for chip in self.chips:
                lock = _tried(chip, self.folder)
                if lock is not None:
                    return chip, lock
            if time.monotonic() >= self.deadline:
                raise UsageError(self._refusal())
            if not told:
                say(f"waiting for {self._held()}")
                told = True
            time.sleep(_POLL_S)

    def _held(self) -> str:
        beside = ((chip, _files(chip, self.folder)[1]) for chip in self.chips)
        return "; ".join(f"chip {chip}: held by {_holder(file)}" for chip, file in beside)

    def _refusal(self) -> str:
        return (
            f"waited {self.timeout_s:g} s for {self._held()}: let it end, or name chips that are "
            f"free in {VISIBLE}"
        )


def _tried(chip: int, folder: Path) -> tuple[BaseFileLock, Path] | None:
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
        told = json.loads(beside.read_text(encoding="utf-8"))
        return f"pid {told['pid']} ({told['command']}) since {told['since']}"
    except (OSError, ValueError, TypeError, LookupError):
        return "a process that has not said who it is"
