"""Receives the first pass: judges, holds back what is in question, and emits the reports.

This session's plugins see a worker's session as if its tests ran here.
"""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest._code.code import TerminalRepr
from _pytest.reports import CollectErrorRepr

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError, TtnnPerfError
from pytest_ttnn_perf.plugin.reports import FAILED, SHOWN, fail_report, live_logs, place_of
from pytest_ttnn_perf.records.messages import (
    PHASES,
    Broke,
    Collected,
    CollectionReported,
    Finished,
    Passed,
    Refused,
    Reported,
    Started,
    Stopped,
    Warned,
)
from pytest_ttnn_perf.report.layout import NARROWEST, Style, printed
from pytest_ttnn_perf.run.confirm import suspicion
from pytest_ttnn_perf.run.workers import Listener

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from _pytest._io import TerminalWriter

    from pytest_ttnn_perf.plugin.reports import Place, TestCollection
    from pytest_ttnn_perf.records.messages import Message
    from pytest_ttnn_perf.report.live import LiveLine
    from pytest_ttnn_perf.run.gate_run import GateRun
    from pytest_ttnn_perf.run.workers import LostWorker


_INTERRUPTED: Final = re.compile(r"KeyboardInterrupt in ([^\0]+):(\d{1,9})")


class TextRepr(TerminalRepr):
    """A failure of which only the text is left. Not a bare string: pytest cuts those to a line."""

    def __init__(self, text: str) -> None:
        self.text = text

    def toterminal(self, tw: TerminalWriter) -> None:
        """Print it."""
        tw.line(self.text)


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
    reports = [_passed_report(test, location, {}, phase) for phase in owed]
    fail_report(reports[0], shown)
    return reports


def _passed_report(
    test: str, location: Place, keywords: dict[str, Any], phase: str
) -> pytest.TestReport:
    return pytest.TestReport(test, location, keywords, "passed", None, phase)  # type: ignore[arg-type]


def interruption(text: str) -> KeyboardInterrupt | None:
    """Return the interruption that a worker told of, as if raised in the same line of code here.

    pytest says where it was interrupted, and that is in a test. None: it told of something else.
    """
    found = _INTERRUPTED.fullmatch(text)
    try:
        if found is not None:
            code = compile("raise KeyboardInterrupt", found[1], "exec")
            exec(code.replace(co_firstlineno=int(found[2])), {})
    except KeyboardInterrupt as error:
        return error
    return KeyboardInterrupt() if text in {"", "KeyboardInterrupt"} else None


def live_line(config: pytest.Config) -> LiveLine | None:
    """Return the line of a terminal that shows progress; None where others write there too."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    beside = config.getoption("capture") != "fd" or live_logs(config) is not None
    if reporter is None or not reporter.isatty or beside or os.environ.get("CI"):
        return None
    from pytest_ttnn_perf.report.live import LiveLine

    return LiveLine(config.get_terminal_writer()._file)  # noqa: SLF001 (it has no other name)


def style_of(reporter: pytest.TerminalReporter) -> Style:
    """Return how wide pytest's own lines are, and whether they have colours."""
    writer = reporter.config.get_terminal_writer()
    width = max(writer.fullwidth, NARROWEST)
    return Style(width, colour=writer.hasmarkup, wrap=bool(reporter.isatty))


@dataclass(frozen=True, slots=True)
class Emitter:
    """Calls the hooks that pytest would call if the tests ran here."""

    session: pytest.Session
    #: Where progress is shown on a terminal; None in a log.
    live: LiveLine | None = None

    @property
    def hook(self) -> Any:
        """The hooks of all plugins."""
        return self.session.config.hook

    @property
    def terminal(self) -> Any:
        """The terminal reporter; None without one."""
        return self.session.config.pluginmanager.get_plugin("terminalreporter")

    def print_line(self, text: str) -> None:
        """Print a line between the results."""
        reporter = self.terminal
        if reporter is not None and reporter.verbosity > -2:
            self.clear()
            self._end_line(reporter)
            for line in printed(text.split("\n"), style_of(reporter)):
                reporter.write_line(line)

    def progress(self, text: str, milestone: bool = True) -> None:  # noqa: FBT001, FBT002 (as of tickers)
        """Say how far it is: in a line that is rewritten; in a log, a line per milestone."""
        reporter = self.terminal
        if self.live is None:
            if milestone:
                self.print_line(text)
        elif reporter is not None and reporter.verbosity > -2:
            self._end_line(reporter)
            self.live.show(text)

    def clear(self) -> None:
        """Leave nothing of the progress."""
        if self.live is not None:
            self.live.clear()

    def _end_line(self, reporter: Any) -> None:
        reporter.ensure_newline()
        writer = self.session.config.get_terminal_writer()
        if writer.width_of_current_line:  # letters that no file name stands before
            writer.line()

    def name_file_of(self, test: str) -> None:
        """Start a line with the test's file, where results are single letters."""
        reporter = self.terminal
        if reporter is not None and reporter.showfspath and not reporter.showlongtestinfo:
            reporter.write_fspath_result(test, "")

    def show_collection(self, message: Collected) -> None:
        """Count the tests, and show what the terminal shows once it has seen them."""
        self.session.testscollected = len(message.tests)
        self._update_cache(message)
        if message.deselected:
            items = [SimpleNamespace(nodeid=test, name=test) for test in message.deselected]
            self.hook.pytest_deselected(items=items)
        reporter = self.terminal
        if reporter is None:
            return
        if hasattr(reporter, "tests_count"):  # of pytest-sugar, for its percentages
            reporter.tests_count = len(message.tests)
        # It counts the items it sees, and those are in another process.
        reporter._numcollected = len(message.tests) + len(message.deselected)  # noqa: SLF001
        reporter.report_collect(final=True)
        for line in message.lines:
            reporter.write_line(line)

    def _update_cache(self, message: Collected) -> None:
        """Give the cache plugin, which looks at items, what --nf and --lf need next time."""
        find = self.session.config.pluginmanager.get_plugin
        known, failed = find("nfplugin"), find("lfplugin")
        if known is not None:
            known.cached_nodeids.update(map(_key, message.tests))
        if failed is not None:
            tests = dict.fromkeys([*message.tests, *message.deselected])
            for name in [str(name) for name in failed.lastfailed if str(name) not in tests]:
                # Of a file or class that can be collected again, all is to be run next time.
                inside = [
                    _collect_report(t) for t in tests if t.startswith((f"{name}::", f"{name}/"))
                ]
                if inside:
                    failed.pytest_collectreport(report=_collect_report(name, inside))

    def report(self, data: dict[str, Any]) -> Any:
        """Return the report that a worker serialised, with tuples where JSON has only lists.

        Raises:
            DecodeError: it is no report.
        """
        try:
            return self._report(data)
        except (AttributeError, KeyError, TypeError, ValueError) as cause:
            raise DecodeError((), "a report of pytest", repr(data)[:80]) from cause

    def _report(self, data: dict[str, Any]) -> Any:
        config, shown = self.session.config, data.pop(SHOWN, False)
        report = self.hook.pytest_report_from_serializable(config=config, data=data)
        if shown:
            kind = TextRepr if isinstance(report, pytest.TestReport) else CollectErrorRepr
            report.longrepr = kind(report.longrepr)
        for name in ("location", "longrepr"):
            if isinstance(getattr(report, name, None), list):
                setattr(report, name, tuple(getattr(report, name)))
        for name in ("sections", "user_properties"):
            setattr(report, name, [tuple(pair) for pair in getattr(report, name, ())])
        return report

    def internal_error(self, text: str) -> None:
        """Show an internal error of a worker's pytest, as pytest shows its own."""
        try:
            raise RuntimeError(text)
        except RuntimeError:
            error = pytest.ExceptionInfo.from_current()
        self.hook.pytest_internalerror(excrepr=TextRepr(text), excinfo=error)

    def record_warning(self, message: Warned) -> None:
        """Record a warning; its class is in another process, its name is what is shown."""
        category = type(message.category, (Warning,), {"__module__": "builtins"})
        warning = warnings.WarningMessage(
            category(message.text), category, message.filename, message.line
        )
        self.hook.pytest_warning_recorded.call_historic(
            kwargs={
                "warning_message": warning,
                "when": message.when,
                "nodeid": message.test,
                "location": None if message.location is None else tuple(message.location),
            }
        )


def _collect_report(name: str, inside: list[Any] | None = None) -> pytest.CollectReport:
    """Return a report that stands for what was collected in another process."""
    return pytest.CollectReport(name, "passed", None, inside or [])


def _key(test: str) -> Any:
    """Return a test's id as this pytest keeps it: newer ones do so in a class of its own."""
    return getattr(_collect_report(test), "id", test)


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
    #: The test whose phase passed last, and the members of a report that says so.
    _passing: tuple[str, dict[str, Any]] = ("", {})

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

    def receive(self, message: Message) -> None:
        """Take in one message."""
        self.emitter.clear()
        hook = self.emitter.hook
        match message:
            case Started(test=test, location=location):
                self._locations[test], self._phases[test] = tuple(location), []
                hook.pytest_runtest_logstart(nodeid=test, location=tuple(location))
            case Passed():
                self._receive_passed(message)
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
            self.gate.record_lost(test, "told no result of it", place_of(report.location))
        elif report.failed and report.when == "teardown":
            self.gate.withdraw(test)
        self._emit(report)

    def _receive_passed(self, message: Passed) -> None:
        test, phase = message.test, message.phase
        if message.keywords is not None:
            location = self._locations.get(test) or location_of(test)
            keywords = dict.fromkeys(message.keywords, 1)
            self._passing = test, vars(_passed_report(test, location, keywords, phase))
        of_test, members = self._passing
        if of_test != test:
            raise DecodeError((), "the keywords of a test", repr(message)[:80])
        report = pytest.TestReport.__new__(pytest.TestReport)
        vars(report).update(members)
        report.when = phase  # type: ignore[assignment]
        report.duration, report.start, report.stop = message.duration, message.start, message.stop
        report.sections, report.user_properties = [], []
        self._phases.setdefault(test, []).append(phase)
        self._emit(report)

    def _judge(self, report: pytest.TestReport, observed: dict[str, object]) -> None:
        test = report.nodeid
        self._held.pop(test, None)  # a test that is run again counts as it ends
        try:
            judged = self.gate.judge(test, observed)
        except TtnnPerfError as error:
            if isinstance(error, DecodeError):
                why = f"told a result that cannot be read: {error}"
                self.gate.record_lost(test, why, place_of(report.location))
            if not report.failed:
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
        if text is not None and not report.failed:
            fail_report(report, text)

    def _emit(self, report: pytest.TestReport) -> None:
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
