"""Taking turns: one timed section at a time, where several processes measure at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

Turn = AbstractContextManager[object]


def turn_in(folder: Path) -> Turn:
    """Return the turn that the processes which share ``folder`` wait for.

    One that has it may take it again, in any thread, and one that dies gives it back.
    """
    return _Turn(folder / "turn.lock")


@dataclass(slots=True)
class _Turn(AbstractContextManager[object]):
    """A lock between processes. Who waits sleeps: nothing runs beside the timed section."""

    file: Path
    _mutex: Lock = field(default_factory=Lock)
    _depth: int = 0
    _held: IO[bytes] | None = None

    def __enter__(self) -> None:
        with self._mutex:  # kept while waiting: the other threads of this process wait as well
            if not self._depth:
                self._held = _locked(self.file)
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._mutex:
            self._depth -= 1
            if not self._depth and self._held is not None:
                _unlock(self._held)


def _locked(file: Path) -> IO[bytes]:
    from fcntl import LOCK_EX, flock

    stream = file.open("ab")
    try:
        flock(stream, LOCK_EX)
    except BaseException:
        stream.close()
        raise
    return stream


def _unlock(stream: IO[bytes]) -> None:
    """Give the lock back. Closing alone would not: a fork may have inherited the file."""
    from fcntl import LOCK_UN, flock

    with stream:
        flock(stream, LOCK_UN)
