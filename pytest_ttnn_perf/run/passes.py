"""A pass over some tests in fresh processes: as many workers, one after another, as it takes."""

from __future__ import annotations

import contextlib
import time
from dataclasses import field
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError, TtnnPerfError
from pytest_ttnn_perf.processes.worker import LostWorker, last_words
from pytest_ttnn_perf.records.messages import (
    Broke,
    Collected,
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.processes.worker import Ending, WorkerProcess
    from pytest_ttnn_perf.records.messages import Message
    from pytest_ttnn_perf.run.workers import WorkerLauncher


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


@dataclass(slots=True)
class Pass:
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
    _apart: dict[str, None] = field(default_factory=dict)
    _running: dict[str, Started] = field(default_factory=dict)
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
