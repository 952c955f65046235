"""Taking turns: one timed section at a time, where several processes measure at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

Turn = AbstractContextManager[object]


def turn_in(folder: Path) -> Turn:
    """Return the turn that the processes which share ``folder`` wait for.

    A process may take it again inside its own, and one that dies gives it back.
    """
    from filelock import FileLock

    return FileLock(folder / "turn.lock")
