"""Workers: fresh processes that run tests, and passes over tests in them."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from pytest_ttnn_perf.core.assignment import Assignment, PassKind
from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.errors import DecodeError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.files import new_folder
from pytest_ttnn_perf.core.settings import PassChoice, ProfilerKind
from pytest_ttnn_perf.gate.record import ignore_folder
from pytest_ttnn_perf.machine.processes import (
    Silence,
    WorkerProcess,
    finds_modules_in,
    interpreter,
    last_words,
    run_batch,
    run_command,
)
from pytest_ttnn_perf.machine.ttnn import installed_ttnn
from pytest_ttnn_perf.plugin.preflight import OWN_PASS
from pytest_ttnn_perf.plugin.wire import (
    ASSIGNMENT,
    ROLE,
    WORKER,
    Collected,
    Ended,
    Finished,
    Message,
    Opened,
    Reported,
    Started,
    message_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.assignment import ComparedVersions
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.machine.processes import Ending


_ASSIGNMENT_FILE: Final = "assignment.json"
#: The passes whose by-products are not the user's.
_WITHOUT_BY_PRODUCTS: Final = frozenset({PassKind.DEVICE, PassKind.AB})
_RESET_TIMEOUT_S: Final = 600.0
_UNUSABLE: Final = "left a device in an unusable state"
_REMEDY: Final = "reset it, and let --ttnn-perf-reset 'tt-smi -r' do so next time"


class LostWorker(Struct, frozen=True):
    """A worker that died or hung, and the tests it was running.

    ``dirty``: it was killed while it had a device open. After one that ``hung``, no other worker
    can use the device as it is.
    """

    tests: tuple[Started, ...]
    text: str
    log: Path
    tail: str = ""
    dirty: bool = False
    hung: bool = False

    def __str__(self) -> str:
        return f"worker {self.text}; log: {self.log}"


class Wait(Struct, frozen=True):
    """Running tests without any news for some seconds."""

    tests: tuple[str, ...]
    seconds: float


Event = Message | LostWorker | Wait


class Workers(Struct):
    """The workers of a run, and how they are started.

    ``arguments`` returns what follows the interpreter, given a worker's own folder. ``folder``
    keeps these while they run, and for good where a worker did not come to its end. ``shown``: what
    they print is shown here, too. ``versions`` is set where versions are compared. ``cwd_on_path``:
    modules are found in the current folder; None for as in this process. ``apart`` are the tests
    that are known to start a profiled process of their own.
    """

    settings: Settings
    arguments: Callable[[Path], Sequence[str]]
    cwd: Path
    folder: Path
    print_line: Callable[[str], None]
    profiler: ProfilerKind = ProfilerKind.OFF
    shown: bool = False
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    versions: ComparedVersions | None = None
    cwd_on_path: bool | None = None
    apart: dict[str, None] = field(default_factory=dict)
    #: The passes of the workers so far, by which they are numbered.
    started: list[PassKind] = field(default_factory=list)

    @property
    def has_device_pass(self) -> bool:
        """Tests are profiled in a pass of their own."""
        return self.profiler in OWN_PASS and self.settings.passes is PassChoice.BOTH

    @property
    def first_kind(self) -> PassKind:
        """The pass whose reports the user sees."""
        only_device = self.settings.passes is PassChoice.DEVICE
        return PassKind.DEVICE if only_device else PassKind.WALL

    def start(
        self,
        kind: PassKind,
        tests: Sequence[str] | None,
        *,
        profiled: bool = False,
        more_room: bool = False,
        alone: bool = False,
    ) -> WorkerProcess:
        """Start a worker on ``tests``; None for all that it collects.

        ``profiled``: its profiler is on, with ``more_room`` for its data or the usual. ``alone``:
        its test is a single one, which may start a profiled process.

        Raises:
            WriteError: it can have no folder of its own.
            UsageError: there can be no other process.
        """
        folder = self.next_folder(kind)
        shown = self.shown and not profiled  # what a profiled one prints is in its log
        self._assign(folder, kind, tests, profiled=profiled, alone=alone, shown=shown)
        try:
            return WorkerProcess(
                [*interpreter(), *self.arguments(folder)],
                cwd=self.cwd,
                environment=self._environment(folder, profiled=profiled, more_room=more_room),
                log=folder / "worker.log",
                shown=shown,
            )
        except OSError as cause:
            self.discard(folder)
            message = f"a worker cannot be started: {cause}"
            raise UsageError(message) from cause

    def run_batch(self, folder: Path, launcher: Sequence[str]) -> Ending:
        """Run a profiled worker that another program launches.

        Raises:
            UsageError: there can be no other process.
        """
        self._assign(folder, PassKind.DEVICE, None, profiled=True, batch=True)
        # Launchers join the words of what they launch for a shell.
        words = map(shlex.quote, self.arguments(folder))
        try:
            return run_batch(
                [*interpreter(), *launcher, *words],
                cwd=self.cwd,
                environment=self._environment(folder, profiled=True),
                log=folder / "worker.log",
                timeout_s=self.settings.timeout,
            )
        except OSError as cause:
            message = f"a worker cannot be started: {cause}"
            raise UsageError(message) from cause

    def next_folder(self, kind: PassKind) -> Path:
        """Make the folder of another worker.

        Raises:
            WriteError: it cannot be made.
        """
        self.started.append(kind)
        return new_folder(self.folder / f"{len(self.started)}-{kind.value}")

    def _assign(
        self,
        folder: Path,
        kind: PassKind,
        tests: Sequence[str] | None,
        *,
        profiled: bool,
        **how: bool,
    ) -> None:
        given = self.cwd_on_path
        assignment = Assignment(
            kind,
            folder,
            None if tests is None else tuple(tests),
            # The by-products of the first worker are the user's; not those of a profiled one.
            first=kind not in _WITHOUT_BY_PRODUCTS and set(self.started[:-1]) <= {PassKind.DEVICE},
            cwd_on_path=finds_modules_in(self.cwd) if given is None else given,
            # What needs a pass of its own is off in others.
            profiler=self.profiler
            if profiled or self.profiler not in OWN_PASS
            else ProfilerKind.OFF,
            versions=self.versions,
            apart=tuple(self.apart),
            **how,
        )
        file = folder / _ASSIGNMENT_FILE
        file.write_text(json.dumps(encode(assignment)), encoding="utf-8")

    def _environment(
        self, folder: Path, *, profiled: bool, more_room: bool = False
    ) -> dict[str, str]:
        environment = dict(self.environment)
        if installed_ttnn().version is not None:
            from pytest_ttnn_perf.machine.environment import worker_variables

            environment |= worker_variables(self.environment, folder)
        if profiled:
            from pytest_ttnn_perf.machine.environment import profiler_variables, program_room

            given = program_room(self.environment)
            environment |= profiler_variables(
                self.profiler, folder, more_room=more_room, given=given
            )
        environment |= {ASSIGNMENT: str(folder / _ASSIGNMENT_FILE), ROLE: WORKER}
        environment.pop("TTNN_PERF_HISTORY", None)  # may hold a password that no test needs
        return environment

    def reset(self, *, hung: bool) -> str | None:
        """Reset a device whose worker was killed; return why it is unusable."""
        from pytest_ttnn_perf.machine.chips import find_broker

        command, remedy = self.settings.reset, _REMEDY
        broker = find_broker(self.environment)
        if broker is not None:
            remedy = broker.instead
            if command is not None and not broker.allows(command):
                self.print_line(f"ttnn-perf: the device is not reset by hand: {remedy}")
                command = None
        if command is None:  # after a crash the next one mostly can
            return f"{_UNUSABLE}: {remedy}" if hung else None
        self.print_line(f"ttnn-perf: resetting the device: {command}")
        problem = run_command(command, timeout_s=_RESET_TIMEOUT_S)
        return None if problem is None else f"left a device that is not usable: {command} {problem}"

    def keep(self) -> None:
        """Keep the folder of a lost worker, ignored by git."""
        with contextlib.suppress(TtnnPerfError):  # what is wrong with it was wrong before
            ignore_folder(self.folder.parent.parent)

    def discard(self, folder: Path) -> None:
        """Remove the folder of a worker, and those above once empty."""
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty, or gone: other workers, other runs
            self.folder.rmdir()
            self.folder.parent.rmdir()


class Pass:
    """One pass over tests, in as many workers as it takes.

    As a context it yields what they send. A worker that dies or hangs is one of these events: it
    costs the tests it was running, and the rest go on. Tests that start a profiled process of
    their own come last, each in a worker of its own, unless they are left to another pass
    (``runs_apart``). Set ``stop``, and no more tests are started; ``damaged``, and the worker is
    killed. ``stopped`` is why no other worker was started; None if nothing was against it.
    """

    def __init__(  # noqa: PLR0913 (four keywords)
        self,
        workers: Workers,
        kind: PassKind,
        tests: Sequence[str] | None,
        *,
        silence_s: float | None = None,
        profiled: bool = False,
        more_room: bool = False,
        runs_apart: bool = True,
    ) -> None:
        self.stop: str | None = None
        self.damaged = False
        self.stopped: str | None = None
        self._workers, self._kind, self._runs_apart = workers, kind, runs_apart
        # What no other pass would give more room has it at once.
        only_device = workers.settings.passes is PassChoice.DEVICE and workers.profiler in OWN_PASS
        self._profiled, self._more_room = profiled or only_device, more_room or only_device
        self._silence_s = workers.settings.timeout if silence_s is None else silence_s
        self._left: dict[str, None] | None = None
        self._apart: dict[str, None] = {}
        if tests is not None:
            self._left = {test: None for test in tests if test not in workers.apart}
            self._apart = {test: None for test in tests if test in workers.apart}
        self._running: dict[str, Started] = {}
        self._done = 0
        self._opened = False
        self._events = self._run()

    def __enter__(self) -> Pass:
        return self

    def __exit__(self, *_: object) -> None:
        self._events.close()  # a worker that runs is ended

    def __iter__(self) -> Iterator[Event]:
        return self._events

    @property
    def left(self) -> tuple[str, ...]:
        """The tests that no worker came to run."""
        return (*(self._left or ()), *(self._apart if self._runs_apart else ()))

    def _run(self) -> Generator[Event]:
        if self._left is None or self._left:
            yield from self._run_workers(alone=False)
        while self._runs_apart and self._apart and not (self.stop or self.stopped or self._left):
            test = next(iter(self._apart))
            del self._apart[test]
            self._left = {test: None}
            yield from self._run_workers(alone=True)

    def _run_workers(self, *, alone: bool) -> Generator[Event]:
        while True:
            done = self._done
            loss = yield from self._one_worker(alone=alone)
            if loss is None:
                return
            yield loss
            if loss.dirty:
                self.stopped = self._workers.reset(hung=loss.hung)
            # Another worker only if this one got anywhere: no test is tried for ever.
            got_on = loss.tests or self._done > done
            if not self._left or not got_on or self.stop or self.stopped:
                return

    def _one_worker(self, *, alone: bool) -> Generator[Event, None, LostWorker | None]:
        """Run a worker to its end; return it if it was lost."""
        self._running.clear()
        self._opened = False
        workers, left = self._workers, None if self._left is None else tuple(self._left)
        # What profiles itself is not profiled, whatever pass it is of.
        kind = PassKind.WALL if alone and self._kind is PassKind.DEVICE else self._kind
        profiled = self._profiled and not alone
        try:
            child = workers.start(
                kind, left, profiled=profiled, more_room=self._more_room, alone=alone
            )
        except TtnnPerfError as error:
            if left is None:  # nothing is known of any test yet
                raise
            return LostWorker((), f"could not be started: {error.__cause__}", workers.folder)
        try:
            ending = yield from self._listen(child)
        except BaseException:
            workers.discard(child.log.parent)  # nothing is wrong with this worker
            raise
        if ending is None:
            workers.discard(child.log.parent)
            return None
        workers.keep()
        running = tuple(self._running.values())
        for started in running:
            self._finish(started.test)
        dirty = self._opened and (ending.hung or ending.code < 0)
        words = last_words(child.log)
        return LostWorker(running, str(ending), child.log, words, dirty=dirty, hung=ending.hung)

    def _listen(self, child: WorkerProcess) -> Generator[Event, None, Ending | None]:
        """Yield all messages of a worker; return how it ended if badly.

        Ctrl-C does not cut short what is made of a message, and loses none that was sent.
        """
        ended = False
        child.interrupts.hold()
        try:
            with child:
                for document in child.documents(silence_s=self._silence_s):
                    try:
                        if isinstance(document, Silence):
                            yield Wait(tuple(self._running), document.seconds)
                        else:
                            message = self._track(message_of(document))
                            ended = ended or isinstance(message, Ended)
                            yield message
                    except DecodeError:
                        self.damaged = True
                    child.stop, child.damaged = self.stop, child.damaged or self.damaged
                    self.damaged = False
                ending = child.ending(patience_s=self._silence_s)
        except KeyboardInterrupt:
            with contextlib.suppress(DecodeError):
                for document in child.unread:
                    message = message_of(document)
                    if isinstance(message, (Started, Reported, Finished)):
                        yield self._track(message)
            raise
        finally:
            for process in child.survivors:
                self._workers.print_line(f"ttnn-perf: a test left a process running: {process}")
            child.interrupts.release()
        return None if ended and not ending.cut and not ending.damaged else ending

    def _track(self, message: Message) -> Message:
        match message:
            case Collected(identities=identities) if self._left is not None:
                # What was asked for by identity is known by its node id from now on.
                known = {identity: test for test, identity in identities.items()}
                self._left = {known.get(test, test): None for test in self._left}
            case Collected(tests=tests):
                self._left = dict.fromkeys(tests)
            case Opened():
                self._opened = True
            case Started(test=test):
                self._running[test] = message
            case Finished(test=test, apart=apart):
                self._running.pop(test, None)
                self._finish(test)
                if apart:
                    self._apart[test] = self._workers.apart[test] = None
        return message

    def _finish(self, test: str) -> None:
        self._done += 1
        if self._left is not None:
            self._left.pop(test, None)
