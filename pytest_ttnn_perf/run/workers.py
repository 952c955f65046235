"""A pass over some tests in fresh processes: as many workers, one after another, as it takes."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pytest_ttnn_perf._base.errors import (
    DecodeError,
    InputError,
    TtnnPerfError,
    UsageError,
    WriteError,
)
from pytest_ttnn_perf._base.files import read_json
from pytest_ttnn_perf.processes.channel import Channel, die_with_parent, show_stacks_on_request
from pytest_ttnn_perf.processes.commands import run_batch
from pytest_ttnn_perf.processes.worker import Child, interpreter, start, tail
from pytest_ttnn_perf.records.json import decode, encode
from pytest_ttnn_perf.records.messages import (
    Assignment,
    Collected,
    Ended,
    Finished,
    Opened,
    PassKind,
    Started,
    message_of,
)
from pytest_ttnn_perf.records.settings import ProfilerKind
from pytest_ttnn_perf.run.record import ignore_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
    from types import ModuleType

    from pytest_ttnn_perf.processes.worker import Ending
    from pytest_ttnn_perf.records.messages import Apart, Message


#: This plugin measures both sides, and is the same for both.
_TOOL: Final = "pytest_ttnn_perf"
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
#: Where projects keep their packages, seen from their root.
_PLACES: Final = ("", "src", "lib", "python")


def finds_modules_in(folder: Path) -> bool:
    """Tell whether this process finds modules in a folder, if that is the current one."""
    return bool({"", str(folder)} & set(sys.path))


class Stray(NamedTuple):
    """A module that is not of the version under test."""

    name: str
    file: str


def strays(
    modules: Mapping[str, ModuleType], apart: Apart, *, here: Path, ours: Sequence[Path] = ()
) -> list[Stray]:
    """Return the modules that are the other version's, or copies of it that are installed.

    Either would make a comparison one of the code with itself. What is installed in an environment
    that lies in the project is no part of it, nor is what lies in ``ours``.
    """
    shared = [apart.other / each for each in apart.shared]
    let_off = [*ours, *shared, Path(sys.prefix), Path(sys.base_prefix)]
    let_off = [each for each in let_off if not apart.other.is_relative_to(each)]
    found = []
    for name, module in modules.items():
        file = vars(module).get("__file__") if hasattr(module, "__dict__") else None
        if not isinstance(file, str) or name.partition(".")[0] == _TOOL:
            continue
        place = Path(os.path.realpath(file))
        installed = not _INSTALLED.isdisjoint(place.parts)
        if not installed and place.is_relative_to(apart.other):
            if not any(place.is_relative_to(each) for each in let_off):
                found.append(Stray(name, str(place)))
        elif installed and any(each.exists() for each in _own_files(name, apart, here)):
            found.append(Stray(name, str(place)))
    return found


def _own_files(name: str, apart: Apart, here: Path) -> Iterator[Path]:
    """Yield where a project would have a package or module that stands on its own."""
    if "." in name or name in sys.stdlib_module_names:
        return
    for root in dict.fromkeys((apart.own, here)):
        for place in _PLACES:
            if not any(Path(place, name).is_relative_to(each) for each in apart.shared):
                yield root / place / name / "__init__.py"
                yield root / place / f"{name}.py"


def own_place(stray: Stray, apart: Apart, here: Path) -> Path:
    """Return the folder in which a project has its own version of a module, or would have it."""
    top = stray.name.partition(".")[0]
    found = (file for file in _own_files(top, apart, here) if file.exists())
    file = next(found, apart.own / "src" / top / "__init__.py")
    return import_root(Stray(top, str(file)))


def import_root(stray: Stray) -> Path:
    """Return the folder that a module was found in, as it would stand in ``sys.path``.

    >>> import_root(Stray("model.layers", "/project/src/model/layers.py")).as_posix()
    '/project/src'
    >>> import_root(Stray("model", "/project/src/model/__init__.py")).as_posix()
    '/project/src'
    """
    path = Path(stray.file)
    path = path.parent if path.stem == "__init__" else path.with_suffix("")
    for _ in stray.name.split("."):
        path = path.parent
    return path


#: Names the file with a worker's assignment. The worker takes it out of its environment, so that
#: a pytest that a test starts is not taken for another worker.
ASSIGNMENT: Final = "TTNN_PERF_ASSIGNMENT"
_FILE: Final = "assignment.json"
_ATTEMPTS: Final = 10
#: The passes whose by-products are not the user's.
_NOBODYS: Final = frozenset({PassKind.DEVICE, PassKind.AB})


@dataclass(frozen=True, slots=True)
class Loss:
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


class Listener(Protocol):
    """Hears the workers of a pass."""

    @property
    def stop(self) -> str | None:
        """Why no more tests should run; None to go on."""

    def hear(self, message: Message) -> None:
        """Take notice of what a worker says."""

    def lose(self, loss: Loss) -> None:
        """Take notice of a worker that died or hung."""


@dataclass(slots=True)
class Workers:
    """How workers of this run are started.

    ``arguments`` returns what follows the interpreter, given a worker's own folder. ``folder``
    keeps these while they run, and for good where a worker did not come to its end. ``variables``
    returns what is added to the environment of a worker, given its folder.
    """

    arguments: Callable[[Path], Sequence[str]]
    cwd: Path
    folder: Path
    shown: bool = False
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    profiler: ProfilerKind = ProfilerKind.OFF
    variables: Callable[[Path], Mapping[str, str]] = lambda _: {}
    #: Makes a device usable again after its worker was killed; returns why it cannot.
    reset: Callable[[Loss], str | None] = lambda _: None
    #: Where versions are compared: this one, and the other.
    apart: Apart | None = None
    #: Whether modules are found in the current folder; None for as in this process.
    cwd_on_path: bool | None = None
    #: The passes of the workers so far, which all workers of a run are numbered by.
    _started: list[PassKind] = field(default_factory=list)

    def start(self, kind: PassKind, tests: Sequence[str] | None) -> Child:
        """Start a worker on ``tests``; None for all that it collects.

        Raises:
            WriteError: it can have no folder of its own.
            UsageError: there can be no other process.
        """
        folder = self.next_folder(kind)

        def command(descriptor: int) -> list[str]:
            self._assign(folder, kind, descriptor, tests)
            return [*interpreter(), *self.arguments(folder)]

        log, environment = folder / "worker.log", self._environment(folder)
        try:
            return start(command, cwd=self.cwd, environment=environment, log=log, shown=self.shown)
        except OSError as cause:
            self.discard(folder)
            message = f"a worker cannot be started: {cause}"
            raise UsageError(message) from cause

    def run_batch(
        self, folder: Path, kind: PassKind, launcher: Sequence[str], *, timeout_s: float
    ) -> Ending:
        """Run a worker to its end that another program launches, and that tells us nothing.

        Raises:
            UsageError: there can be no other process.
        """
        self._assign(folder, kind, None, None)
        # Launchers join the words of what they launch for a shell.
        words = map(shlex.quote, self.arguments(folder))
        command = [*interpreter(), *launcher, *words]
        log, environment = folder / "worker.log", self._environment(folder)
        try:
            return run_batch(
                command, cwd=self.cwd, environment=environment, log=log, timeout_s=timeout_s
            )
        except OSError as cause:
            message = f"a worker cannot be started: {cause}"
            raise UsageError(message) from cause

    def next_folder(self, kind: PassKind) -> Path:
        """Make the folder of another worker.

        Raises:
            WriteError: it cannot be made.
        """
        self._started.append(kind)
        folder = self.folder / f"{len(self._started)}-{kind.value}"
        _make(folder)
        return folder

    def _assign(
        self,
        folder: Path,
        kind: PassKind,
        descriptor: int | None,
        tests: Sequence[str] | None,
    ) -> None:
        # The by-products of the first worker are the user's; not those of a profiled one.
        others, given = set(self._started[:-1]), self.cwd_on_path
        assignment = Assignment(
            kind,
            descriptor,
            folder,
            None if tests is None else tuple(tests),
            first=kind not in _NOBODYS and others <= {PassKind.DEVICE},
            cwd_on_path=finds_modules_in(self.cwd) if given is None else given,
            profiler=self.profiler,
            apart=self.apart,
        )
        file = folder / _FILE
        file.write_text(json.dumps(encode(assignment)), encoding="utf-8")

    def _environment(self, folder: Path) -> dict[str, str]:
        return {**self.environment, **self.variables(folder), ASSIGNMENT: str(folder / _FILE)}

    def keep(self) -> None:
        """Keep the folder of a worker that was lost, out of git's sight."""
        with contextlib.suppress(TtnnPerfError):  # what is wrong with it was wrong before
            ignore_folder(self.folder.parent.parent)

    def discard(self, folder: Path) -> None:
        """Remove the folder of a worker that came to its end, and those above once empty."""
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty, or gone: other workers, other runs
            self.folder.rmdir()
            self.folder.parent.rmdir()


def _make(folder: Path) -> None:
    try:
        for _ in range(_ATTEMPTS):
            # Another run may have made, or discarded, the folder above since it was looked for.
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                folder.mkdir(parents=True)
                return
        folder.mkdir(parents=True)
    except OSError as cause:
        raise WriteError(folder, cause) from cause


@dataclass(slots=True)
class Pass:
    """One pass. A worker that dies or hangs costs the tests it was running; the rest go on."""

    kind: PassKind
    workers: Workers
    listener: Listener
    silence_s: float
    _left: dict[str, None] | None = None
    _running: dict[str, Started] = field(default_factory=dict)
    _done: int = 0
    _opened: bool = False
    #: Why no other worker was started; None if there was no need to, or nothing against it.
    stopped: str | None = None

    def run(self, tests: Sequence[str] | None) -> float:
        """Run ``tests``, None for all that are collected; return the seconds it took."""
        start_s = time.monotonic()
        self._left = None if tests is None else dict.fromkeys(tests)
        while True:
            done = self._done
            loss = self._one_worker()
            if loss is None:
                return time.monotonic() - start_s
            self.listener.lose(loss)
            if loss.dirty:
                self.stopped = self.workers.reset(loss)
            # Another worker only if this one got anywhere: no test is tried for ever.
            got_on = loss.tests or self._done > done
            if not self._left or not got_on or self.listener.stop or self.stopped:
                return time.monotonic() - start_s

    @property
    def left(self) -> tuple[str, ...]:
        """The tests that no worker came to run."""
        return tuple(self._left or ())

    def _one_worker(self) -> Loss | None:
        self._running.clear()
        self._opened = False
        left = None if self._left is None else tuple(self._left)
        try:
            child = self.workers.start(self.kind, left)
        except TtnnPerfError as error:
            if left is None:  # nothing is known of any test yet
                raise
            return Loss((), f"could not be started: {error.__cause__}", self.workers.folder, "")
        try:
            ending = self._hear(child)
        except BaseException:
            self.workers.discard(child.log.parent)  # nothing is wrong with this worker
            raise
        if ending is None:
            self.workers.discard(child.log.parent)
            return None
        self.workers.keep()
        return self._loss(ending, child.log)

    def _hear(self, child: Child) -> Ending | None:
        """Hear one worker out; return how it ended unless that was as it should be."""
        with child:
            ended = False
            for message in self._messages(child):
                ended = ended or isinstance(message, Ended)
                self._keep_book(message)
                self.listener.hear(message)
                child.stop = self.listener.stop
            ending = child.ending(patience_s=self.silence_s)
        return None if ended and not ending.cut and not ending.damaged else ending

    def _messages(self, child: Child) -> Iterator[Message]:
        try:
            for document in child.documents(silence_s=self.silence_s):
                yield message_of(document)
        except DecodeError:
            child.damaged = True

    def _keep_book(self, message: Message) -> None:
        match message:
            case Collected(tests=tests) if self._left is None:
                self._left = dict.fromkeys(tests)
            case Opened():
                self._opened = True
            case Started(test=test):
                self._running[test] = message
            case Finished(test=test):
                self._running.pop(test, None)
                self._finish(test)

    def _finish(self, test: str) -> None:
        self._done += 1
        if self._left is not None:
            self._left.pop(test, None)

    def _loss(self, ending: Ending, log: Path) -> Loss:
        running = tuple(self._running.values())
        for started in running:
            self._finish(started.test)
        dirty = self._opened and (ending.hung or ending.code < 0)
        return Loss(running, str(ending), log, tail(log), dirty=dirty, hung=ending.hung)


#: The same for the processes that a worker distributes its tests to.
SHARE: Final = "TTNN_PERF_SHARE"


@dataclass(frozen=True, slots=True)
class Link:
    """A worker's assignment, the file it came in, and its channel."""

    file: Path
    assignment: Assignment
    channel: Channel | None

    def prepare(self) -> None:
        """Get ready to be asked for what a hanging process cannot say."""
        show_stacks_on_request()

    def say(self, message: Message) -> str | None:
        """Tell the orchestrator; return why this worker should stop, None to go on."""
        return None if self.channel is None else self.channel.say(message.document())


def take_link(environment: MutableMapping[str, str]) -> Link | None:
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
        return Link(file, assignment, None)
    try:
        channel = Channel(assignment.descriptor)
    except (OSError, ValueError, OverflowError) as cause:
        problem = f"its channel {assignment.descriptor} is not open; unset {ASSIGNMENT}"
        raise InputError(file, f"{problem}, which only a worker is given") from cause
    return Link(file, assignment, channel)


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
