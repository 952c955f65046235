"""Receives the first pass: judges, holds back what is in question, and emits the reports.

This session's plugins see a worker's session as if its tests ran here.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError, TtnnPerfError
from pytest_ttnn_perf.plugin.emitter import Emitter, interruption, live_line
from pytest_ttnn_perf.plugin.reports import FAILED, fail_report, place_of
from pytest_ttnn_perf.records.messages import (
    PHASES,
    Broke,
    Collected,
    CollectionReported,
    Finished,
    ProfilesItself,
    Refused,
    Reported,
    Started,
    Stopped,
    Warned,
)
from pytest_ttnn_perf.run.confirm import suspicion
from pytest_ttnn_perf.run.passes import Listener

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ttnn_perf.plugin.reports import Place, TestCollection
    from pytest_ttnn_perf.processes.worker import LostWorker
    from pytest_ttnn_perf.records.messages import Message
    from pytest_ttnn_perf.run.gate_run import GateRun


def location_of(test: str) -> Place:
    """Return what can be told of a test's place by its id alone."""
    file, _, name = test.partition("::")
    words, bracket, parameters = name.partition("[")  # parameters may hold anything
    return file, None, words.replace("::", ".") + bracket + parameters


def lost_reports(
    test: str, location: Place, seen: Sequence[str], text: str, tail: str
) -> list[pytest.TestReport]:
    """Return the reports that a test still owes whose process is gone.

    The first phase without a report has failed; then the test is taken down, as others are.
    """
    missing = [phase for phase in PHASES if phase not in seen] or ["teardown"]
    shown = f"{text}\n{tail}" if tail else text
    owed = (missing[0], *([] if missing[0] == "teardown" else ["teardown"]))
    reports = [
        pytest.TestReport(test, location, {}, "passed", None, phase)  # type: ignore[arg-type]
        for phase in owed
    ]
    fail_report(reports[0], shown)
    return reports


def add_properties(report: pytest.TestReport, gate: GateRun) -> None:
    """Add the metrics of a judged test to its report, from which JUnit reports are made.

    To that of the call, which others read, and to that of the teardown, which pytest's own report
    takes them from.
    """
    if hasattr(report, "context"):  # of a subtest
        return
    report.user_properties += gate.junit_properties(report.nodeid)


@dataclass(slots=True)
class Relay(Listener):
    """Re-emits at once what passes or fails by itself; a suspect when its confirm passes end."""

    session: pytest.Session
    gate: GateRun
    collection: TestCollection
    #: What ended the workers before their time, to be raised at the end of this session's loop.
    ended_by: BaseException | None = None
    emitter: Emitter = field(init=False)
    _collected: bool = False
    _measured: frozenset[str] | None = None
    _held: dict[str, list[pytest.TestReport]] = field(default_factory=dict)
    _phases: dict[str, list[str]] = field(default_factory=dict)
    _locations: dict[str, Any] = field(default_factory=dict)
    #: Tests that were stopped to be run apart, and the phases of theirs that were emitted.
    _stopped: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.emitter = Emitter(self.session, live_line(self.session.config))

    @property
    def stop(self) -> str | None:
        """Why this session wants no more tests."""
        why = self.session.shouldfail or self.session.shouldstop
        return str(why) if why else None

    @property
    def held(self) -> tuple[str, ...]:
        """The tests whose result is not out yet."""
        return tuple(self._held)

    def wait(self, tests: Sequence[str], silent_s: float) -> None:
        """Show that tests are running."""
        self.emitter.waiting(tests, silent_s)

    def receive(self, message: Message) -> None:
        """Take in one message."""
        self.emitter.clear()
        hook = self.emitter.hook
        match message:
            case Started(test=test, location=location):
                self._locations[test], self._phases[test] = tuple(location), []
                if test not in self._stopped:
                    hook.pytest_runtest_logstart(nodeid=test, location=tuple(location))
            case ProfilesItself(test=test):
                self._stopped[test] = tuple(self._phases.get(test, ()))
            case Reported():
                self._receive(message)
            case Finished(test=test, location=location) if test not in self._held:
                hook.pytest_runtest_logfinish(nodeid=test, location=tuple(location))
            case Warned():
                self.emitter.record_warning(message)
            case Collected() | CollectionReported() if not self._collected:
                self._collect(message)
            case Refused() | Broke() | Stopped() if self.stop is None and self.ended_by is None:
                self.ended_by = self._ended_by(message)

    def worker_lost(self, loss: LostWorker) -> None:
        """Fail the tests that a worker was running when it died or hung."""
        why = f"{loss.text}; log: {loss.log}"
        for started in loss.tests:
            self._lose(started.test, why, loss.tail)
        if not self._collected and self.ended_by is None:
            text = f"ttnn-perf: the worker {why}, before it had collected the tests\n{loss.tail}"
            code = pytest.ExitCode.INTERNAL_ERROR
            self.ended_by = pytest.exit.Exception(text, returncode=code)
        elif not loss.tests:
            self.emitter.print_line(f"ttnn-perf: a worker {why}")
            self.session.testsfailed += 1  # no test is to blame, and yet the run is not fine

    def give_up(self, tests: Iterable[str], why: str | None = None) -> None:
        """Fail tests that were collected and that no worker came to run, unless that was asked."""
        if self.stop is None and self.ended_by is None:
            for test in tests:
                self._lose(test, why or "ended before this test could run", "")

    def release(self) -> None:
        """Emit what was held back, now that it is known how each test ended."""
        self.emitter.clear()
        # --stepwise goes on from the last failure that it sees: that must be the first there is.
        backwards = self.session.config.getoption("stepwise", default=False)
        while self._held:
            test = next(reversed(self._held) if backwards else iter(self._held))
            judged = self.gate.judged(test)
            text = self.gate.failure(judged) if judged else None
            self.emitter.name_file_of(test)
            for report in self._held.pop(test):
                if text is not None and report.when == "call" and report.passed:
                    fail_report(report, text)
                self._emit(report)
            location = self._locations[test]
            self.emitter.hook.pytest_runtest_logfinish(nodeid=test, location=location)

    def close(self) -> None:
        """End this session's loop as pytest's own would have ended."""
        if self.ended_by is not None:
            raise self.ended_by
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def _collect(self, message: Collected | CollectionReported) -> None:
        if isinstance(message, CollectionReported):
            report = self.emitter.report(message.report)
            self.emitter.hook.pytest_collectreport(report=report)
            return
        self._collected = True
        self.emitter.show_collection(message)
        if message.measured is None:  # distributed, nobody tells what was deselected
            self.gate.begin(message.tests)
        else:
            self._measured = frozenset(message.measured)
            coverage = self.collection.coverage(message.tests)
            self.gate.begin(message.measured, coverage, message.identities)
            self.gate.points = message.points

    def _receive(self, message: Reported) -> None:
        test, report = message.test, self.emitter.report(message.report)
        self._locations.setdefault(test, report.location)
        if hasattr(report, "context"):  # of a subtest: the test itself goes on
            self._emit(report)
            return
        self._phases.setdefault(test, []).append(message.phase)
        if message.identity is not None:
            self.gate.identify(test, message.identity)
        if message.observed is not None:
            self._judge(report, message.observed)
        elif report.failed and self.gate.judged(test) is None and self._is_measured(test):
            self.gate.record_lost(test, "reported no result for it", place_of(report.location))
        elif report.failed and report.when == "teardown":
            self.gate.withdraw(test)
        self._emit(report)

    def _judge(self, report: pytest.TestReport, observed: dict[str, object]) -> None:
        test = report.nodeid
        self._held.pop(test, None)  # a test that is run again counts as it ends
        try:
            judged = self.gate.judge(test, observed)
        except TtnnPerfError as error:
            if isinstance(error, DecodeError):
                why = f"reported a result that cannot be read: {error}"
                self.gate.record_lost(test, why, place_of(report.location))
            if report.passed or report.skipped:
                fail_report(report, f"NO_DATA: the test's observation could not be judged: {error}")
            return
        again, suspected = self.gate.in_question(test), suspicion(judged)
        # A suspect waits for the others even if it is not measured again: all may have slowed.
        if report.passed and (again or suspected is not None):
            self._held[test] = []
            if again and suspected is not None:
                self.emitter.progress(suspected)
            return
        text = self.gate.failure(judged)
        # Not one of pytest-rerunfailures, which is neither: the test goes on.
        if text is not None and (report.passed or report.skipped):
            fail_report(report, text)

    def _emit(self, report: pytest.TestReport) -> None:
        if report.passed and report.when in self._stopped.get(report.nodeid, ()):
            return  # its set-up was told before the test was stopped
        if report.nodeid in self._held:
            self._held[report.nodeid].append(report)
        else:
            add_properties(report, self.gate)
            self.emitter.hook.pytest_runtest_logreport(report=report)

    def _is_measured(self, test: str) -> bool:
        if self._measured is None:  # distributed: only its baseline tells
            return self.gate.has_baseline(test)
        return test in self._measured

    def _lose(self, test: str, why: str, tail: str) -> None:
        if self.gate.judged(test) is not None:  # it was taking the test down
            self.gate.withdraw(test)
        location = self._locations.get(test, location_of(test))
        if self.gate.judged(test) is None and self._is_measured(test):
            self.gate.record_lost(test, why, place_of(location))
        hook, seen = self.emitter.hook, self._phases.get(test)
        if seen is None:
            hook.pytest_runtest_logstart(nodeid=test, location=location)
        for report in lost_reports(test, location, seen or (), f"its worker {why}", tail):
            self._emit(report)
        if test not in self._held:
            hook.pytest_runtest_logfinish(nodeid=test, location=location)

    def _ended_by(self, message: Refused | Broke | Stopped) -> BaseException:
        match message:
            case Refused(text=text):
                return pytest.UsageError(text)
            case Broke(text=text):
                self.emitter.internal_error(text)
                why = "ttnn-perf: internal error of a worker"
                return pytest.exit.Exception(why, returncode=pytest.ExitCode.INTERNAL_ERROR)
            case Stopped(text=text, code=code) if code is not None:
                return pytest.exit.Exception(text, returncode=code)
            case Stopped(text=text) if text.startswith(FAILED):
                self.session.shouldfail = text.removeprefix(FAILED)
                return self.session.Failed(self.session.shouldfail)
        return interruption(message.text) or self.session.Interrupted(message.text)
