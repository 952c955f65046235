"""The orchestrator's end of a worker: starts it, reads it, and makes sure that it ends."""

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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, TextIO

import msgspec
from msgspec import Struct

from pytest_ttnn_perf.core.codec import decode
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.files import read_json
from pytest_ttnn_perf.core.messages import Assignment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
    from types import TracebackType

    from pytest_ttnn_perf.core.messages import Message, Started


# Run a command that another thread may interrupt; what it says meanwhile is passed on.

_INTERRUPTIBLE_POLL_S: Final = 0.2
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
            process.wait(_INTERRUPTIBLE_POLL_S)
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


# Run a process to completion with a timeout; its output goes to a file.


def run_bounded(  # noqa: PLR0913 (keywords, most of them those of Popen)
    command: Sequence[str] | str,
    *,
    timeout_s: float,
    stdout: IO[bytes],
    stderr: IO[bytes],
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    leave_nothing: bool = False,
) -> Ending:
    """Run a command without input, at most so long (0: for ever); a string is one for the shell.

    It is killed with all that it has started if it takes longer, or if this process is interrupted;
    with ``leave_nothing``, what it has started is killed when it ends, too. Its output goes to
    files: a child of it could keep a pipe open after its end.

    Raises:
        OSError: it cannot be started.
    """
    with contextlib.ExitStack() as failed:
        left = Descendants() if leave_nothing else None
        if left is not None:
            failed.callback(left.end, [])
        process = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        failed.pop_all()
    silent_s = None
    try:
        process.wait(timeout_s or None)
    except subprocess.TimeoutExpired:
        silent_s = timeout_s
    finally:
        running = process.poll() is None
        below = descendants(process.pid) if running else []
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if running or leave_nothing:
                os.killpg(process.pid, signal.SIGKILL)
        for pid in below:  # a launcher puts what it launches into a group of its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        code = process.wait()
        if left is not None:
            left.end([])
    return Ending(code, silent_s)


def run_batch(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    log: Path,
    timeout_s: float,
) -> Ending:
    """Run a command as ``run_bounded`` does, leaving nothing; what it prints is added to ``log``.

    Raises:
        OSError: it cannot be started.
    """
    with log.open("ab") as output:
        return run_bounded(
            command,
            timeout_s=timeout_s,
            stdout=output,
            stderr=output,
            cwd=cwd,
            environment=environment,
            leave_nothing=True,
        )


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_command(command: str, *, timeout_s: float) -> str | None:
    """Run a command of the user's in the shell; return why it failed, None if it did not."""
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


#: A socket whose owner is alive answers at once.
_COMMANDS_PATIENCE_S: Final = 5.0


def listener_of(file: Path) -> int | None:
    """Return which process listens on a socket, 0 if that cannot be told; None if none does."""
    try:
        if not file.is_socket():
            return None
    except OSError:  # in a folder of another user's
        return None
    import socket
    import struct

    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(_COMMANDS_PATIENCE_S)
        try:
            link.connect(str(file))
        except (FileNotFoundError, ConnectionRefusedError):  # left behind
            return None
        except OSError:  # not for this user, or too busy to answer
            return 0
        layout = "3i"  # process, user, group
        told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(layout))
        return int(struct.unpack(layout, told)[0])


# What a process has started, and left its group: it is ended where the system tells of it.
#
# On Linux, what a child leaves behind becomes a child of ours for as long as we ask for it,
# whatever
# session it is in. Elsewhere it becomes init's, and only what has not been left behind is found.

_PROC: Final = Path("/proc")
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_GET_CHILD_SUBREAPER: Final = 37
#: What is killed and has not ended by then waits for a driver: it is named.
_PATIENCE_S: Final = 5.0
_DESCENDANTS_POLL_S: Final = 0.01
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
            time.sleep(_DESCENDANTS_POLL_S)
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


# The worker's end of its conversation with the orchestrator: a line of JSON each way in turn.

#: The answer when nobody is there to give one.
GONE: Final = "the process that started this worker is gone"
#: What is longer is said aloud.
NOTE_BYTES: Final = 1 << 16
#: No report that pytest makes is nested so far.
_DEEPEST: Final = 40
#: A key that is no word or a class of its own, a circle or a number of a thousand digits, depth.
_NO_JSON: Final = (TypeError, ValueError, RecursionError)


@dataclass(slots=True)
class Channel:
    """Says something and waits for the answer, or leaves a note.

    A worker that waits is quiet while the orchestrator works, and the other way round: nothing is
    printed or judged while a test is timed, and the output of both comes in order. To wait costs
    both processes a tenth of a millisecond. A note wakes nobody: it is read before what is said
    next, or when the worker has died, or else within a second.
    """

    descriptor: int
    notes: int | None = None
    _socket: socket.socket | None = field(init=False, default=None)
    _notes: socket.socket | None = field(init=False, default=None)
    _owner: int = field(init=False)

    def __post_init__(self) -> None:
        self._owner = os.getpid()
        self._socket = socket.socket(fileno=self.descriptor)
        # What the tests start must not keep the channel open.
        self._socket.set_inheritable(False)
        if self.notes is not None:
            self._notes = socket.socket(fileno=self.notes)
            self._notes.set_inheritable(False)

    def send(self, document: Mapping[str, object], *, wait: bool = True) -> str | None:
        """Send a document; return why the worker should stop, None to go on.

        What need not ``wait`` for an answer is left as a note if it can be.
        """
        if self._socket is None or os.getpid() != self._owner:  # a fork of ours has no say
            return None if self._socket else GONE
        text = _text(document).encode()
        if not wait and self._leave(text):
            return None
        try:
            self._socket.sendall(text + b"\n")
            return self._answer()
        except OSError:
            self._let_go()
            return GONE

    def _leave(self, note: bytes) -> bool:
        """Return whether a note could be left; not where there is no room for it, or nobody."""
        if self._notes is None or len(note) > NOTE_BYTES:
            return False
        # Notes are read with what is said: not where a test has closed the channel.
        if self._socket is None or self._socket.fileno() < 0:
            return False
        try:
            self._notes.send(note, socket.MSG_DONTWAIT)
        except OSError:
            return False
        return True

    def _answer(self) -> str | None:
        assert self._socket is not None
        answer = b""
        while not answer.endswith(b"\n"):
            part = self._socket.recv(4096)
            if not part:
                self._let_go()
                return GONE
            answer += part
        stop = json.loads(answer)
        return stop if isinstance(stop, str) else None

    def _let_go(self) -> None:
        """Say no more. Not closed: a test may have done that, and the number be another file's."""
        for end in (self._socket, self._notes):
            if end is not None:
                end.detach()
        self._socket = self._notes = None


def _text(document: Mapping[str, object]) -> str:
    """Return a document as JSON; what a plugin put there that JSON cannot hold, by its text."""
    try:
        return _ENCODER.encode(document)
    except _NO_JSON:
        return json.dumps(_plain(document, depth=_DEEPEST))


def _plain(value: object, *, depth: int) -> object:
    if isinstance(value, dict) and depth:
        return {
            key if isinstance(key, str) else _describe(key): _plain(member, depth=depth - 1)
            for key, member in value.items()
        }
    if isinstance(value, (list, tuple)) and depth:
        return [_plain(member, depth=depth - 1) for member in value]
    try:
        json.dumps(value)
    except _NO_JSON:
        return _describe(value)
    return value


def _describe(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 (somebody else's class)
        return f"<{type(value).__name__}>"


#: Made once: each ``json.dumps`` with an option makes its own.
_ENCODER: Final = json.JSONEncoder(default=_describe)


_PR_SET_PDEATHSIG: Final = 1
#: Asks a worker to print the stacks of its threads.
STACK: Final = signal.SIGQUIT


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent dies, however that happens.

    A worker whose orchestrator was killed would hold its device for nobody. Where there is no
    such call, it notices at its next message.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def show_stacks_on_request() -> None:
    """Print where this process is when its parent asks, also while it hangs in foreign code.

    To where stderr goes now, which is not yet where pytest's capturing will send it.
    """
    faulthandler.register(STACK, file=os.dup(2), all_threads=True, chain=False)


_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let what would end this process at once interrupt it, as Ctrl-C does."""
    with _signals_handled(_ENDING, signal.default_int_handler):
        yield


@contextmanager
def signals_ignored() -> Iterator[None]:
    """Be deaf to Ctrl-C and the like for the moment that clearing up takes."""
    with _signals_handled((signal.SIGINT, *_ENDING), signal.SIG_IGN):
        yield


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


class Interrupts(Struct):
    """Ctrl-C, which waits while it is held for what must not be left half done.

    A second one does not wait. One that somebody else has a handler for is theirs.
    """

    _asked: bool = False
    _held: bool = False

    def hold(self) -> None:
        """Let Ctrl-C wait until it is released; only the main thread hears it."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._hear)
            self._held = True

    def release(self) -> bool:
        """Wait no longer; return whether it was held.

        Raises:
            KeyboardInterrupt: there was one meanwhile.
        """
        if not self._held:
            return False
        self._held = False
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._asked:
            self._asked = False
            raise KeyboardInterrupt
        return True

    def _hear(self, *_: object) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True


#: The files of a worker's folder that hold what pytest has captured of each stream.
CAPTURED: Final = {"stdout": "captured-stdout.txt", "stderr": "captured-stderr.txt"}
#: Names the file with a worker's assignment. The worker takes it out of its environment, so that
#: a pytest that a test starts is not taken for another worker.
ASSIGNMENT: Final = "TTNN_PERF_ASSIGNMENT"
#: The same for the processes that a worker distributes its tests to.
SHARE: Final = "TTNN_PERF_SHARE"
#: Names the role of a process, for conftest files: they are loaded in each of a run's.
ROLE: Final = "TTNN_PERF_ROLE"
WORKER: Final = "worker"


class OrchestratorLink(Struct, frozen=True):
    """A worker's assignment, the file it came in, and its channel."""

    file: Path
    assignment: Assignment
    channel: Channel | None

    def send(self, message: Message, *, wait: bool = True) -> str | None:
        """Tell the orchestrator; return why this worker should stop, None to go on."""
        if self.channel is None:
            return None
        return self.channel.send(message.document(), wait=wait)


def take_link(environment: MutableMapping[str, str]) -> OrchestratorLink | None:
    """Return this process' link if it was started as a worker; once.

    Raises:
        InputError: there is no assignment, or nobody at the other end.
    """
    name = environment.pop(ASSIGNMENT, None)
    if name is None:
        return None
    die_with_parent()
    file = Path(name)
    assignment = read_assignment(file)
    if assignment.descriptor is None:
        return OrchestratorLink(file, assignment, None)
    try:
        channel = Channel(assignment.descriptor, assignment.notes)
    except (OSError, ValueError, OverflowError) as cause:
        problem = f"its channel {assignment.descriptor} is not open; unset {ASSIGNMENT}"
        raise InputError(file, f"{problem}, which only a worker is given") from cause
    return OrchestratorLink(file, assignment, channel)


def take_share(environment: MutableMapping[str, str]) -> Assignment | None:
    """Return the assignment that this process has a share in; once."""
    file = environment.pop(SHARE, None)
    return None if file is None else read_assignment(Path(file))


def read_assignment(file: Path) -> Assignment:
    """Read an assignment.

    Raises:
        InputError: the file is unreadable or malformed.
    """
    return read_json(file, partial(decode, Assignment))


_TAIL_CHUNK: Final = 1 << 16
#: More than a pipe holds: all that was printed until now. A child of a worker may never stop.
_PIPE: Final = 1 << 20
#: What a crash of the interpreter starts with; then come the frames of the thread that it was in,
#: innermost first. They are printed of a process that hangs, too.
_CRASH: Final = "Fatal Python error"
_CRASHED: Final = "Current thread"


class Output(Struct):
    """One of a worker's two streams."""

    pipe: IO[bytes]
    shown: Callable[[], TextIO]
    log: IO[bytes]
    _decoder: codecs.IncrementalDecoder = msgspec.field(
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


class Ending(Struct, frozen=True):
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


class LostWorker(Struct, frozen=True):
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
