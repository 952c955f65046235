"""What a process has started, and left its group: it is ended where the system tells of it.

On Linux, what a child leaves behind becomes a child of ours for as long as we ask for it, whatever
session it is in. Elsewhere it becomes init's, and only what has not been left behind is found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROC: Final = Path("/proc")
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_GET_CHILD_SUBREAPER: Final = 37
#: What is killed and has not ended by then waits for a driver: it is named.
_PATIENCE_S: Final = 5.0
_POLL_S: Final = 0.01
_LONGEST_COMMAND: Final = 80


def _parents() -> Iterator[tuple[int, int]]:
    """Yield each process that the system tells of, and its parent."""
    if not _PROC.is_dir():
        yield from _listed()
        return
    for folder in _PROC.glob("[0-9]*"):
        running = _running(int(folder.name))
        if running is not None:
            yield int(folder.name), running.parent


class _Running(NamedTuple):
    """A process that runs, or that nobody has waited for."""

    parent: int
    session: int


def _running(pid: int) -> _Running | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended
        return None
    # After the name, which may hold anything: state, parent, group and session.
    words = stat.rpartition(")")[2].split()
    return _Running(int(words[1]), int(words[3]))


def _listed() -> Iterator[tuple[int, int]]:
    """Ask for the processes where they are no files."""
    command = ["ps", "-A", "-o", "pid=,ppid="]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return
    for line in done.stdout.splitlines():
        pid, parent = map(int, line.split())
        yield pid, parent


def _children() -> list[int]:
    """Return the children of this process, on Linux."""
    try:
        lists = [task.read_text() for task in (_PROC / "self" / "task").glob("*/children")]
    except OSError:  # a thread has ended
        lists = []
    if lists:
        return [int(pid) for text in lists for pid in text.split()]
    us = os.getpid()  # a kernel that keeps no such lists
    return [pid for pid, parent in _parents() if parent == us]


def descendants(pid: int) -> list[int]:
    """Return the processes below one, in whatever groups; none where the system does not tell."""
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


@dataclass(slots=True)
class Descendants:
    """What a process that we are about to start will leave behind.

    Not what we had started before, nor what others in this process start meanwhile: that is in our
    session, which the other process has left at once.
    """

    _before: frozenset[int] = field(init=False)
    _adopting: bool = field(init=False)
    _adopted_before: bool = field(init=False)

    def __post_init__(self) -> None:
        self._adopted_before = _adopts()
        self._adopting = self._adopted_before or _adopt(on=True)
        self._before = frozenset(self._adopted(frozenset()) if self._adopting else ())

    def below(self, pid: int) -> list[int]:
        """Return what is to be ended with a process, which runs; what is left behind is not."""
        return [] if self._adopting else descendants(pid)

    def end(self, known: list[int]) -> list[str]:
        """End what the process has left, and ``known``, once it has ended; return what goes on."""
        stop_s = time.monotonic() + _PATIENCE_S
        while (left := self._left(known)) and time.monotonic() < stop_s:
            for pid in left:
                for each in (*descendants(pid), pid):
                    _kill(each)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(_POLL_S)
        if self._adopting and not self._adopted_before:
            _adopt(on=False)
        return [_named(pid) for pid in left]

    def _left(self, known: list[int]) -> list[int]:
        return self._adopted(self._before) if self._adopting else [*filter(_exists, known)]

    def _adopted(self, before: frozenset[int]) -> list[int]:
        """Return the children of ours that were not there before, and are in no session of ours."""
        own = os.getsid(0)
        found = ((pid, _running(pid)) for pid in _children() if pid not in before)
        return [pid for pid, running in found if running is not None and running.session != own]


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _named(pid: int) -> str:
    """Return the number of a process, and its command where the system tells it."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        words = []
    command = b" ".join(words).decode(errors="replace")
    return f"{pid} {command[:_LONGEST_COMMAND]}".strip()


def _adopts() -> bool:
    """Tell whether what our children leave behind becomes ours already."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    on = ctypes.c_int()
    failed = ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(on), 0, 0, 0)
    return not failed and bool(on.value)


def _adopt(*, on: bool) -> bool:
    """Let it become ours, or not any more; return whether that can be had."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    return not ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)
