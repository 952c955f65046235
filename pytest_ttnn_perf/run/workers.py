"""A pass over some tests in fresh processes: as many workers, one after another, as it takes."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
import time
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError, TtnnPerfError, UsageError, WriteError
from pytest_ttnn_perf.device.ttnn import installed_ttnn
from pytest_ttnn_perf.processes.channel import ASSIGNMENT, ROLE, WORKER
from pytest_ttnn_perf.processes.worker import WorkerProcess, interpreter, last_words, start
from pytest_ttnn_perf.records.json import encode
from pytest_ttnn_perf.records.messages import (
    Assignment,
    Broke,
    Collected,
    Ended,
    Finished,
    Opened,
    Passed,
    PassKind,
    Refused,
    Reported,
    Started,
    Stopped,
    message_of,
)
from pytest_ttnn_perf.records.settings import PassChoice, ProfilerKind
from pytest_ttnn_perf.run.preflight import OWN_PASS
from pytest_ttnn_perf.run.record import ignore_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.processes.worker import Ending
    from pytest_ttnn_perf.records.messages import ComparedVersions, Message
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.run.gate_run import DeviceResults


def finds_modules_in(folder: Path) -> bool:
    """Tell whether this process finds modules in a folder, if that is the current one."""
    return bool({"", str(folder)} & set(sys.path))


_FILE: Final = "assignment.json"
_ATTEMPTS: Final = 10
#: The passes whose by-products are not the user's.
_OF_NOBODY: Final = frozenset({PassKind.DEVICE, PassKind.AB})


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


class Listener:
    """Receives the messages of a pass' workers; subclasses override what they need."""

    __slots__ = ()

    @property
    def stop(self) -> str | None:
        """Why no more tests should run; None to go on."""
        return None

    def receive(self, message: Message) -> None:
        """Take in one message of a worker."""

    def worker_lost(self, loss: LostWorker) -> None:
        """Take in that a worker died or hung."""


@dataclass(slots=True)
class ResultListener(Listener):
    """Waits for a result of each test in ``waiting``, and gives up those that none comes of.

    ``trouble`` is why no worker could go on.
    """

    print_line: Callable[[str], None]
    waiting: dict[str, None]
    trouble: str | None = field(default=None, init=False)

    def take(self, test: str, observed: dict[str, object]) -> None:
        """Take in what a worker observed of a test."""
        raise NotImplementedError

    def give_up(self, test: str, why: str) -> None:
        """Take in why there is no result of a test."""
        raise NotImplementedError

    def receive(self, message: Message) -> None:
        """Take in one message."""
        match message:
            case Reported(report={"outcome": "rerun"}):
                pass  # of pytest-rerunfailures: a test counts as it ends
            case Reported(test=test) if message.observed is not None:
                self.take(test, message.observed)
            case Refused(text=text) | Broke(text=text) | Stopped(text=text):
                self.trouble = text

    def worker_lost(self, loss: LostWorker) -> None:
        """Give up the tests that a worker was running when it died or hung."""
        why = f"its worker {loss.text}; log: {loss.log}"
        if not loss.tests:  # those that are left would have had another worker
            self.trouble = why
        for started in loss.tests:
            self.give_up(started.test, why)

    def close(self, why: str) -> None:
        """Give up the tests that no worker reported: for the trouble there was, or for ``why``."""
        for test in tuple(self.waiting):
            self.give_up(test, self.trouble or why)


@dataclass(slots=True)
class WorkerLauncher:
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
    reset: Callable[[LostWorker], str | None] = lambda _: None
    print_line: Callable[[str], None] = lambda _: None
    #: Where versions are compared: this one, and the other.
    versions: ComparedVersions | None = None
    #: Whether modules are found in the current folder; None for as in this process.
    cwd_on_path: bool | None = None
    #: The passes of the workers so far, which all workers of a run are numbered by.
    _started: list[PassKind] = field(default_factory=list)

    def start(self, kind: PassKind, tests: Sequence[str] | None) -> WorkerProcess:
        """Start a worker on ``tests``; None for all that it collects.

        Raises:
            WriteError: it can have no folder of its own.
            UsageError: there can be no other process.
        """
        folder = self.next_folder(kind)

        def command(descriptor: int, notes: int) -> list[str]:
            # What it prints is shown in its place among what it says: then all is said aloud.
            self._assign(folder, kind, descriptor, tests, notes=None if self.shown else notes)
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
        from pytest_ttnn_perf.processes.commands import run_batch

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
        try:
            for _ in range(_ATTEMPTS):
                # Another run may have made, or discarded, the folder above since it was looked for.
                with contextlib.suppress(FileNotFoundError, FileExistsError):
                    folder.mkdir(parents=True)
                    return folder
            folder.mkdir(parents=True)
        except OSError as cause:
            raise WriteError(folder, cause) from cause
        return folder

    def _assign(
        self,
        folder: Path,
        kind: PassKind,
        descriptor: int | None,
        tests: Sequence[str] | None,
        *,
        notes: int | None = None,
    ) -> None:
        # The by-products of the first worker are the user's; not those of a profiled one.
        others, given = set(self._started[:-1]), self.cwd_on_path
        assignment = Assignment(
            kind,
            descriptor,
            folder,
            None if tests is None else tuple(tests),
            first=kind not in _OF_NOBODY and others <= {PassKind.DEVICE},
            cwd_on_path=finds_modules_in(self.cwd) if given is None else given,
            profiler=self.profiler,
            versions=self.versions,
            notes=notes,
        )
        file = folder / _FILE
        file.write_text(json.dumps(encode(assignment)), encoding="utf-8")

    def _environment(self, folder: Path) -> dict[str, str]:
        ours = {ASSIGNMENT: str(folder / _FILE), ROLE: WORKER}
        return {**self.environment, **self.variables(folder), **ours}

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


@dataclass(slots=True)
class Pass:
    """One pass. A worker that dies or hangs costs the tests it was running; the rest go on."""

    kind: PassKind
    workers: WorkerLauncher
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
            self.listener.worker_lost(loss)
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

    def _one_worker(self) -> LostWorker | None:
        self._running.clear()
        self._opened = False
        left = None if self._left is None else tuple(self._left)
        try:
            child = self.workers.start(self.kind, left)
        except TtnnPerfError as error:
            if left is None:  # nothing is known of any test yet
                raise
            return LostWorker(
                (), f"could not be started: {error.__cause__}", self.workers.folder, ""
            )
        try:
            ending = self._read_messages(child)
        except BaseException:
            self.workers.discard(child.log.parent)  # nothing is wrong with this worker
            raise
        if ending is None:
            self.workers.discard(child.log.parent)
            return None
        self.workers.keep()
        return self._loss(ending, child.log)

    def _read_messages(self, child: WorkerProcess) -> Ending | None:
        """Read all that a worker sends; return how it ended unless that was as it should be.

        Ctrl-C does not cut short what is made of a message, and loses none that was sent.
        """
        child.interrupts.hold()
        try:
            with child:
                ended = False
                for message in self._messages(child):
                    ended = ended or isinstance(message, Ended)
                    try:
                        self._receive(message)
                    except DecodeError:  # what it carries is not what it should be
                        child.damaged = True
                        break
                    child.stop = self.listener.stop
                ending = child.ending(patience_s=self.silence_s)
        except KeyboardInterrupt:
            with contextlib.suppress(DecodeError):
                for document in child.unread:
                    message = message_of(document)
                    if isinstance(message, (Started, Reported, Passed, Finished)):
                        self._receive(message)
            raise
        finally:
            for process in child.survivors:
                self.workers.print_line(f"ttnn-perf: a test left a process running: {process}")
            child.interrupts.release()
        return None if ended and not ending.cut and not ending.damaged else ending

    def _receive(self, message: Message) -> None:
        self._track(message)
        self.listener.receive(message)

    def _messages(self, child: WorkerProcess) -> Iterator[Message]:
        try:
            for document in child.documents(silence_s=self.silence_s):
                yield message_of(document)
        except DecodeError:
            child.damaged = True

    def _track(self, message: Message) -> None:
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

    def _loss(self, ending: Ending, log: Path) -> LostWorker:
        running = tuple(self._running.values())
        for started in running:
            self._finish(started.test)
        dirty = self._opened and (ending.hung or ending.code < 0)
        text = last_words(log)
        return LostWorker(running, str(ending), log, text, dirty=dirty, hung=ending.hung)


_RESET_TIMEOUT_S: Final = 600.0
_UNUSABLE: Final = "left a device in an unusable state"
_REMEDY: Final = "reset it, and let --ttnn-perf-reset 'tt-smi -r' do so next time"


@dataclass(frozen=True, slots=True)
class WorkerFactory:
    """Starts the workers of a run's passes; ``plain`` are those of a run without devices."""

    settings: Settings
    profiler: ProfilerKind
    plain: WorkerLauncher
    print_line: Callable[[str], None]

    @property
    def has_device_pass(self) -> bool:
        """Whether tests are profiled in a pass of their own before the wall pass."""
        return self.profiler in OWN_PASS and self.settings.passes is PassChoice.BOTH

    @property
    def first_kind(self) -> PassKind:
        """The pass whose reports the user sees."""
        only_device = self.settings.passes is PassChoice.DEVICE
        return PassKind.DEVICE if only_device else PassKind.WALL

    def first(self) -> WorkerLauncher:
        """Return those of that pass."""
        if self.first_kind is PassKind.DEVICE:
            return self.profiled(more_room=True)  # no other pass gives dropped markers more room
        # What needs a pass of its own is off in this one.
        profiler = ProfilerKind.OFF if self.profiler in OWN_PASS else self.profiler
        return self._workers(profiler, self._variables)

    def profiled(self, *, more_room: bool) -> WorkerLauncher:
        """Return those whose tests are profiled. What these print is in their log."""
        from pytest_ttnn_perf.device.environment import profiler_variables, program_room

        given = program_room(self.plain.environment)

        def variables(folder: Path) -> Mapping[str, str]:
            return {
                **self._variables(folder),
                **profiler_variables(self.profiler, folder, more_room=more_room, given=given),
            }

        return replace(self._workers(self.profiler, variables), shown=False)

    def run_device_pass(self) -> DeviceResults:
        """Profile the measured tests in a pass of their own."""
        from pytest_ttnn_perf.run.device_pass import profile_tests, profile_with_tracy

        if self.profiler is ProfilerKind.TRACY:
            workers = self.profiled(more_room=False)
            return profile_with_tracy(self.settings, workers, self.print_line)
        return profile_tests(self.settings, self.profiled, self.print_line)

    def _variables(self, folder: Path) -> Mapping[str, str]:
        if installed_ttnn().version is None:
            return {}
        from pytest_ttnn_perf.device.environment import worker_variables

        return worker_variables(self.plain.environment, folder)

    def _workers(
        self, profiler: ProfilerKind, variables: Callable[[Path], Mapping[str, str]]
    ) -> WorkerLauncher:
        return replace(
            self.plain,
            profiler=profiler,
            variables=variables,
            reset=self._reset,
            print_line=self.print_line,
        )

    def _reset(self, loss: LostWorker) -> str | None:
        """Make a device usable again whose worker was killed; return why it is not."""
        from pytest_ttnn_perf.device.sharing import find_broker

        command, remedy = self.settings.reset, _REMEDY
        broker = find_broker(self.plain.environment)
        if broker is not None:
            remedy = broker.instead
            if command is not None and not broker.allows(command):
                self.print_line(f"ttnn-perf: the device is not reset by hand: {remedy}")
                command = None
        if command is None:  # after a crash the next one mostly can
            return f"{_UNUSABLE}: {remedy}" if loss.hung else None
        from pytest_ttnn_perf.processes.commands import run_command

        self.print_line(f"ttnn-perf: resetting the device: {command}")
        problem = run_command(command, timeout_s=_RESET_TIMEOUT_S)
        return None if problem is None else f"left a device that is not usable: {command} {problem}"
