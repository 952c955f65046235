"""One run per chip: others wait for its lock.

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
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.hardware import card_of, system_of_chips
from pytest_ttnn_perf.machine.environment import ROOT, devices_of, is_simulated, line_of
from pytest_ttnn_perf.machine.ttnn import put_in_place, when_imported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType

    from filelock import BaseFileLock

    from pytest_ttnn_perf.core.hardware import System


# Who else has a say in the devices: tt-metal's run_safe_pytest.sh.

LOCKED: Final = "tmp/tt-device.lock"
DIRTY: Final = "tmp/tt-device.dirty"
#: How a device is reset where nobody else looks after it.
RESET: Final = "tt-smi -r"


def in_the_way(root: Path = Path("/"), *, reset: str = RESET) -> str | None:
    """Return why no device may be used now, if so.

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
    """Name the holder of a lock; None if it is this run.

    It is found by its descriptor: who took the lock may have ended, as after ``exec 9>FILE; flock
    9``, and the lock lives on in every process that inherited it.
    """
    lock = locked.stat()
    if any(_holds(proc / str(pid), lock) for pid in ancestors(proc)):
        return None
    others = sorted(int(entry.name) for entry in proc.glob("[0-9]*"))
    holder = next((pid for pid in others if _holds(proc / str(pid), lock)), None)
    if holder is None:
        return "by a process that cannot be inspected, such as one of another user or container"
    return f"by pid {holder}, which runs tests on the devices"


def _holds(process: Path, lock: os.stat_result) -> bool:
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


def ancestors(proc: Path) -> Iterator[int]:
    """Yield this process, its parent, and so on."""
    pid = os.getpid()
    while pid > 0:
        yield pid
        try:
            text = (proc / str(pid) / "stat").read_text(encoding="utf-8")
        except OSError:
            return
        # After the name, which may hold anything, come the state and the parent.
        pid = int(text.rpartition(")")[2].split()[1])


# The system of this machine as its driver names it; no chip is opened for that.

#: A chip's card in sysfs, since version 2.7 of the driver.
_CARD_FILES: Final = "sys/class/tenstorrent/tenstorrent!*/tt_card_type"
#: Cards of which the driver shows one of two chips: the other one is reached through it.
_OF_TWO_CHIPS: Final = frozenset({"n300"})


def system_here(environment: Mapping[str, str]) -> System | None:
    """Return the system of a process with this environment; None if unknown.

    Where it may use only some of the chips, nothing is known of the board: TTNN names a system by
    the chips that it sees.
    """
    root = Path(environment.get(ROOT) or "/")
    if is_simulated(environment):
        return None
    files = {_chip(file): file for file in root.glob(_CARD_FILES)}
    cards = [card_of(line_of(file) or "") for file in files.values()]
    system = system_of_chips(
        card for card in cards for _ in range(2 if card in _OF_TWO_CHIPS else 1)
    )
    if system and visible_chips(environment, devices_of(environment)) != tuple(sorted(files)):
        return system[0], None
    return system


def _chip(file: Path) -> int:
    number = file.parent.name.rpartition("!")[2]
    return int(number) if number.isdecimal() else -1


DEVICES: Final = devices_of({})
VISIBLE: Final = "TT_VISIBLE_DEVICES"
_POLL_S: Final = 0.2
#: Everybody may make a lock there, and nobody remove another's.
_SHARED_FOLDER: Final = 0o777 | stat.S_ISVTX
_SHARED_FILE: Final = 0o666
_LONGEST_COMMAND: Final = 60


class Lease:
    """The chips of this process, until the context ends.

    So they are when nothing refers to it any more.
    """

    def __init__(self, chips: tuple[int, ...], locks: list[tuple[BaseFileLock, Path]]) -> None:
        self.chips = chips
        self._locks = locks

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that show a process these chips only."""
        return {VISIBLE: ",".join(map(str, self.chips))} if self.chips else {}

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Give the chips back. Lock files stay: unlinking splits the waiters."""
        while self._locks:
            lock, beside = self._locks.pop()
            with contextlib.suppress(OSError):
                os.truncate(beside, 0)
            lock.release()


def lock_folder(temporary: Path | None = None) -> Path:
    """Return the usual folder of locks: one for all users."""
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
    """Take all of the chips, in one order everywhere: nothing deadlocks.

    Raises:
        UsageError: another run still holds one of them, or the locks cannot be made.
    """
    deadline = time.monotonic() + timeout_s
    locks: list[tuple[BaseFileLock, Path]] = []
    lease = Lease(tuple(sorted(set(chips))), locks)
    try:
        for chip in lease.chips:
            _, lock = _first_free([chip], folder, deadline, timeout_s, print_line)
            locks.append(lock)
    except BaseException:
        lease.release()
        raise
    return lease


def take_one(
    chips: Sequence[int], folder: Path, *, timeout_s: float, print_line: Callable[[str], None]
) -> Lease:
    """Take the first free chip: for one of several workers.

    Raises:
        UsageError: other runs still hold all of them, or the locks cannot be made.
    """
    deadline = time.monotonic() + timeout_s
    chip, lock = _first_free(sorted(set(chips)), folder, deadline, timeout_s, print_line)
    return Lease((chip,), [lock])


def holder_of(chip: int, folder: Path) -> str | None:
    lock, beside = _files(chip, folder)
    return _holder(beside) if is_held(lock) else None


def is_held(lock: Path) -> bool:
    """Return whether any process holds the lock on this file."""
    from fcntl import LOCK_NB, LOCK_SH, flock

    try:
        with lock.open("rb") as stream:
            flock(stream, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def ttlang_lock(folder: Path, print_line: Callable[[str], None]) -> BaseFileLock:
    """Take the lock of a file that every tt-lang here writes."""
    from filelock import FileLock

    _make(folder)
    file = folder / "ttlang.lock"
    if is_held(file):
        print_line("waiting for another profile of tt-lang on this machine")
    lock = FileLock(file, mode=_SHARED_FILE)
    lock.acquire()
    return lock


def _first_free(
    chips: Sequence[int],
    folder: Path,
    deadline: float,
    timeout_s: float,
    print_line: Callable[[str], None],
) -> tuple[int, tuple[BaseFileLock, Path]]:
    printed = False
    while True:
        for chip in chips:
            lock = _try_lock(chip, folder)
            if lock is not None:
                return chip, lock
        beside = ((chip, _files(chip, folder)[1]) for chip in chips)
        held = "; ".join(f"chip {chip}: held by {_holder(file)}" for chip, file in beside)
        if time.monotonic() >= deadline:
            waited = f"waited {timeout_s:g} s for {held}"
            message = f"{waited}: let it end, or name chips that are free in {VISIBLE}"
            raise UsageError(message)
        if not printed:
            print_line(f"waiting for {held}")
            printed = True
        time.sleep(_POLL_S)


def _try_lock(chip: int, folder: Path) -> tuple[BaseFileLock, Path] | None:
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
    """Write in place: only a file's owner may replace it.

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
    command = shortened_command(" ".join([Path(sys.argv[0]).name, *sys.argv[1:]]))
    since = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({"pid": os.getpid(), "command": command, "since": since})


def shortened_command(command: str) -> str:
    command = command.strip()
    if len(command) <= _LONGEST_COMMAND:
        return command
    return command[: _LONGEST_COMMAND - 1] + "…"


def _holder(beside: Path) -> str:
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


class ChipWatch:
    """Remembers the first call that touched a chip."""

    by: str | None = None

    def watch(self) -> None:
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


def rank_of(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the number of this process, and of all, if several."""
    for number, size in _LAUNCHERS:
        values = environment.get(number, ""), environment.get(size, "")
        if all(text.isdecimal() for text in values) and int(values[1]) > 1:
            return int(values[0]), int(values[1])
    return None
