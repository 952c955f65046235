"""Child processes: commands and workers, none of which is left behind."""

from __future__ import annotations

import codecs
import contextlib
import faulthandler
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TextIO

from msgspec import Struct

from pytest_ttnn_perf.core.text import repr_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType


def interpreter() -> list[str]:
    """Return this Python with its options, such as ``-O``."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
    return [sys.executable, *flags]


def finds_modules_in(folder: Path) -> bool:
    """Return whether a current folder would be on the module path."""
    return bool({"", str(folder)} & set(sys.path))


# How a process ended, and what it left in its log.


class Ending(Struct, frozen=True):
    """The end of a process: ``code``, or ``silent_s`` before it was killed.

    ``cut`` says that its last message was incomplete; ``damaged`` that it was killed for one that
    cannot be read.
    """

    code: int
    silent_s: float | None = None
    cut: bool = False
    damaged: bool = False

    @property
    def hung(self) -> bool:
        return self.silent_s is not None

    def __str__(self) -> str:
        if self.silent_s is not None:
            return f"hung: no sign of life for {self.silent_s:g} s, killed"
        if self.damaged:
            return "sent a message that cannot be read, killed"
        if self.code >= 0:
            text = f"ended with exit code {self.code}"
        else:
            known = {number.value: number.name for number in signal.Signals}
            text = f"was killed by {known.get(-self.code, f'signal {-self.code}')}"
        return text + (", in the middle of a message" if self.cut else "")


_TAIL_BYTES: Final = 1 << 16
#: Starts the frames of a crash or a hang, innermost first. Before it, C++ says why it aborts.
_CRASH: Final = "Current thread"


def tail(log: Path, *, lines: int = 20) -> str:
    """Return the end of a log; of a crash, its beginning."""
    try:
        shown = log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").rstrip().splitlines()
    except OSError:
        return ""
    crashes = [at for at, line in enumerate(shown) if line.startswith(_CRASH)]
    start = max(crashes[-1] - lines // 4, 0) if crashes else len(shown)
    return "\n".join(shown[min(start, max(len(shown) - lines, 0)) :][:lines])


#: The files of a worker's folder that hold what pytest has captured of each stream.
CAPTURED: Final = {"stdout": "captured-stdout.txt", "stderr": "captured-stderr.txt"}
#: So much of what a dead worker had captured is kept in its log: a test may print anything.
_CAPTURED_BYTES: Final = 1 << 20


def last_words(log: Path) -> str:
    """Return the end of a dead worker's log and captured output.

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
        lines = text[-_TAIL_BYTES:].decode(errors="replace").rstrip().splitlines()
        parts.append("\n".join([heading, *lines[-20:]]))
    return "\n".join(filter(None, parts))


# What a child has started, and has left its group and session: a daemon must not keep a chip.

_PROC: Final = Path("/proc")
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
#: What is killed and has not ended by then waits for a driver: it is named.
_ORPHANS_PATIENCE_S: Final = 5.0
_ORPHANS_POLL_S: Final = 0.01
_LONGEST_COMMAND: Final = 80


def _prctl(option: int, argument: int) -> bool:
    """Ask the kernel for something; only Linux may grant it."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    return int(ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)) == 0


def die_with_parent() -> None:
    """Ask the kernel to end this process with its parent.

    A worker whose orchestrator was killed would hold its device for nobody. Where there is no
    such call, it notices at its next message.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Orphans:
    """Processes that the next child leaves behind.

    On Linux they become children of ours for as long as we ask for it, whatever session they are
    in. Not among them are earlier children, nor what others in this process start meanwhile: that
    is in our session, which the child has left at once.
    """

    def __init__(self) -> None:
        self._adopting = _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._before: frozenset[int] = frozenset()
        self._before = frozenset(self._found())

    def end(self) -> list[str]:
        """Kill them after the child; return survivors by number and command."""
        stop_s = time.monotonic() + _ORPHANS_PATIENCE_S
        # What a killed one has started becomes ours in turn.
        while (left := self._found()) and time.monotonic() < stop_s:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(_ORPHANS_POLL_S)
        if self._adopting:
            _prctl(_PR_SET_CHILD_SUBREAPER, 0)
        return [_name_process(pid) for pid in left]

    def _found(self) -> list[int]:
        if not self._adopting:
            return []
        own = os.getsid(0)
        return [p for p in _children() if p not in self._before and _session(p) not in {None, own}]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:  # it has ended
        return None


def _children() -> list[int]:
    try:
        lists = [task.read_text() for task in _PROC.glob("self/task/*/children")]
    except OSError:  # a thread has ended
        return []
    return [int(pid) for text in lists for pid in text.split()]


def _name_process(pid: int) -> str:
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        words = []
    command = b" ".join(words).decode(errors="replace")
    return f"{pid} {command[:_LONGEST_COMMAND]}".strip()


def _kill_group(process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


# Commands that are waited for. Output goes to files: a child could keep a pipe open for ever.


def run_bounded(  # noqa: PLR0913 (keywords, most of them those of Popen)
    command: Sequence[str] | str,
    *,
    timeout_s: float,
    stdout: IO[bytes],
    stderr: IO[bytes],
    stdin: IO[bytes] | None = None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    leave_nothing: bool = False,
) -> Ending:
    """Run a command, at most ``timeout_s`` (0: for ever).

    It reads ``stdin``, or nothing. Then its group is killed; with ``leave_nothing``, all that it
    has started, too.

    Raises:
        OSError: it cannot be started.
    """
    with contextlib.ExitStack() as last:
        if leave_nothing:
            last.callback(Orphans().end)
        process = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        silent_s = None
        try:
            process.wait(timeout_s or None)
        except subprocess.TimeoutExpired:
            silent_s = timeout_s
        finally:
            if leave_nothing or process.poll() is None:
                _kill_group(process)
            code = process.wait()
    return Ending(code, silent_s)


def run_shown(command: Sequence[str], file: Path, *, environment: Mapping[str, str]) -> Ending:
    """Run a command without input; show and keep its output.

    Raises:
        OSError: it cannot be started, or the file cannot be written.
    """
    with contextlib.ExitStack() as last:
        log = last.enter_context(file.open("wb"))
        last.callback(Orphans().end)
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        last.callback(process.wait)
        last.callback(_kill_group, process)
        assert process.stdout is not None
        output = Output(process.stdout, lambda: sys.stdout, log)
        last.callback(output.close)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            # What it has left running may keep the pipe open.
            while process.poll() is None or selector.select(0):
                if selector.select(_INTERRUPTIBLE_POLL_S) and not output.forward():
                    break
        return Ending(process.wait())


def run_command(command: str, *, timeout_s: float) -> str | None:
    """Run a command in the shell; return why it failed, if so."""
    with tempfile.TemporaryFile() as output:
        try:
            ending = run_bounded(command, timeout_s=timeout_s, stdout=output, stderr=output)
        except OSError as error:
            return f"cannot be started: {error.strerror}"
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
    if ending.hung:
        return f"did not end within {timeout_s:g} s"
    if ending.code == 0:
        return None
    return f"ended with code {ending.code}" + (f": {lines[-1]}" if lines else "")


_INTERRUPTIBLE_POLL_S: Final = 0.2
#: The signals for a command that was interrupted, and how long it gets to end after each: fixtures
#: are taken down, records written and checkouts removed.
_SENT: Final = ((signal.SIGINT, 60.0), (signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0))


class InterruptibleCommand:
    """A command without input that other threads may interrupt."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._interrupted = threading.Event()
        #: End it as Ctrl-C does; before the start, prevent it.
        self.interrupt = self._interrupted.set

    @property
    def interrupted(self) -> bool:
        return self._interrupted.is_set()

    def run(self, stdout: IO[bytes], on_line: Callable[[str], None]) -> int | None:
        """Run it to its end, leaving nothing; return its exit code.

        Its results go to a file. ``on_line`` is called with each line on its stderr, soon after it
        is written. None if it was interrupted before it was started.

        Raises:
            OSError: it cannot be started.
        """
        if self._interrupted.is_set():
            return None
        with contextlib.ExitStack() as last, tempfile.NamedTemporaryFile() as stderr:
            last.callback(Orphans().end)
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            last.callback(process.wait)
            last.callback(_kill_group, process)
            # A second place in the same file.
            lines = last.enter_context(Path(stderr.name).open(errors="replace", newline="\n"))
            signals, next_s, part = iter(_SENT), 0.0, ""
            while process.returncode is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_INTERRUPTIBLE_POLL_S)
                if self.interrupted and time.monotonic() > next_s:
                    number, patience_s = next(signals, _SENT[-1])
                    next_s = time.monotonic() + patience_s
                    _kill_group(process, number)
                *ended, part = (part + lines.read()).split("\n")
                for line in ended:
                    on_line(line)
            if part:
                on_line(part)
            return process.returncode


def free_port() -> int:
    """Return a port of this machine that no process listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# Signals.

#: Asks a worker to print the stacks of its threads.
STACK: Final = signal.SIGQUIT
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


def show_stacks_on_request() -> None:
    """Print stacks when the parent asks, even in foreign code.

    To where stderr goes now, which is not yet where pytest's capturing will send it.
    """
    faulthandler.register(STACK, file=os.dup(2), all_threads=True, chain=False)


def signals_interrupt() -> AbstractContextManager[None]:
    return _signals_handled(_ENDING, signal.default_int_handler)


def signals_ignored() -> AbstractContextManager[None]:
    """Ignore Ctrl-C and the like while clearing up."""
    return _signals_handled((signal.SIGINT, *_ENDING), signal.SIG_IGN)


@contextmanager
def _signals_handled(
    numbers: tuple[signal.Signals, ...], handler: Callable[..., Any] | signal.Handlers
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals, or may say what becomes of them
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, usual in before.items():
            # None: it was not set by Python, and Python cannot set it again.
            signal.signal(number, signal.SIG_DFL if usual is None else usual)


class Interrupts:
    """Ctrl-C, which waits while something must not be left half done.

    A second one does not wait. One that somebody else has a handler for is theirs.
    """

    _asked = False
    _held = False

    def hold(self) -> None:
        """Let Ctrl-C wait until it is released, in the main thread."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._hear)
            self._held = True

    def release(self) -> None:
        """Wait no longer.

        Raises:
            KeyboardInterrupt: there was one meanwhile.
        """
        if not self._held:
            return
        self._held = False
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._asked:
            self._asked = False
            raise KeyboardInterrupt

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Hear Ctrl-C while nothing can be left half done."""
        was_held = self._held
        self.release()
        try:
            yield
        finally:
            if was_held:
                self.hold()

    def _hear(self, *_: object) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True


# The conversation of a worker and its orchestrator: a line of JSON for each message. An empty line
# asks for an answer, which is a line with the reason to stop, or null.

#: Names the descriptor of a worker's end of the channel.
CHANNEL: Final = "TTNN_PERF_CHANNEL"
#: The answer when there is no orchestrator to give one.
GONE: Final = "the process that started this worker is gone"


class Channel:
    """The worker's end: sends documents, and waits for answers.

    A worker that waits is quiet while the orchestrator works, and the other way round: nothing is
    printed or judged while a test is timed. ``in_turn``: it always waits, so that the output of
    both comes in order.
    """

    def __init__(self, descriptor: int, *, in_turn: bool = False) -> None:
        self._in_turn, self._owner = in_turn, os.getpid()
        self._socket: socket.socket | None = socket.socket(fileno=descriptor)
        # What the tests start must not keep the channel open.
        self._socket.set_inheritable(False)

    def send(self, document: Mapping[str, object], *, wait: bool = True) -> str | None:
        """Send a document; return why the worker should stop, if it should."""
        if self._socket is None:
            return GONE
        if os.getpid() != self._owner:  # a fork of ours has no say
            return None
        wait = wait or self._in_turn
        try:
            self._socket.sendall(_text(document).encode() + (b"\n\n" if wait else b"\n"))
            return self._answer(self._socket) if wait else None
        except OSError:
            return self._let_go()

    def _answer(self, link: socket.socket) -> str | None:
        answer = b""
        while not answer.endswith(b"\n"):
            part = link.recv(4096)
            if not part:
                return self._let_go()
            answer += part
        stop = json.loads(answer)
        return stop if isinstance(stop, str) else None

    def _let_go(self) -> str:
        """Detach, not close: the number may be another file's by now."""
        if self._socket is not None:
            self._socket.detach()
        self._socket = None
        return GONE


def _text(document: Mapping[str, object]) -> str:
    """Return a document as JSON: unfit values as text, without unfit keys."""
    return _ENCODER.encode(document)


#: Made once: each ``json.dumps`` with an option makes its own.
_ENCODER: Final = json.JSONEncoder(default=repr_of, skipkeys=True)

#: More than a pipe holds: all that was printed until now. A child of a worker may never stop.
_PIPE: Final = 1 << 20


class Output:
    """One of a worker's two streams, shown here and logged."""

    def __init__(self, pipe: IO[bytes], shown: Callable[[], TextIO], log: IO[bytes]) -> None:
        self.pipe, self._shown, self._log = pipe, shown, log
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def forward(self) -> int:
        part = os.read(self.pipe.fileno(), _TAIL_BYTES)
        with contextlib.suppress(OSError):  # a full disk costs the log, not the run
            self._log.write(part)
        text, stream = self._decoder.decode(part, final=not part), self._shown()
        try:
            stream.write(text)
        except UnicodeEncodeError:  # printed by a process that knows more letters
            letters = stream.encoding or "ascii"
            stream.write(text.encode(letters, "backslashreplace").decode(letters))
        stream.flush()
        return len(part)

    def drain(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.pipe, selectors.EVENT_READ)
            left = _PIPE
            while left > 0 and selector.select(0) and (read := self.forward()):
                left -= read

    def close(self) -> None:
        self.pipe.close()
        self._log.close()


#: How often a silent channel is looked past: the worker may be dead and a child of its alive.
_POLL_S: Final = 1.0
#: What an interrupted worker gets for its fixtures' teardown, and then for its signal handlers.
_GRACE_S: Final = 10.0
_LAST_GRACE_S: Final = 2.0
_CHUNK: Final = 1 << 16
#: What a worker that hangs gets to print where.
_STACK_S: Final = 1.0


class WorkerProcess:
    """A worker in its own process group, until the context ends.

    Set ``stop``, and the worker is stopped by the next answer; set ``damaged``, and nothing more
    is read from it. Ctrl-C waits while ``interrupts`` are held, and is heard when there is nothing
    to read; what the worker had sent until then is ``unread``. ``survivors`` cannot be ended.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        log: Path,
        shown: bool,
    ) -> None:
        """Start it; what it prints goes to ``log``, ``shown`` also here.

        Raises:
            OSError: there is no room for its log, or for another process.
        """
        self.log = log
        self.stop: str | None = None
        self.damaged = False
        self.interrupts = Interrupts()
        self.unread: list[object] = []
        self.survivors: list[str] = []
        self._buffer = bytearray()
        self._silent_s: float | None = None
        self._gone = False
        self._orphans = Orphans()
        self._socket, theirs = socket.socketpair()
        try:
            with theirs, log.open("ab") as written:
                self.process = subprocess.Popen(
                    command,
                    cwd=str(cwd),  # named so in an error
                    env={**environment, CHANNEL: str(theirs.fileno())},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE if shown else written,
                    stderr=subprocess.PIPE if shown else written,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # a group to be killed as one; Ctrl-C reaches us alone
                )
        except BaseException:
            self._socket.close()
            self._orphans.end()
            raise
        pipes = ((self.process.stdout, "stdout"), (self.process.stderr, "stderr"))
        self._outputs = {
            pipe.fileno(): Output(pipe, partial(getattr, sys, name), log.open("ab", buffering=0))
            for pipe, name in pipes
            if pipe is not None
        }

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

    def documents(self, *, silence_s: float) -> Iterator[object]:
        """Yield what the worker sends.

        A worker that waits for an answer gets it when the next document is asked for. Ends when the
        worker has closed the channel, is dead, or sends what is no document. One that is silent for
        longer than ``silence_s`` (0: never) is killed.
        """
        with self._selector() as selector:
            last_read_s = time.monotonic()
            while not self.damaged:
                ready = self._ready(selector)
                if self._socket.fileno() in ready:
                    part = self._receive()
                    if b"\n" in part:
                        yield from self._complete_documents()
                    if not part:
                        return
                    last_read_s = time.monotonic()
                elif self.process.poll() is not None:
                    while self._receive(socket.MSG_DONTWAIT):  # what it sent since
                        pass
                    yield from self._complete_documents()
                    return
                elif silence_s and time.monotonic() - last_read_s > silence_s:
                    self._silent_s = silence_s
                    return

    def ending(self, *, patience_s: float) -> Ending:
        """Wait for its end, or kill it; return how it ended."""
        if self._silent_s is None and not self.damaged:
            self._wait(patience_s)
            if self.process.poll() is None:
                self._silent_s = patience_s
        if self._silent_s is not None and self.process.poll() is None:
            self.process.send_signal(STACK)
            self._wait(_STACK_S)
        code = self._kill()
        return Ending(code, self._silent_s, cut=bool(self._buffer), damaged=self.damaged)

    def _selector(self) -> selectors.BaseSelector:
        selector = selectors.DefaultSelector()
        for descriptor in (self._socket.fileno(), *self._outputs):
            selector.register(descriptor, selectors.EVENT_READ)
        return selector

    def _ready(self, selector: selectors.BaseSelector) -> set[int]:
        with self.interrupts.heard():
            ready = {key.fd for key, _ in selector.select(_POLL_S)}
        for descriptor, output in self._outputs.items():  # stdout first, as in the log
            if descriptor in ready and not output.forward():
                selector.unregister(descriptor)
        return ready

    def _receive(self, flags: int = 0) -> bytes:
        try:
            part = self._socket.recv(_CHUNK, flags)
        except OSError:
            return b""
        self._buffer += part
        return part

    def _complete_documents(self) -> Iterator[object]:
        while b"\n" in self._buffer and not self.damaged:
            line, _, self._buffer = self._buffer.partition(b"\n")
            if line:
                self._forward()  # what was printed before was printed first
                document = self._read(line)
                if not self.damaged:
                    yield document
            else:
                with contextlib.suppress(OSError):
                    self._socket.sendall(json.dumps(self.stop).encode() + b"\n")

    def _read_rest(self) -> None:
        """Keep what a dead worker had sent; it gets no answer."""
        while not self.damaged and self._receive(socket.MSG_DONTWAIT):
            pass
        *lines, _ = self._buffer.split(b"\n")
        for line in filter(None, lines):
            document = self._read(line)
            if not self.damaged:
                self.unread.append(document)

    def _read(self, line: bytearray) -> object:
        try:
            return json.loads(line.decode(errors="surrogatepass"))
        except (ValueError, RecursionError):
            self.damaged = True
            return None

    def _forward(self) -> None:
        for output in self._outputs.values():
            output.drain()

    def _interrupt(self) -> None:
        """Let a worker take its fixtures down, as Ctrl-C does."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)  # it must not wait for an answer any more
        for number, grace_s in ((signal.SIGINT, _GRACE_S), (signal.SIGTERM, _LAST_GRACE_S)):
            if self.process.poll() is None:
                self.process.send_signal(number)
                self._wait(grace_s)

    def _wait(self, seconds: float) -> None:
        """Wait for its end, at most ``seconds`` (0: for ever).

        What it prints is shown meanwhile, and what it sends is kept: one that cannot get rid of it
        would not end.
        """
        deadline = time.monotonic() + seconds if seconds else None
        with self._selector() as selector:
            while selector.get_map() and self.process.poll() is None:
                if deadline is not None and time.monotonic() > deadline:
                    return
                if self._socket.fileno() in self._ready(selector) and not self._receive():
                    selector.unregister(self._socket)
        left_s = None if deadline is None else max(deadline - time.monotonic(), 0)
        with self.interrupts.heard(), contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(left_s)

    def _kill(self) -> int:
        if not self._gone:
            _kill_group(self.process)
            self.process.wait()
            self._gone = True
            self.survivors = self._orphans.end()
        return self.process.wait()

    def _close(self) -> None:
        self._socket.close()
        for output in self._outputs.values():
            output.close()
