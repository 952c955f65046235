"""The orchestrator's end of a worker: starts it, reads it, and makes sure that it ends."""

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
from dataclasses import field
from typing import IO, TYPE_CHECKING, Final, TextIO

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.processes.channel import CAPTURED, NOTE_BYTES, STACK, Interrupts
from pytest_ttnn_perf.processes.descendants import Descendants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from pytest_ttnn_perf.records.messages import Started


_TAIL_CHUNK: Final = 1 << 16
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
        part = os.read(self.pipe.fileno(), _TAIL_CHUNK)
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


#: So much of what a dead worker had captured is kept in its log: a test may print anything.
_CAPTURED_BYTES: Final = 1 << 20


def last_words(log: Path) -> str:
    """Return the end of a dead worker's log, and of what pytest had captured there.

    That is added to the log, the end of what is long.
    """
    parts = [tail(log)]
    for stream, name in CAPTURED.items():
        file = log.with_name(name)
        try:
            with file.open("rb") as captured:
                size = captured.seek(0, os.SEEK_END)
                captured.seek(max(size - _CAPTURED_BYTES, 0))
                text = captured.read()
            file.unlink()
            if not text:
                continue
            left_out = f", the last {len(text):,} bytes of {size:,}" if size > len(text) else ""
            heading = f"captured {stream}{left_out}:"
            with log.open("ab") as written:
                written.write(b"\n%b\n%b\n" % (heading.encode(), text))
        except OSError:  # nothing was captured, or there is no room for it
            continue
        parts.append(f"{heading}\n{_last_lines(text)}")
    return "\n".join(filter(None, parts))


def _last_lines(text: bytes, *, lines: int = 20) -> str:
    shown = text[-_TAIL_CHUNK:].decode(errors="replace").rstrip().splitlines()
    return "\n".join(shown[-lines:])


def tail(log: Path, *, lines: int = 20) -> str:
    """Return the end of a worker's log; of a crash its beginning, which tells where it was.

    With some of what stands before that: there C++ says why it aborts.
    """
    try:
        text = log.read_bytes()[-_TAIL_CHUNK:].decode(errors="replace")
    except OSError:
        return ""
    shown = text.rstrip().splitlines()
    thread = _last(shown, _CRASHED)
    fatal = _last(shown[:thread], _CRASH)
    start = fatal if thread is None else thread
    if start is None or start >= len(shown) - lines:
        return "\n".join(shown[-lines:])
    first = start if fatal is None else fatal
    before = shown[max(first - lines // 4, 0) : first]
    heading = shown[first : first + 1] if first != start else []
    return "\n".join([*before, *heading, *shown[start:]][:lines])


def _last(lines: list[str], start: str) -> int | None:
    """Return the last line that starts with ``start``; None without one."""
    return max((at for at, line in enumerate(lines) if line.startswith(start)), default=None)


@dataclass(frozen=True, slots=True)
class Ending:
    """``code`` as Popen has it; ``silent_s`` when it was killed for being silent so long.

    ``cut`` says that its last message was incomplete; ``damaged`` that it was killed for one that
    cannot be read.
    """

    code: int
    silent_s: float | None = None
    cut: bool = False
    damaged: bool = False

    @property
    def hung(self) -> bool:
        """Whether it was killed because it was silent for too long."""
        return self.silent_s is not None

    def __str__(self) -> str:
        if self.silent_s is not None:
            return f"hung: no sign of life for {self.silent_s:g} s, killed"
        if self.damaged:
            return "sent a message that cannot be read, killed"
        how = _signal_name(-self.code) if self.code < 0 else f"exit code {self.code}"
        text = f"was killed by {how}" if self.code < 0 else f"ended with {how}"
        return text + (", in the middle of a message" if self.cut else "")


@dataclass(frozen=True, slots=True)
class LostWorker:
    """A worker that did not come to its end, and the tests that it was running.

    ``dirty``: it was killed while it had a device open. After one that ``hung``, no other worker
    can use the device as it is.
    """

    tests: tuple[Started, ...]
    text: str
    log: Path
    tail: str
    dirty: bool = False
    hung: bool = False


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


#: How often a silent channel is looked past: the worker may be dead and a child of its alive.
_POLL_S: Final = 1.0
#: What an interrupted worker gets for its fixtures' teardown, and then for its signal handlers.
_GRACE_S: Final = 10.0
_LAST_GRACE_S: Final = 2.0
_CHUNK: Final = 1 << 16
#: Whole messages, of which some hundred find room where this kind is known, and ten elsewhere.
_NOTES: Final = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
#: What a worker that hangs gets to print where, and how often it is looked whether it has.
_STACK_S: Final = 5.0
_STACK_POLL_S: Final = 0.1


@dataclass(slots=True)
class WorkerProcess:
    """A worker in a process group of its own; used as a context, it is gone when that ends."""

    process: subprocess.Popen[bytes]
    log: Path
    #: Set this, and the worker is told to stop in the next answer.
    stop: str | None = None
    #: It sent what cannot be read: nothing more is read from it, nor is it answered.
    damaged: bool = False
    #: While these are held, Ctrl-C is heard only when there is nothing to read.
    interrupts: Interrupts = field(default_factory=Interrupts)
    #: What it had sent and nobody had read when it was interrupted.
    unread: list[object] = field(default_factory=list)
    #: What its tests have started and cannot be ended, by number and command.
    survivors: list[str] = field(default_factory=list)
    _descendants: Descendants = field(kw_only=True)
    _socket: socket.socket = field(kw_only=True)
    _notes: socket.socket = field(kw_only=True)
    _outputs: Mapping[int, Output] = field(kw_only=True)
    _buffer: bytearray = field(default_factory=bytearray)
    _silent_s: float | None = None
    _gone: bool = False

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        with contextlib.ExitStack() as last:  # each is done, whatever becomes of those before
            last.callback(self._close)
            if error is not None:
                last.callback(self._read_rest)
            last.callback(self._forward)
            last.callback(self._kill)
            if error is not None:
                self._interrupt()

    def documents(
        self, *, silence_s: float, on_silence: Callable[[float], None] = lambda _: None
    ) -> Iterator[object]:
        """Yield the documents that the worker sends; it waits until the next is asked for.

        Ends when the worker has closed the channel, is dead, or sends what is no document. One that
        is silent for longer than ``silence_s`` (0: never) is killed; until then ``on_silence`` is
        called now and then with how long it has been silent.
        """
        with self._selector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            last_read_s = time.monotonic()
            while not self.damaged:
                ready = self._ready(selector)
                for document in self._read_notes():
                    yield document
                    last_read_s = time.monotonic()
                if self._socket.fileno() in ready:
                    part = self._receive()
                    if not part:
                        return
                    if b"\n" in part:
                        yield from self._answer_lines()
                    last_read_s = time.monotonic()
                elif self.process.poll() is not None:
                    yield from self._read_notes()  # what it left since
                    return
                elif silence_s and time.monotonic() - last_read_s > silence_s:
                    self._silent_s = silence_s
                    return
                else:
                    on_silence(time.monotonic() - last_read_s)

    def ending(self, *, patience_s: float) -> Ending:
        """Wait for the process to end, and kill it if it does not; return how it ended."""
        if self._silent_s is None and not self.damaged:
            self._wait(patience_s)
            if self.process.poll() is None:
                self._silent_s = patience_s
        if self._silent_s is not None and self.process.poll() is None:
            self._tell_where()
        code = self._kill()
        return Ending(code, self._silent_s, cut=bool(self._buffer), damaged=self.damaged)

    def _tell_where(self) -> None:
        """Have a worker that hangs print where into its log, however busy the machine is."""
        deadline = time.monotonic() + _STACK_S
        before = size = self._logged()
        self.process.send_signal(STACK)
        while self.process.poll() is None and time.monotonic() < deadline:
            self._wait(_STACK_POLL_S)
            if before < (now := self._logged()) == size:  # nothing has been added since
                return
            size = now

    def _logged(self) -> int:
        try:
            return self.log.stat().st_size
        except OSError:
            return 0

    def _selector(self) -> selectors.BaseSelector:
        selector = selectors.DefaultSelector()
        for descriptor in self._outputs:
            selector.register(descriptor, selectors.EVENT_READ)
        return selector

    def _ready(self, selector: selectors.BaseSelector) -> set[int]:
        """Wait for something to read; show what the worker prints."""
        with self._interruptible():
            ready = {key.fd for key, _ in selector.select(_POLL_S)}
        for descriptor in ready & self._outputs.keys():
            if not self._outputs[descriptor].forward():
                selector.unregister(descriptor)
        return ready

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        held = self.interrupts.release()
        try:
            yield
        finally:
            if held:
                self.interrupts.hold()

    def _receive(self, flags: int = 0) -> bytes:
        try:
            part = self._socket.recv(_CHUNK, flags)
        except OSError:
            return b""
        self._buffer += part
        return part

    def _read_notes(self) -> Iterator[object]:
        """Yield what the worker left to be read; it does not wait meanwhile."""
        while not self.damaged:
            try:
                note = self._notes.recv(NOTE_BYTES, socket.MSG_DONTWAIT)
            except OSError:  # no more for now
                return
            if not note:  # no more for ever
                return
            yield from self._document(note)

    def _answer_lines(self) -> Iterator[object]:
        while b"\n" in self._buffer and not self.damaged:
            line, _, rest = bytes(self._buffer).partition(b"\n")
            self._buffer[:] = rest
            self._forward()  # what was printed before was printed first
            yield from self._document(line)
            with contextlib.suppress(OSError):
                self._socket.sendall(json.dumps(self.stop).encode() + b"\n")

    def _read_rest(self) -> None:
        """Keep what a worker had sent until it was gone; it gets no answer."""
        while not self.damaged and self._receive(socket.MSG_DONTWAIT):
            pass
        self.unread += self._read_notes()
        *lines, _ = bytes(self._buffer).split(b"\n")
        for line in lines:
            self.unread += self._document(line)

    def _document(self, text: bytes) -> Iterator[object]:
        """Yield the document of a text; none if it is no JSON."""
        try:
            document = json.loads(text.decode(errors="surrogatepass"))
        except (ValueError, RecursionError):
            self.damaged = True
        else:
            yield document

    def _forward(self) -> None:
        for output in self._outputs.values():
            output.drain()

    def _interrupt(self) -> None:
        """Let a worker take its fixtures down, as Ctrl-C does; not for ever."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)  # it must not wait for an answer any more
        for number, grace_s in ((signal.SIGINT, _GRACE_S), (signal.SIGTERM, _LAST_GRACE_S)):
            if self.process.poll() is None:
                self.process.send_signal(number)
                self._wait(grace_s, reading=True)

    def _wait(self, seconds: float, *, reading: bool = False) -> None:
        """Wait for the process to end, at most so long (0: for ever).

        What it prints is shown meanwhile, and with ``reading`` what it sends is kept: one that
        cannot get rid of it would not end.
        """
        deadline = time.monotonic() + seconds if seconds else None
        with self._selector() as selector:
            if reading:
                selector.register(self._socket, selectors.EVENT_READ)
            while selector.get_map() and self.process.poll() is None:
                if deadline is not None and time.monotonic() > deadline:
                    return
                ready = self._ready(selector)
                if reading and self._socket.fileno() in ready and not self._receive():
                    selector.unregister(self._socket)
                    reading = False
        left_s = None if deadline is None else max(deadline - time.monotonic(), 0)
        with contextlib.suppress(subprocess.TimeoutExpired), self._interruptible():
            self.process.wait(left_s)

    def _kill(self) -> int:
        """Leave nothing behind: neither the worker nor what its tests have started."""
        code = self.process.returncode
        if self._gone and code is not None:
            return code
        below = self._descendants.below(self.process.pid) if self.process.poll() is None else []
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        self._gone = True
        self.survivors = self._descendants.end(below)
        return code

    def _close(self) -> None:
        self._socket.close()
        self._notes.close()
        for output in self._outputs.values():
            output.close()


def finds_modules_in(folder: Path) -> bool:
    """Tell whether this process finds modules in a folder, if that is the current one."""
    return bool({"", str(folder)} & set(sys.path))


def interpreter() -> list[str]:
    """Return this Python with the options it was started with, such as ``-O`` and ``-W``."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
    return [sys.executable, *flags]


def start(
    command: Callable[[int, int], Sequence[str]],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    log: Path,
    shown: bool,
) -> WorkerProcess:
    """Start a worker; ``command`` is given the descriptors of its channel, and of its notes.

    What it prints goes to ``log``, and when ``shown`` also where this process prints.

    Raises:
        OSError: there is no room for its log, or for another process.
    """
    descendants = Descendants()
    ours, theirs = socket.socketpair()
    notes, notes_end = socket.socketpair(type=_NOTES)
    with contextlib.ExitStack() as failed:
        failed.callback(descendants.end, [])
        failed.enter_context(ours)
        failed.enter_context(notes)
        with theirs, notes_end, log.open("ab") as written:
            descriptors = theirs.fileno(), notes_end.fileno()
            process = subprocess.Popen(
                command(*descriptors),
                cwd=str(cwd),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if shown else written,
                stderr=subprocess.PIPE if shown else written,
                pass_fds=descriptors,
                start_new_session=True,  # a group to be killed as one; Ctrl-C reaches us alone
            )
        failed.pop_all()
    streams = ((process.stdout, lambda: sys.stdout), (process.stderr, lambda: sys.stderr))
    outputs = {
        pipe.fileno(): Output(pipe, stream, log.open("ab", buffering=0))
        for pipe, stream in streams
        if pipe is not None
    }
    return WorkerProcess(
        process,
        log,
        _socket=ours,
        _notes=notes,
        _outputs=outputs,
        _descendants=descendants,
    )
