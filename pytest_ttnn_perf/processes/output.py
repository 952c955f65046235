"""What a worker prints: shown as it comes, kept in its log, and the end of that for a report."""

from __future__ import annotations

import codecs
import contextlib
import os
import selectors
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_CHUNK: Final = 1 << 16
#: More than a pipe holds: all that was printed until now. A child of a worker may never stop.
_PIPE: Final = 1 << 20
#: What a crash of the interpreter starts with; then come the frames of the thread that it was in,
#: innermost first. They are printed of a process that hangs, too.
_CRASH: Final = "Fatal Python error"
_CRASHED: Final = "Current thread"


@dataclass(slots=True)
class Output:
    """One of a worker's two streams."""

    pipe: IO[bytes]
    shown: Callable[[], TextIO]
    log: IO[bytes]
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def forward(self) -> int:
        """Show what there is; return how much, 0 at its end. Waits for something to be there."""
        part = os.read(self.pipe.fileno(), _CHUNK)
        with contextlib.suppress(OSError):  # a full disk costs the log, not the run
            self.log.write(part)
        self._show(self._decoder.decode(part, final=not part))
        return len(part)

    def drain(self) -> None:
        """Show all that has been printed until now."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.pipe, selectors.EVENT_READ)
            left = _PIPE
            while left > 0 and selector.select(0) and (read := self.forward()):
                left -= read

    def close(self) -> None:
        """Stop listening."""
        self.pipe.close()
        self.log.close()

    def _show(self, text: str) -> None:
        stream = self.shown()
        try:
            stream.write(text)
        except UnicodeEncodeError:  # printed by a process that knows more letters
            letters = stream.encoding or "ascii"
            stream.write(text.encode(letters, "backslashreplace").decode(letters))
        stream.flush()


def tail(log: Path, *, lines: int = 20) -> str:
    """Return the end of a worker's log; of a crash its beginning, which tells where it was."""
    try:
        text = log.read_bytes()[-_CHUNK:].decode(errors="replace")
    except OSError:
        return ""
    shown = text.rstrip().splitlines()
    thread = _last(shown, _CRASHED)
    fatal = _last(shown[:thread], _CRASH)
    start = fatal if thread is None else thread
    if start is None or start >= len(shown) - lines:
        return "\n".join(shown[-lines:])
    heading = shown[fatal : fatal + 1] if fatal is not None and fatal != start else []
    return "\n".join([*heading, *shown[start:]][:lines])


def _last(lines: list[str], start: str) -> int | None:
    """Return the last line that starts with ``start``; None without one."""
    return max((at for at, line in enumerate(lines) if line.startswith(start)), default=None)
