"""The worker's end of its conversation with the orchestrator: a line of JSON each way in turn."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import socket
import sys
import threading
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf._base.files import read_json
from pytest_ttnn_perf.records.json import decode
from pytest_ttnn_perf.records.messages import Assignment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping

    from pytest_ttnn_perf.records.messages import Message


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


@dataclass(slots=True)
class Interrupts:
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


@dataclass(frozen=True, slots=True)
class OrchestratorLink:
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
