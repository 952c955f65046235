"""The orchestrator: the user's pytest, which runs no test itself.

It starts workers, receives their messages, judges, and lets every other plugin see one ordinary
session, as pytest-xdist's controller does. It does not collect: in many projects that opens the
device.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest.reports import CollectErrorRepr

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import DecodeError, TtnnPerfError
from pytest_ttnn_perf.core.options import option_of
from pytest_ttnn_perf.core.settings import Observe
from pytest_ttnn_perf.core.text import inert
from pytest_ttnn_perf.gate.confirm import suspects
from pytest_ttnn_perf.machine.chips import ChipWatch
from pytest_ttnn_perf.plugin.activation import distribution_of, leave_undistributed
from pytest_ttnn_perf.plugin.emit import (
    fail_report,
    identities_among,
    live_logs,
    place_in_code,
    report_run,
    style_of,
)
from pytest_ttnn_perf.plugin.preflight import check_chips, check_untouched, lease
from pytest_ttnn_perf.plugin.settings import is_measured
from pytest_ttnn_perf.plugin.wire import IDENTITY, OBSERVATION, PHASES, Message
from pytest_ttnn_perf.plugin.workers import (
    Pass,
    Workers,
    explain_host,
    measure_in_turns,
    run_confirm_passes,
    run_device_pass,
)
from pytest_ttnn_perf.report.run import RunReport, RunResult, heading
from pytest_ttnn_perf.report.tables import Line, Style, printed
from pytest_ttnn_perf.report.terminal import shift_line, suspicion_line

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from pytest_ttnn_perf.core.settings import ProfilerKind
    from pytest_ttnn_perf.plugin.emit import TestCollection
    from pytest_ttnn_perf.report.tables import Block


class Relay:
    """Emits the reports of workers; those of suspects after their confirm passes.

    This session's plugins see a worker's session as if its tests ran here.
    """

    def __init__(self, session: pytest.Session, run: RunReport, collection: TestCollection) -> None:
        self.session, self.run, self.gate, self.collection = session, run, run.gate, collection
        self._hook: Any = session.config.hook
        #: The terminal reporter; None without one.
        self._terminal: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        #: What ended the workers before their time, to be raised at the end of this session's loop.
        self.ended_by: BaseException | None = None
        self._collected = False
        self._measured: frozenset[str] | None = None
        #: The reports of suspects.
        self.held: dict[str, list[pytest.TestReport]] = {}
        self._phases: dict[str, list[str]] = {}
        self._locations: dict[str, Any] = {}
        #: Tests that were stopped to be run apart, and the phases of theirs that were emitted.
        self._stopped: dict[str, tuple[str, ...]] = {}

    @property
    def stop(self) -> str | None:
        why = self.session.shouldfail or self.session.shouldstop
        return str(why) if why else None

    def receive(self, message: Message) -> None:
        """Take in one message of a worker, or how it fares.

        Raises:
            DecodeError: it carries a report that is none.
        """
        handle = getattr(self, f"_on_{message.kind}", None)
        if handle is not None:
            handle(message)

    def _on_started(self, message: Message) -> None:
        test, location = message.test, message["location"]
        self._locations[test], self._phases[test] = location, []
        if test not in self._stopped:
            self._hook.pytest_runtest_logstart(nodeid=test, location=location)

    def _on_finished(self, message: Message) -> None:
        if message["apart"]:
            self._stopped[message.test] = tuple(self._phases.get(message.test, ()))
        elif message.test not in self.held:
            self._hook.pytest_runtest_logfinish(nodeid=message.test, location=message["location"])

    def _on_lost(self, loss: Message) -> None:
        why, tail = loss["text"], loss["tail"]
        for test in loss["tests"]:
            self._lose(test, why, tail)
        if not self._collected and self.ended_by is None:
            text = f"ttnn-perf: the worker {why}, before it had collected the tests\n{tail}"
            code = pytest.ExitCode.INTERNAL_ERROR
            self.ended_by = pytest.exit.Exception(text, returncode=code)
        elif not loss["tests"]:
            self.print_line(f"ttnn-perf: a worker {why}")
            self.session.testsfailed += 1  # no test is to blame, and yet the run is not fine

    def give_up(self, tests: Iterable[str], why: str | None = None) -> None:
        """Fail tests that no worker came to run, unless that was asked."""
        if self.stop is None and self.ended_by is None:
            for test in tests:
                self._lose(test, why or "ended before this test could run", "")

    def release(self) -> None:
        while self.held:
            test = next(iter(self.held))
            judged = self.gate.judged(test)
            text = self.run.failure(judged) if judged else None
            self._name_file_of(test)
            for report in self.held.pop(test):
                if text is not None and report.when == "call" and report.passed:
                    fail_report(report, text, self.session.config)
                self._emit(report)
            location = self._locations[test]
            self._hook.pytest_runtest_logfinish(nodeid=test, location=location)

    def close(self) -> None:
        if self.ended_by is not None:
            raise self.ended_by
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def _on_collected(self, message: Message) -> None:
        if self._collected:
            return  # of a later worker
        self._collected = True
        self._show_collection(message)
        if message["measured"] is None:  # distributed, nobody tells what was deselected
            self.gate.begin(message["tests"])
        else:
            self._measured = frozenset(message["measured"])
            coverage = self.collection.coverage(message["tests"])
            self.gate.begin(message["measured"], coverage, message["identities"])

    def _on_reported(self, message: Message) -> None:
        if message.of_collection and self._collected:
            return  # of a later worker
        test, observed = message.test, message.observed
        phase, identity = message["report"].get("when"), message["report"].get(IDENTITY)
        report = self._report_of(message["report"])
        if message.of_collection:
            self._hook.pytest_collectreport(report=report)
            return
        self._locations.setdefault(test, report.location)
        if hasattr(report, "context"):  # of a subtest: the test itself goes on
            self._emit(report)
            return
        self._phases.setdefault(test, []).append(str(phase))
        if isinstance(identity, str):
            self.gate.identify(test, identity)
        if observed is not None:
            self._judge(report, observed)
        elif report.failed and self.gate.judged(test) is None and self._is_measured(test):
            self.gate.record_lost(test, "reported no result for it", place_in_code(report.location))
        elif report.passed and phase == "call" and self._owes(test):
            fail_silent(report, self.run)
        elif report.failed and report.when == "teardown":
            self.gate.withdraw(test)
        self._emit(report)

    def _judge(self, report: pytest.TestReport, observed: dict[str, object]) -> None:
        test = report.nodeid
        self.held.pop(test, None)  # a test that is run again counts as it ends
        try:
            judged = self.gate.judge(test, observed)
        except TtnnPerfError as error:
            if isinstance(error, DecodeError):
                why = f"reported a result that cannot be read: {error}"
                self.gate.record_lost(test, why, place_in_code(report.location))
            if report.passed or report.skipped:
                fail_report(report, f"NO_DATA: the test's observation could not be judged: {error}")
            return
        again, suspected = self.gate.in_question(test), suspects(judged)
        again |= self.gate.in_doubt(test, early=True)
        # A suspect waits for the others even if it is not measured again: all may have slowed.
        if report.passed and (again or suspected):
            self.held[test] = []
            if again and suspected:
                self.print_line(suspicion_line(judged.observation.test, suspected))
            return
        text = self.run.failure(judged)
        # Not one of pytest-rerunfailures, which is neither: the test goes on.
        if text is not None and (report.passed or report.skipped):
            fail_report(report, text, self.session.config)

    def _emit(self, report: pytest.TestReport) -> None:
        if report.passed and report.when in self._stopped.get(report.nodeid, ()):
            return  # its set-up was told before the test was stopped
        if report.nodeid in self.held:
            self.held[report.nodeid].append(report)
        else:
            if not hasattr(report, "context"):  # of a subtest
                # Others read them from the call, pytest's own JUnit report from the teardown.
                report.user_properties += self.run.junit_properties(report.nodeid)
            self._hook.pytest_runtest_logreport(report=report)

    def _is_measured(self, test: str) -> bool:
        if self._measured is None:  # distributed: only its baseline tells
            return self.gate.has_baseline(test)
        return test in self._measured or self._owes(test)

    def _owes(self, test: str) -> bool:
        """Return whether a test without a marker has measured before."""
        known = self._measured is None or test in self._measured
        by_helper = self.gate.settings.observe is Observe.GATE
        return by_helper and not known and self.gate.has_baseline(test)

    def _lose(self, test: str, why: str, tail: str) -> None:
        if self.gate.judged(test) is not None:  # it was taking the test down
            self.gate.withdraw(test)
        location = self._locations.get(test)
        if location is None:  # what its id alone says
            file, _, name = test.partition("::")
            location = file, None, name.replace("::", ".")
        if self.gate.judged(test) is None and self._is_measured(test):
            self.gate.record_lost(test, why, place_in_code(location))
        seen = self._phases.get(test)
        if seen is None:
            self._hook.pytest_runtest_logstart(nodeid=test, location=location)
        # The first phase without a report has failed; then the test is taken down, as others are.
        failed = next((phase for phase in PHASES if phase not in (seen or ())), "teardown")
        report = pytest.TestReport(test, location, {}, "passed", None, failed)  # type: ignore[arg-type]
        fail_report(report, f"its worker {why}" + (f"\n{tail}" if tail else ""))
        self._emit(report)
        if failed != "teardown":
            self._emit(pytest.TestReport(test, location, {}, "passed", None, "teardown"))
        if test not in self.held:
            self._hook.pytest_runtest_logfinish(nodeid=test, location=location)

    def _on_stopped(self, message: Message) -> None:
        if self.stop is not None or self.ended_by is not None:
            return
        text, code = message["text"], message["code"]
        if message["cause"] == "refused":
            self.ended_by = pytest.UsageError(text)
        elif message["cause"] == "broke":
            try:
                raise RuntimeError(text)
            except RuntimeError:
                error = pytest.ExceptionInfo.from_current()
            self._hook.pytest_internalerror(excrepr=text, excinfo=error)
            why = "ttnn-perf: internal error of a worker"
            code = pytest.ExitCode.INTERNAL_ERROR
            self.ended_by = pytest.exit.Exception(why, returncode=code)
        elif code is not None:
            self.ended_by = pytest.exit.Exception(text, returncode=code)
        else:
            self.ended_by = self.session.Interrupted(text)

    def print_line(self, text: str) -> None:
        reporter = self._terminal
        if reporter is None and self.session.config.getoption(option_of("script")):
            sys.stderr.write(f"{inert(text)}\n")  # a command, whose results alone are on stdout
        if reporter is not None and reporter.verbosity > -2:
            reporter.ensure_newline()
            writer = self.session.config.get_terminal_writer()
            if writer.width_of_current_line:  # letters that no file name stands before
                writer.line()
            for line in printed(text.split("\n"), style_of(reporter)):
                reporter.write_line(line)

    def _name_file_of(self, test: str) -> None:
        """Start a line with the test's file, where results are single letters."""
        reporter = self._terminal
        if reporter is not None and reporter.showfspath and not reporter.showlongtestinfo:
            reporter.write_fspath_result(test, "")

    def _show_collection(self, message: Message) -> None:
        tests, deselected = message["tests"], message["deselected"]
        self.session.testscollected = len(tests)
        self._forget_collected(tests)
        if deselected:
            items = [SimpleNamespace(nodeid=test, name=test) for test in deselected]
            self._hook.pytest_deselected(items=items)
        reporter = self._terminal
        if reporter is None:
            return
        if hasattr(reporter, "tests_count"):  # of pytest-sugar, for its percentages
            reporter.tests_count = len(tests)
        # It counts the items it sees, and those are in another process.
        reporter._numcollected = len(tests) + len(deselected)  # noqa: SLF001
        reporter.report_collect(final=True)

    def _forget_collected(self, tests: Sequence[str]) -> None:
        """Forget failures of files and classes that were collected again."""
        plugin = self.session.config.pluginmanager.get_plugin("lfplugin")
        failed = {} if plugin is None else plugin.lastfailed
        for name in [*failed]:
            if any(test.startswith((f"{name}::", f"{name}/")) for test in tests):
                del failed[name]

    def _report_of(self, data: dict[str, Any]) -> Any:
        """Return a worker's report, with tuples where JSON has only lists.

        Raises:
            DecodeError: it is no report.
        """
        config = self.session.config
        try:
            report = self._hook.pytest_report_from_serializable(config=config, data=data)
            if isinstance(report.longrepr, str) and "\n" in report.longrepr:
                # It was more than a text where it was made: no part of the short summary.
                report.longrepr = CollectErrorRepr(report.longrepr)
            for name in ("location", "longrepr"):
                if isinstance(getattr(report, name, None), list):
                    setattr(report, name, tuple(getattr(report, name)))
            for name in ("sections", "user_properties"):
                setattr(report, name, [tuple(pair) for pair in getattr(report, name, ())])
        except (AttributeError, KeyError, TypeError, ValueError) as cause:
            raise DecodeError((), "a report of pytest", repr(data)[:80]) from cause
        return report

    def _on_warned(self, message: Message) -> None:
        category = type(message["category"], (Warning,), {"__module__": "builtins"})
        warning = warnings.WarningMessage(
            category(message["text"]), category, message["filename"], message["line"]
        )
        known = {name: message[name] for name in ("when", "location")}
        self._hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": warning, "nodeid": message.test, **known}
        )


_UNMEASURED: Final = "the run stopped before it was measured again"


class Orchestrator:
    """Runs the passes of a gated run."""

    def __init__(self, run: RunReport, profiler: ProfilerKind, collection: TestCollection) -> None:
        self.run, self.profiler, self.collection = run, profiler, collection
        self.processes: str | None = None
        self.touched = ChipWatch()
        self.touched.watch()

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        self.processes = distribution_of(config.option)
        count = getattr(config.option, "numprocesses", None)
        try:
            check_chips(os.environ, processes=count if isinstance(count, int) else 0)
        except TtnnPerfError as error:
            raise pytest.UsageError(str(error)) from error
        if self.processes and self.run.gate.settings.required:
            # Distributed, pytest does not report what was collected.
            message = f"required is set, and with {self.processes} the collected tests are unknown"
            raise pytest.UsageError(f"{message}: leave out -n, or required")
        leave_undistributed(config.option)  # the workers distribute

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        lines = []
        if self.processes:
            lines.append(
                f"ttnn-perf: {self.processes}: wall times measured side by side are noisy; timed "
                "sections take turns, everything else runs beside them"
            )
        if config.pluginmanager.has_plugin("_cov"):
            lines.append("ttnn-perf: no coverage: it would slow down what is measured")
        return lines

    def pytest_collection(self) -> bool:
        return True

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        __tracebackhide__ = True
        try:
            self._run(session)
        except TtnnPerfError as error:
            raise pytest.UsageError(str(error)) from error
        return True

    def _run(self, session: pytest.Session) -> None:
        __tracebackhide__ = True
        relay = Relay(session, self.run, self.collection)
        check_untouched(self.touched, os.environ)
        print_line = relay.print_line
        settings = self.run.gate.settings
        try:
            with lease(settings, os.environ, lambda text: print_line(f"ttnn-perf: {text}")):
                self._pass_over(session, relay)
        except KeyboardInterrupt as interrupt:
            raise interrupt.with_traceback(None) from None  # where we waited tells nobody anything
        relay.release()
        relay.close()

    def _pass_over(self, session: pytest.Session, relay: Relay) -> None:
        config = session.config
        workers = Workers(
            self.run.gate.settings,
            arguments=lambda folder: _arguments(config, folder),
            cwd=config.invocation_params.dir,
            folder=self.run.gate.passes_folder,
            print_line=relay.print_line,
            profiler=self.profiler,
            shown=config.getoption("capture") != "fd" or live_logs(config) is not None,
        )
        if workers.has_device_pass:
            self._profile(workers)
        start_s = time.monotonic()
        try:
            with Pass(workers, workers.first_kind, None) as first:
                for message in first:
                    try:
                        relay.receive(message)
                    except DecodeError:  # what it carries is not what it should be
                        first.damaged = True
                    first.stop = relay.stop
            first_pass_s = time.monotonic() - start_s
            relay.give_up(
                first.left, first.stopped and f"was not started: one before it {first.stopped}"
            )
            if not (relay.stop or relay.ended_by or first.stopped):
                shifted = self.run.gate.assess_machine()
                if shifted is not None:
                    workers.print_line(f"ttnn-perf: {shift_line(shifted)}")
                held, words = [*relay.held], _words(config)
                tried = measure_in_turns(self.run.gate, held, workers, words)
                run_confirm_passes(self.run.gate, held, workers, first_pass_s=first_pass_s)
                left = [test for test in held if test not in tried]
                measure_in_turns(self.run.gate, left, workers, words)
                explain_host(self.run.gate, held, workers, words)
        finally:
            # Also after Ctrl-C: the record tells what was measured and what was not.
            for test in [*relay.held]:
                if self.run.gate.in_question(test):
                    self.run.gate.cannot_confirm(test, _UNMEASURED)

    def _profile(self, workers: Workers) -> None:
        """Make the device pass; end the run after an unusable device."""
        device = self.run.gate.device = run_device_pass(workers)
        if device.stopped is not None:
            for test in device.observations:
                self.run.gate.record_lost(test, f"was not started: {device.stopped}")
            raise pytest.exit.Exception(f"ttnn-perf: {device.stopped}", returncode=1)


def _words(config: pytest.Config) -> list[str]:
    return _without_history([str(word) for word in config.invocation_params.args])


def _arguments(config: pytest.Config, folder: Path) -> list[str]:
    words = _words(config)
    own: list[str] = []
    if config.pluginmanager.has_plugin("cacheprovider"):
        cache = folder / "cache"
        kept = os.path.expandvars(Path(config.getini("cache_dir")).expanduser())
        values = Path(config.rootpath, kept, "v")
        if values.is_dir():  # without them, --lf would not work in a worker
            shutil.copytree(values, cache / "v")
        own += ["-o", f"cache_dir={cache}"]
    if config.pluginmanager.has_plugin("_cov"):
        own.append("--no-cov")
    seed = getattr(config.option, "randomly_seed", None)  # of pytest-randomly: all use the same
    if seed is not None:
        own.append(f"--randomly-seed={seed}")
    for plugin in config.invocation_params.plugins or ():
        own += ["-p", plugin] if isinstance(plugin, str) else []  # an object stays where it is
    # Whatever follows a bare "--" is a file.
    end = words.index("--") if "--" in words else len(words)
    return ["-m", "pytest", *words[:end], *own, *words[end:]]


def _without_history(words: list[str]) -> list[str]:
    """Leave out the URL of a database: no worker needs its password."""
    option = option_of("history")
    while option in words:
        place = words.index(option)
        words = words[:place] + words[place + 2 :]
    return [word for word in words if not word.startswith(f"{option}=")]


#: Nothing failed by name, but the machine is slower as a whole.
EXIT_SHIFTED: Final = 6
#: A plugin that annotates failed tests, and these are failed tests like any other.
_ANNOTATES_FAILURES: Final = "pytest_github_actions_annotate_failures"


class RunSummary:
    """Heading, record and summary of a gated run."""

    def __init__(self, run: RunReport) -> None:
        self.run = run
        self.session: pytest.Session | None = None
        #: Whether the loop ended by itself: an exit code, which anyone can choose, does not tell.
        self.looped = False
        #: What there is to report once the session is over.
        self.result: RunResult | None = None

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        text = f"ttnn-perf: {heading(self.run.gate.context)}"
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        return list(printed([text], style_of(reporter) if reporter else Style()))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        result = yield
        self.looped = True
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.session = session
        with _show_errors(session):
            self._finish(session)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        if self.session is not None and self.result is not None:
            with _show_errors(self.session):
                self._summarise(self.result, terminalreporter, exitstatus)

    def _finish(self, session: pytest.Session) -> None:
        stopped = session.shouldstop or session.shouldfail or self.run.gate.device.stopped
        complete = self.looped and not stopped
        refused = session.exitstatus == pytest.ExitCode.USAGE_ERROR
        options = session.config.option
        looks = options.collectonly or getattr(options, "cacheshow", None)
        if refused or looks:
            result = self.run.abandon()
        else:
            result = self.run.finish(complete=complete)
            result.errors.extend(report_run(session.config, result.run))
            settings = result.context.settings
            if settings.html is not None or settings.history is not None:
                result = wings.history.run_finished(result)
        self.result = result
        if session.exitstatus == pytest.ExitCode.OK:
            shifted = result.shift_text()
            if result.errors or result.options.health.lost or not (complete or looks):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            elif shifted is not None:
                session.exitstatus = EXIT_SHIFTED
                _fail_run(session, "all tests slower", shifted)
            elif (idle := result.axes_text()) is not None:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
                _fail_run(session, "axis without effect", idle)

    def _summarise(
        self, result: RunResult, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        ran = exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, EXIT_SHIFTED}
        config = terminalreporter.config
        judged = bool(result.run.tests)
        if config.option.collectonly or not (ran or judged):
            return
        terminalreporter.ensure_newline()
        terminalreporter.section("ttnn-perf")
        style = style_of(terminalreporter)
        verbosity = config.option.verbose
        if not judged:
            why = self.run.gate.device.stopped or (
                "those that ran are not marked, call no helper that measures, or were skipped"
            )
            text = f"no test was gated: {why}"
            terminalreporter.write_line(inert(text), yellow=True)
        failed = [] if config.option.tbstyle == "no" else terminalreporter.stats.get("failed", ())
        told = frozenset(self.run.gate.identity(report.nodeid) for report in failed)
        lines: list[Block] = [*result.summary(told=told, verbosity=verbosity)]
        lines += [Line(f"not written: {error}", bad=True) for error in result.errors]
        lines += result.closing() if judged and verbosity >= 0 else ()
        if result.sent is not None and (result.sent.bad or verbosity >= 0):
            lines.append(result.sent)
        for text in printed(lines, style):
            terminalreporter.write_line(text)
        if not judged:
            return
        # Here every line stands by itself, whatever tests printed; -q, -s and -n change nothing.
        annotated = config.pluginmanager.has_plugin(_ANNOTATES_FAILURES)
        for text in result.annotations(failures=not annotated):
            terminalreporter.write_line(text)


@contextmanager
def _show_errors(session: pytest.Session) -> Iterator[None]:
    """Show an error of ours as pytest shows its own.

    Python would end with 1, which is the code of tests that failed.
    """
    try:
        yield
    except Exception:  # noqa: BLE001 (whatever it is, it is no verdict)
        error = pytest.ExceptionInfo.from_current()
        session.config.notify_exception(error, session.config.option)
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def _fail_run(session: pytest.Session, name: str, text: str) -> None:
    """Show a failure of the run as a failed case.

    Who reads JUnit or the last line of the terminal, and no exit code, must not see a pass. Those
    who count failed tests, or run them again, are left out: there is no such test.
    """
    manager = session.config.pluginmanager
    names = ("session", "terminalreporter", "lfplugin", "stepwiseplugin")
    left_out = [plugin for plugin in map(manager.get_plugin, names) if plugin is not None]
    reporters = manager.subset_hook_caller("pytest_runtest_logreport", remove_plugins=left_out)
    reporters(report=_failed_case(name, text))
    terminal = manager.get_plugin("terminalreporter")
    if terminal is not None:
        # The summary says the rest.
        case = _failed_case(name, text.splitlines()[0])
        terminal.stats.setdefault("failed", []).append(case)


def _failed_case(name: str, text: str) -> pytest.TestReport:
    location = ("ttnn-perf", None, name)
    report = pytest.TestReport(f"ttnn-perf::{name}", location, {}, "failed", None, "call")
    fail_report(report, text)
    return report


def fail_silent(report: pytest.TestReport, run: RunReport) -> None:
    """Fail a test that has a baseline and called no helper."""
    why = "saw no call of a helper that measures, and it has a baseline"
    judged = run.gate.record_lost(report.nodeid, why, place_in_code(report.location))
    text = run.failure(judged)
    if text is not None:
        fail_report(report, text)


class InlineJudge:
    """Judges the observations of this very process, without confirm passes."""

    def __init__(self, run: RunReport, collection: TestCollection) -> None:
        self.run, self.collection = run, collection

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Read the baselines: a broken one stops the run early."""
        if session.config.option.collectonly:
            return
        coverage = self.collection.coverage(item.nodeid for item in session.items)
        settings = self.run.gate.settings
        identities = identities_among(session.items) | self.collection.identities
        measured = [i.nodeid for i in session.items if is_measured(i, settings)]
        try:
            self.run.gate.begin(measured, coverage, identities)
        except TtnnPerfError as error:
            raise pytest.UsageError(str(error)) from error

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Judge a call report with an observation; a failed verdict fails it.

        Not raised in the call: an xfail would swallow it, and unittest hides its own failures
        from the call. Every later reader of the report sees an ordinary failed call.
        """
        report = yield
        observed = getattr(report, OBSERVATION, None)
        if observed is not None:
            self._judge(observed, report, item.config)
        elif report.when == "call" and report.passed and self._owes(item):
            fail_silent(report, self.run)
        elif report.when == "teardown" and report.failed:
            self.run.gate.withdraw(report.nodeid)
        if not hasattr(report, "context") and (report.when != "setup" or observed is not None):
            report.user_properties += self.run.junit_properties(report.nodeid)
        return report

    def _owes(self, item: pytest.Item) -> bool:
        gate = self.run.gate
        by_helper = gate.settings.observe is Observe.GATE
        return by_helper and not is_measured(item, gate.settings) and gate.has_baseline(item.nodeid)

    def _judge(
        self, observed: dict[str, object], report: pytest.TestReport, config: pytest.Config
    ) -> None:
        try:
            text = self.run.failure(self.run.gate.judge(report.nodeid, observed))
        except TtnnPerfError as error:
            text = f"NO_DATA: the test's observation could not be judged: {error}"
        if text is not None and not report.failed:
            fail_report(report, text, config)
