"""Sessions: the same tests in one fresh process after another, and what each of them measured."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import Accepted, MetricBaseline, TestBaseline
from pytest_ttnn_perf.core.codec import decode, encode
from pytest_ttnn_perf.core.errors import DecodeError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.files import new_folder
from pytest_ttnn_perf.core.messages import (
    Assignment,
    Broke,
    Collected,
    CollectionReported,
    Ended,
    Finished,
    Opened,
    PassKind,
    ProfilesItself,
    Refused,
    Reported,
    Started,
    Stopped,
    message_of,
)
from pytest_ttnn_perf.core.observation import Observation
from pytest_ttnn_perf.core.settings import PassChoice, ProfilerKind
from pytest_ttnn_perf.core.verdict import Outcome
from pytest_ttnn_perf.gate.judge import judge_test, session_of
from pytest_ttnn_perf.gate.record import ignore_folder
from pytest_ttnn_perf.machine.processes import (
    ASSIGNMENT,
    ROLE,
    WORKER,
    LostWorker,
    WorkerProcess,
    finds_modules_in,
    interpreter,
    last_words,
    start,
)
from pytest_ttnn_perf.machine.ttnn import installed_ttnn
from pytest_ttnn_perf.plugin.preflight import OWN_PASS
from pytest_ttnn_perf.report.sentences import sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.messages import ComparedVersions, Message
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.gated_run import DeviceResults
    from pytest_ttnn_perf.machine.processes import Ending


# The processes of a pass: how each is started, with which assignment and environment.

_FILE: Final = "assignment.json"
#: The passes whose by-products are not the user's.
_OF_NOBODY: Final = frozenset({PassKind.DEVICE, PassKind.AB})


class WorkerLauncher(Struct):
    """How workers of this run are started.

    ``arguments`` returns what follows the interpreter, given a worker's own folder. ``folder``
    keeps these while they run, and for good where a worker did not come to its end. ``variables``
    returns what is added to the environment of a worker, given its folder.
    """

    arguments: Callable[[Path], Sequence[str]]
    cwd: Path
    folder: Path
    shown: bool = False
    environment: dict[str, str] = msgspec.field(default_factory=lambda: dict(os.environ))
    profiler: ProfilerKind = ProfilerKind.OFF
    variables: Callable[[Path], Mapping[str, str]] = lambda _: {}
    #: Makes a device usable again after its worker was killed; returns why it cannot.
    reset: Callable[[LostWorker], str | None] = lambda _: None
    print_line: Callable[[str], None] = lambda _: None
    #: Where versions are compared: this one, and the other.
    versions: ComparedVersions | None = None
    #: Whether modules are found in the current folder; None for as in this process.
    cwd_on_path: bool | None = None
    #: The workers of tests that start a profiled process of their own; None for these.
    unprofiled: WorkerLauncher | None = None
    #: The passes of the workers so far, which all workers of a run are numbered by.
    _started: list[PassKind] = []
    #: The tests that are known to start a profiled process of their own, to all passes of a run.
    apart: dict[str, None] = {}

    def start(
        self, kind: PassKind, tests: Sequence[str] | None, *, alone: bool = False
    ) -> WorkerProcess:
        """Start a worker on ``tests``; None for all that it collects.

        ``alone``: it is a single one, which may start a profiled process.

        Raises:
            WriteError: it can have no folder of its own.
            UsageError: there can be no other process.
        """
        folder = self.next_folder(kind)

        def command(descriptor: int, notes: int) -> list[str]:
            # What it prints is shown in its place among what it says: then all is said aloud.
            told = None if self.shown else notes
            self._assign(folder, kind, descriptor, tests, notes=told, alone=alone)
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
        from pytest_ttnn_perf.machine.processes import run_batch

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
        return new_folder(self.folder / f"{len(self._started)}-{kind.value}")

    def _assign(
        self,
        folder: Path,
        kind: PassKind,
        descriptor: int | None,
        tests: Sequence[str] | None,
        *,
        notes: int | None = None,
        alone: bool = False,
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
            apart=tuple(self.apart),
            alone=alone,
        )
        file = folder / _FILE
        file.write_text(json.dumps(encode(assignment)), encoding="utf-8")

    def _environment(self, folder: Path) -> dict[str, str]:
        ours = {ASSIGNMENT: str(folder / _FILE), ROLE: WORKER}
        environment = {**self.environment, **self.variables(folder), **ours}
        environment.pop("TTNN_PERF_HISTORY", None)  # may hold a password that no test needs
        return environment

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


_RESET_TIMEOUT_S: Final = 600.0
_UNUSABLE: Final = "left a device in an unusable state"
_REMEDY: Final = "reset it, and let --ttnn-perf-reset 'tt-smi -r' do so next time"


class WorkerFactory(Struct, frozen=True):
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
        from pytest_ttnn_perf.machine.environment import profiler_variables, program_room

        given = program_room(self.plain.environment)

        def variables(folder: Path) -> Mapping[str, str]:
            return {
                **self._variables(folder),
                **profiler_variables(self.profiler, folder, more_room=more_room, given=given),
            }

        unprofiled = self._workers(ProfilerKind.OFF, self._variables)
        workers = self._workers(self.profiler, variables)
        return replace(workers, shown=False, unprofiled=unprofiled)

    def run_device_pass(self) -> DeviceResults:
        """Profile the measured tests in a pass of their own."""
        from pytest_ttnn_perf.plugin.device_pass import profile_tests, profile_with_tracy

        if self.profiler is ProfilerKind.TRACY:
            workers = self.profiled(more_room=False)
            return profile_with_tracy(self.settings, workers, self.print_line)
        return profile_tests(self.settings, self.profiled, self.print_line)

    def _variables(self, folder: Path) -> Mapping[str, str]:
        if installed_ttnn().version is None:
            return {}
        from pytest_ttnn_perf.machine.environment import worker_variables

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
        from pytest_ttnn_perf.machine.chips import find_broker

        command, remedy = self.settings.reset, _REMEDY
        broker = find_broker(self.plain.environment)
        if broker is not None:
            remedy = broker.instead
            if command is not None and not broker.allows(command):
                self.print_line(f"ttnn-perf: the device is not reset by hand: {remedy}")
                command = None
        if command is None:  # after a crash the next one mostly can
            return f"{_UNUSABLE}: {remedy}" if loss.hung else None
        from pytest_ttnn_perf.machine.processes import run_command

        self.print_line(f"ttnn-perf: resetting the device: {command}")
        problem = run_command(command, timeout_s=_RESET_TIMEOUT_S)
        return None if problem is None else f"left a device that is not usable: {command} {problem}"


# A pass over some tests in fresh processes: as many workers, one after another, as it takes.


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

    def wait(self, tests: Sequence[str], silent_s: float) -> None:
        """Take in that nothing has been heard of tests that are running for some seconds."""


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


class Pass(Struct):
    """One pass. A worker that dies or hangs costs the tests it was running; the rest go on.

    Tests that start a profiled process of their own come last, each in a worker of its own, unless
    they are left to another pass (``runs_apart``).
    """

    kind: PassKind
    workers: WorkerLauncher
    listener: Listener
    silence_s: float
    runs_apart: bool = True
    _left: dict[str, None] | None = None
    _apart: dict[str, None] = {}
    _running: dict[str, Started] = {}
    _done: int = 0
    _opened: bool = False
    #: Why no other worker was started; None if there was no need to, or nothing against it.
    stopped: str | None = None

    def run(self, tests: Sequence[str] | None) -> float:
        """Run ``tests``, None for all that are collected; return the seconds it took."""
        start_s = time.monotonic()
        if tests is not None:
            self._left = {test: None for test in tests if test not in self.workers.apart}
            self._apart = {test: None for test in tests if test in self.workers.apart}
        if self._left is None or self._left:
            self._run_workers(self.workers)
        if self.runs_apart:
            self._run_apart()
        return time.monotonic() - start_s

    def _run_apart(self) -> None:
        shared = self._left
        while self._apart and not (self.listener.stop or self.stopped or shared):
            test = next(iter(self._apart))
            del self._apart[test]
            self._left = {test: None}
            self._run_workers(self.workers.unprofiled or self.workers, alone=True)
            shared = self._left  # it could not be started: neither could the others

    def _run_workers(self, workers: WorkerLauncher, *, alone: bool = False) -> None:
        while True:
            done = self._done
            loss = self._one_worker(workers, alone=alone)
            if loss is None:
                return
            self.listener.worker_lost(loss)
            if loss.dirty:
                self.stopped = workers.reset(loss)
            # Another worker only if this one got anywhere: no test is tried for ever.
            got_on = loss.tests or self._done > done
            if not self._left or not got_on or self.listener.stop or self.stopped:
                return

    @property
    def left(self) -> tuple[str, ...]:
        """The tests that no worker came to run."""
        return (*(self._left or ()), *(self._apart if self.runs_apart else ()))

    def _one_worker(self, workers: WorkerLauncher, *, alone: bool) -> LostWorker | None:
        self._running.clear()
        self._opened = False
        left = None if self._left is None else tuple(self._left)
        try:
            # What profiles itself is not profiled, whatever pass it is of.
            kind = PassKind.WALL if alone and self.kind is PassKind.DEVICE else self.kind
            child = workers.start(kind, left, alone=alone)
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
                    if isinstance(message, (Started, Reported, Finished)):
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
            for document in child.documents(silence_s=self.silence_s, on_silence=self._wait):
                yield message_of(document)
        except DecodeError:
            child.damaged = True

    def _wait(self, silent_s: float) -> None:
        self.listener.wait(tuple(self._running), silent_s)

    def _track(self, message: Message) -> None:
        match message:
            case Collected(identities=identities) if self._left is not None:
                # What was asked for by identity is known by its node id from now on.
                known = {identity: test for test, identity in identities.items()}
                self._left = {known.get(test, test): None for test in self._left}
            case Collected(tests=tests) if self._left is None:
                self._left = dict.fromkeys(tests)
            case Opened():
                self._opened = True
            case Started(test=test):
                self._running[test] = message
            case ProfilesItself(test=test):
                self._running.pop(test, None)
                self._finish(test)
                self._apart[test] = self.workers.apart[test] = None
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


class Sessions(Struct):
    """What sessions have measured so far, by what tests are filed under.

    ``troubles`` says why a test has no result, ``stopped`` why there are fewer sessions than
    ``wanted``. ``collected`` are the tests that the first worker has collected. ``no_room`` are
    points of sweeps that do not fit, and never did.
    """

    wanted: int
    completed: int = 0
    measured: dict[str, list[Observation]] = {}
    troubles: dict[str, str] = {}
    stopped: str | None = None
    collected: Collected | None = None
    no_room: dict[str, str] = {}

    def good(self) -> dict[str, list[Observation]]:
        """Return the tests that had no trouble in any session."""
        return {t: seen for t, seen in self.measured.items() if t not in self.troubles}


@dataclass(slots=True)
class SessionListener(Listener):
    """Takes in what one session measures.

    ``progress`` is called with how many tests are over, and of how many. ``begin`` is called in the
    first session, before a test runs. ``complete`` adds to an observation what is known from
    elsewhere. ``alike``: what is compared exactly must be as in the first session.
    """

    found: Sessions
    number: int
    progress: Callable[[int, int | None], None]
    begin: Callable[[Collected], None] = lambda _: None
    complete: Callable[[Observation], Observation] = lambda observation: observation
    alike: bool = True
    word: str = "session"
    stop: str | None = None
    _collected: Collected | None = None
    _done: int = 0
    _reported: set[str] = field(default_factory=set)
    _refused: str | None = None

    def receive(self, message: Message) -> None:
        """Keep observations and troubles; report the progress."""
        match message:
            case Collected(tests=tests) if tests and self._collected is None:
                self._collect(message)
            case Reported():
                self._receive(message)
            case Finished():
                self._done += 1
                self._report_progress()
            case CollectionReported(report=report) if report.get("outcome") == "failed":
                why = f"{_last_line(report)}{_place(report)}"
                self._refused = f"{report['nodeid']} cannot be collected: {why}"
                self.stop = self._refused  # whatever options ask to run the rest even so
            case Refused(text=text):
                self._refused = self._refused or text
            case Broke(text=text):
                self._refused = self._refused or f"internal error of a worker\n{text}"
            case Stopped(text=text):
                why = f"a test or a plugin ended the session: {text or 'interrupted'}"
                self._refused = self._refused or why

    def worker_lost(self, loss: LostWorker) -> None:
        """Note the tests that a worker was running when it died or hung."""
        why = f"its worker {loss.text}; log: {loss.log}"
        for started in loss.tests:
            self._trouble(self._identity(started.test), why)
        if not loss.tests and not self._done:
            self._refused = self._refused or f"the worker {loss.text}; log: {loss.log}\n{loss.tail}"

    def close(self, left: Iterable[str], asked: Iterable[str] | None = None) -> None:
        """Note the tests that this session should have measured and did not.

        ``left`` are those that no worker came to run; ``asked`` those that were to be measured
        again, None for all that had no trouble.

        Raises:
            UsageError: it is the first session, and it could not be run.
        """
        if self._refused is not None and self.number == 1:
            raise UsageError(self._refused)
        if self._refused is not None:
            self.found.stopped = f"stopped in {self.word} {self.number} ({self._refused})"
            return
        good = self.found.good()
        for test in good if asked is None else asked:
            if test in good and test not in self._reported:
                self._trouble(test, "the test did not run again")
        for test in left:
            if self._is_measured(test):
                self._trouble(self._identity(test), "the test did not run")
        if self._collected and self._done < len(self._collected.tests):
            self._done = len(self._collected.tests)
            self._report_progress()

    def _collect(self, message: Collected) -> None:
        if self.number == 1:
            self.begin(message)
            self.found.collected = message
        self._collected = message
        self._report_progress()

    def _is_measured(self, test: str) -> bool:
        measured = self._collected.measured if self._collected else None
        return measured is None or test in measured

    def _receive(self, message: Reported) -> None:
        test, failed = self._identity(message.test), message.report.get("outcome") == "failed"
        trouble = _last_line(message.report) if failed else None
        if message.observed is not None:
            self._reported.add(test)
            try:
                observation = decode(Observation, message.observed, key=test)
                if test != message.test:
                    observation = replace(observation, node_id=message.test)
                observation = self.complete(observation)
            except DecodeError as error:
                self._trouble(test, str(error))
                return
            if observation.out_of_memory is not None and test not in self.found.measured:
                self.found.no_room.setdefault(test, f"out of memory: {observation.out_of_memory}")
                return
            seen = self.found.measured.setdefault(test, [])
            trouble = trouble or _flaw(observation)
            if self.alike:
                trouble = trouble or _difference(observation, seen)
            seen.append(observation)
        if trouble is not None and test in self.found.measured:
            self._trouble(test, trouble)

    def _identity(self, test: str) -> str:
        """Return what a test is filed under: versions with other targets have other node ids."""
        return self._collected.identities.get(test, test) if self._collected else test

    def _trouble(self, test: str, why: str) -> None:
        self.found.troubles.setdefault(test, f"{self.word} {self.number}: {why}")

    def _report_progress(self) -> None:
        self.progress(self._done, len(self._collected.tests) if self._collected else None)


def _flaw(observation: Observation) -> str | None:
    """Return why an observation can be no baseline; None if it can."""
    if observation.problems:
        return observation.problems[0]
    if observation.out_of_memory is not None:
        return f"out of memory: {observation.out_of_memory}"
    for verdict in judge_test(observation, None):
        if verdict.outcome is not Outcome.NO_BASELINE:
            return sentence(verdict)
    return None


def _difference(observation: Observation, seen: list[Observation]) -> str | None:
    """Return what differs from the first session and must not; None for nothing.

    What is compared exactly would fail against itself, and another configuration is another test.
    """
    if not seen:
        return None
    first = TestBaseline(Accepted(""), baselines_of(seen[:1]), seen[0].setting)
    for verdict in judge_test(observation, first):
        by_ratio = verdict.metric.compared_by_ratio and verdict.change is not None
        if not by_ratio and verdict.outcome is not Outcome.WITHIN:
            return f"not as in session 1: {sentence(verdict)}"
    return None


def _last_line(report: dict[str, object]) -> str:
    """Return what a serialised report says of its failure."""
    representation = report.get("longrepr")
    if isinstance(representation, dict):
        crash = representation.get("reprcrash")
        if isinstance(crash, dict) and crash.get("message"):
            return str(crash["message"]).splitlines()[0]
    lines = str(representation or "it failed").strip().splitlines()
    return lines[-1].removeprefix("E  ").strip()  # pytest's mark of an error's own lines


#: A line of code in a traceback, as Python and as pytest print it.
_PLACE: Final = re.compile(r'File "([^"]+)", line (\d+)|^(\S+\.py):(\d+): ', re.MULTILINE)


def _place(report: dict[str, object]) -> str:
    """Return where a module could not be imported, in parentheses; "" where that is not told."""
    places = list(_PLACE.finditer(str(report.get("longrepr"))))
    if not places:
        return ""
    file, line, short, number = places[-1].groups()
    return f" ({Path(file or short).name}:{line or number})"


def baselines_of(seen: list[Observation], run: str = "") -> dict[str, MetricBaseline]:
    """Return what sessions of one run are stored as: gated metrics that all of them recorded."""
    first = seen[0]
    return {
        name: MetricBaseline(
            observed.metric,
            tuple(
                session_of(observation.metrics[name], observation.metrics[name].samples, run)
                for observation in seen
            ),
        )
        for name, observed in first.metrics.items()
        if observed.gated and all(name in observation.metrics for observation in seen)
    }
