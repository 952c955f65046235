"""Run a command that another thread may interrupt; what it says meanwhile is passed on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from typing import IO, TYPE_CHECKING, Final

from pytest_ttnn_perf.processes.descendants import Descendants, descendants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_POLL_S: Final = 0.2
#: What is sent to a command that was interrupted, and how long it gets to end: fixtures are taken
#: down, records written and checkouts removed. Then it is told as one that ends a machine is.
_SENT: Final = ((signal.SIGINT, 60.0), (signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0))
#: A line that is longer is passed on in parts.
_LONGEST_LINE_BYTES: Final = 1 << 14


class InterruptibleCommand:
    """A command without input, in a process group of its own."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._sent = 0
        self._next_s = 0.0

    @property
    def interrupted(self) -> bool:
        """Whether it was interrupted, or will be before it starts."""
        return self._sent > 0

    def interrupt(self) -> None:
        """End it as Ctrl-C does; one that has not been started never is."""
        with self._lock:
            if not self.interrupted:
                self._send()

    def run(self, stdout: IO[bytes], on_line: Callable[[str], None]) -> int | None:
        """Run it to its end, and leave nothing that it has started; return how it ended.

        Its results go to a file. ``on_line`` is called with each line on its stderr, soon after it
        is written. None if it was interrupted before it was started.

        Raises:
            OSError: it cannot be started.
        """
        left = Descendants()
        try:
            # A file: a process below it could keep a pipe open after its end.
            with tempfile.TemporaryFile() as stderr:
                with self._lock:
                    if self.interrupted:
                        return None
                    process = self._process = subprocess.Popen(
                        self._command,
                        stdin=subprocess.DEVNULL,
                        stdout=stdout,
                        stderr=stderr,
                        start_new_session=True,
                    )
                lines = _Lines(stderr)
                while not self._has_ended(process):
                    for line in lines.new():
                        on_line(line)
                for line in (*lines.new(), *lines.rest()):
                    on_line(line)
                return process.returncode
        finally:
            self._kill()
            left.end([])

    def _has_ended(self, process: subprocess.Popen[bytes]) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
            return True
        with self._lock:
            if self.interrupted and time.monotonic() > self._next_s:
                self._send()
        return False

    def _send(self) -> None:
        number, patience_s = _SENT[min(self._sent, len(_SENT) - 1)]
        self._sent += 1
        self._next_s = time.monotonic() + patience_s
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _kill(self) -> None:
        """Leave nothing of it: also not if what it said could not be passed on."""
        process = self._process
        if process is None:
            return
        below = descendants(process.pid) if process.poll() is None else []
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pid in below:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


class _Lines:
    """The lines of a file that grows; what it holds by now is read at each call."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._offset, self._part = file, 0, b""

    def new(self) -> Iterator[str]:
        """Yield the lines that were ended since."""
        # Not with seek: the process writes where the file stands.
        while more := os.pread(self._file.fileno(), _LONGEST_LINE_BYTES, self._offset):
            self._offset += len(more)
            *lines, self._part = (self._part + more).split(b"\n")
            if len(self._part) > _LONGEST_LINE_BYTES:
                lines, self._part = [*lines, self._part], b""
            for line in lines:
                yield line.decode(errors="replace")

    def rest(self) -> Iterator[str]:
        """Yield a last line that was not ended."""
        if self._part:
            yield self._part.decode(errors="replace")
