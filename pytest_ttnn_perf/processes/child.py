"""The orchestrator's end: starts a worker, hears it, and makes sure that it is gone afterwards."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final, TextIO

from pytest_ttnn_perf.processes.ending import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

#: How often a silent channel is looked past: the worker may be dead and a child of its alive.
_POLL_S: Final = 1.0
#: What an interrupted worker gets for its fixtures' teardown, and then for its signal handlers.
_GRACE_S: Final = 10.0
_LAST_GRACE_S: Final = 2.0
_CHUNK: Final = 1 << 16


@dataclass(slots=True)
class Child:
    """A worker process in a group of its own; used as a context, it is gone when that ends."""

    process: subprocess.Popen[bytes]
    log: Path
    #: Set this, and the worker is told to stop in the next answer.
    stop: str | None = None
    _socket: socket.socket = field(kw_only=True)
    _outputs: Mapping[int, _Output] = field(kw_only=True)
    _buffer: bytes = b""
    _silent_s: float | None = None

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                self._interrupt()
        finally:
            self._kill_group()
            self.process.wait()
            self._forward()
            self._socket.close()
            for output in self._outputs.values():
                output.close()

    def documents(self, *, silence_s: float) -> Iterator[object]:
        """Yield what the worker says; it waits until the next is asked for.

        Ends when the worker has closed the channel or is dead. One that is silent for longer than
        ``silence_s`` (0: never) is killed.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            for descriptor in self._outputs:
                selector.register(descriptor, selectors.EVENT_READ)
            heard = time.monotonic()
            while True:
                ready = self._ready(selector)
                if self._socket.fileno() in ready:
                    if not self._receive():
                        return
                    yield from self._answered()
                    heard = time.monotonic()
                elif self.process.poll() is not None:
                    return
                elif silence_s and time.monotonic() - heard > silence_s:
                    self._silent_s = silence_s
                    return

    def _ready(self, selector: selectors.BaseSelector) -> set[int]:
        """Wait for something to read; show what the worker prints."""
        ready = {key.fd for key, _ in selector.select(_POLL_S)}
        for descriptor in ready & self._outputs.keys():
            if not self._outputs[descriptor].forward():
                selector.unregister(descriptor)
        return ready

    def ending(self, *, patience_s: float) -> Ending:
        """Wait for the process to end, and kill it if it does not; return how it ended."""
        if self._silent_s is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience_s or None)
        if self.process.poll() is None:
            self._silent_s = self._silent_s or patience_s
            self._kill_group()
        code = self.process.wait()
        return Ending(code, self._silent_s, cut=bool(self._buffer))

    def _receive(self) -> bool:
        try:
            part = self._socket.recv(_CHUNK)
        except OSError:
            return False
        self._buffer += part
        return bool(part)

    def _answered(self) -> Iterator[object]:
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            self._forward()  # what was printed before was printed first
            try:
                document = json.loads(line)
            except ValueError:
                self._buffer = line  # damaged: told as cut
                return
            yield document
            with contextlib.suppress(OSError):
                self._socket.sendall(json.dumps(self.stop).encode() + b"\n")

    def _forward(self) -> None:
        for output in self._outputs.values():
            output.drain()

    def _interrupt(self) -> None:
        """Let a worker take its fixtures down, as Ctrl-C does; not for ever."""
        self._socket.close()  # it is not heard any more, and must not wait to be
        for number, grace_s in ((signal.SIGINT, _GRACE_S), (signal.SIGTERM, _LAST_GRACE_S)):
            if self.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    self.process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(grace_s)

    def _kill_group(self) -> None:
        """Leave nothing behind: neither the worker nor what its tests have started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


@dataclass(slots=True)
class _Output:
    """What a worker prints: shown as it comes, and kept in its log."""

    pipe: IO[bytes]
    shown: Callable[[], TextIO]
    log: IO[bytes]
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def forward(self) -> bool:
        """Show what there is; False at its end."""
        try:
            part = os.read(self.pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return True
        self.log.write(part)
        stream = self.shown()
        stream.write(self._decoder.decode(part))
        stream.flush()
        return bool(part)

    def drain(self) -> None:
        """Show all that has been printed until now."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.pipe, selectors.EVENT_READ)
            while selector.select(0) and self.forward():
                pass

    def close(self) -> None:
        """Stop listening."""
        self.pipe.close()
        self.log.close()


def start(
    command: Callable[[int], Sequence[str]],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    log: Path,
    shown: bool,
) -> Child:
    """Start a worker; ``command`` is given the descriptor of its end of the channel.

    What it prints goes to ``log``, and when ``shown`` also where this process prints.
    """
    ours, theirs = socket.socketpair()
    with theirs, log.open("ab") as written:
        process = subprocess.Popen(
            command(theirs.fileno()),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if shown else written,
            stderr=subprocess.PIPE if shown else written,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,  # a group to be killed as one, and Ctrl-C reaches us alone
        )
    streams = ((process.stdout, lambda: sys.stdout), (process.stderr, lambda: sys.stderr))
    outputs = {
        pipe.fileno(): _Output(pipe, stream, log.open("ab", buffering=0))
        for pipe, stream in streams
        if pipe is not None
    }
    return Child(process, log, _socket=ours, _outputs=outputs)


def tail(log: Path, *, lines: int = 20) -> str:
    """Return the end of a worker's log."""
    try:
        text = log.read_bytes()[-_CHUNK:].decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-lines:])
