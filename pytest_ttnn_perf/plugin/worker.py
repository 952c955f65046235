"""The worker: runs tests, attaches observations, sends the session on."""

from __future__ import annotations

import copy
import inspect
import os
import sys
import threading
from contextlib import nullcontext, suppress
from pathlib import Path
from time import perf_counter_ns, time
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest.config import create_terminal_writer
from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.assignment import PassKind
from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.errors import RuleError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.observation import End, EndKind, Observation
from pytest_ttnn_perf.core.settings import Observe, ProfilerKind
from pytest_ttnn_perf.core.text import text_of
from pytest_ttnn_perf.machine.environment import on_this_host
from pytest_ttnn_perf.machine.processes import Interrupts, show_stacks_on_request
from pytest_ttnn_perf.machine.ttnn import error_text
from pytest_ttnn_perf.measure.timing import Stopwatch, turn_in
from pytest_ttnn_perf.plugin import OBSERVER, OUT_OF_MEMORY, observer_for
from pytest_ttnn_perf.plugin.activation import leave_undistributed
from pytest_ttnn_perf.plugin.emit import (
    identities_among,
    live_logs,
    place_in_code,
    with_hardware,
)
from pytest_ttnn_perf.plugin.settings import (
    NAME,
    is_marked,
    is_measured,
    is_parametrised,
    settings_of,
    test_settings,
)
from pytest_ttnn_perf.plugin.wire import APART, IDENTITY, OBSERVATION, PHASES

if TYPE_CHECKING:
    import warnings
    from collections.abc import Collection, Generator, Sequence

    from pytest_ttnn_perf.core.assignment import Assignment
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.measure.observer import Observer
    from pytest_ttnn_perf.plugin.wire import OrchestratorLink


#: What needs no variables in the environment of the process.
_UNPROFILED: Final = frozenset({ProfilerKind.OFF, ProfilerKind.REALTIME})
_NOTHING: Final = nullcontext()


class Worker:
    """Measures the tests of one process; it judges nothing.

    ``profiler`` is the one that this process has been given variables for. ``own`` is the folder of
    one that has a share of the assigned tests.
    """

    def __init__(
        self,
        settings: Settings,
        profiler: ProfilerKind,
        assignment: Assignment | None = None,
        stream: SessionForwarder | None = None,
        own: Path | None = None,
    ) -> None:
        from pytest_ttnn_perf.measure.helpers import HelperFinder, SelfProfilingWatch
        from pytest_ttnn_perf.measure.instruments import instruments_for

        opened = stream.opened if stream else None
        instruments = instruments_for(settings, profiler, assignment, own=own, opened=opened)
        self.settings, self.instruments = settings, instruments
        #: Held from the end of a measured call until its report is sent.
        self.interrupts = stream.interrupts if stream else None
        #: Where several processes measure at once: the turn that each timed section waits for.
        self.turn = turn_in(assignment.folder) if assignment is not None and own else None
        versions = assignment.versions if assignment else None
        self.receipts = versions is not None and versions.receipts
        #: Notes calls in a pass that explains the host; None in any other.
        self.calls: Any = None
        if assignment is not None and versions and assignment.kind is PassKind.HOST:
            self.calls = Stopwatch.recorder = wings.host.CallRecorder(versions.own)
        self.began_s = 0.0
        self.running: pytest.Item | None = None
        #: The error of a subtest of the running test, whose own call passes even so.
        self.failed_subtest: str | None = None
        #: Observes the helpers that tests call; None where that is not wanted.
        self.helpers = HelperFinder() if settings.observe is not Observe.OFF else None
        #: The tests that are known to start a profiled process of their own.
        self.apart: Collection[str] = ()
        if assignment is not None and assignment.alone:  # what it opens is its own affair
            self.watch = SelfProfilingWatch(lambda: False)
            return
        self.apart = frozenset(assignment.apart) if assignment else ()
        self.watch = SelfProfilingWatch(
            lambda: instruments.has_opened_device,
            profiled=profiler not in _UNPROFILED,
            beside_others=own is not None,
            elsewhere=assignment is not None,
        )

    def equip(self, observer: Observer) -> None:
        observer.instruments, observer.began_s = self.instruments, self.began_s
        observer.turn = self.turn or observer.turn
        if self.receipts:  # it is recorded how times are taken
            observer.conditions = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if is_measured(item, self.settings):
                test_settings(item, self.settings)
        parametrised = list(filter(is_parametrised, items))
        if parametrised:
            from pytest_ttnn_perf.plugin.identity import refuse_twins

            refuse_twins(parametrised, self.settings)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Start anew: a rerun must not add to earlier observations."""
        __tracebackhide__ = True
        watch = self.watch
        watch.stopped = False
        if item.nodeid in self.apart and watch.can_stop and watch.must_not_profile:
            watch.stop()  # another worker is going to run it
        self.began_s = time()
        keys: tuple[pytest.StashKey[Any], ...] = (OBSERVER, OUT_OF_MEMORY)
        for key in keys:
            if key in item.stash:
                del item.stash[key]
        self.instruments.begin(item.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        if self.helpers is not None:
            self.helpers.undo()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Time tests that measure nothing themselves. Innermost: only the test is timed."""
        __tracebackhide__ = True
        observer = self._observer(item)
        self.running, self.failed_subtest = item, None
        # A test that nobody asked for shows only while it runs whether it measures.
        candidate = observer is not None and not is_measured(item, self.settings)
        whole = observer is not None and not candidate and not _uses_fixture(item)
        began_s = time()
        try:
            with observer.turn if observer and whole else _NOTHING:
                if observer is not None:
                    self.watch.begin(observer)
                    if self.helpers is not None:
                        self.helpers.begin(observer)
                start = perf_counter_ns()
                result = yield
                elapsed_ns = perf_counter_ns() - start
                if observer and self.interrupts:
                    self.interrupts.hold()
        except BaseException:
            # What a test measured before it raised, as by an assertion of a helper, is kept.
            with suppress(TtnnPerfError):
                self._end_observing(observer, began_s)
            self._forget_unrecognised(item, observer if candidate else None)
            raise
        finally:
            self.running = None
        self._end_observing(observer, began_s)
        self._forget_unrecognised(item, observer if candidate else None)
        if observer and whole and observer.told_nothing:
            gated = is_marked(item) or self.settings.gate_call_time
            observer.whole_call(elapsed_ns, gated=gated)
        return result

    def _end_observing(self, observer: Observer | None, began_s: float) -> None:
        if observer is None:
            return
        self.watch.end()
        try:
            if observer.profiles_itself:
                observer.attach_reports_since(began_s)
        finally:
            if self.helpers is not None:
                self.helpers.end()

    def _forget_unrecognised(self, item: pytest.Item, observer: Observer | None) -> None:
        if observer is not None and not (observer.recognised or observer.profiles_itself):
            del item.stash[OBSERVER]

    def _observer(self, item: pytest.Item) -> Observer | None:
        """Make the observer beforehand: a test that raises leaves a record."""
        if not is_measured(item, self.settings):
            return observer_for(item) if self.settings.observe is Observe.GATE else None
        function = getattr(item, "obj", None)
        is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        if not is_async or _uses_fixture(item):
            return observer_for(item)
        if not is_marked(item):
            return None  # taken in with all others: it runs, unmeasured
        observer_for(item)
        return pytest.fail(
            f"ttnn-perf cannot measure the async test {item.nodeid} as a whole: the event loop "
            "would be part of its time; use `await ttnn_perf.measure_async(...)` in it",
            pytrace=False,
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the observation of a test to its call report.

        Not to those of its subtests, which are made while it runs, and not to that of a test that
        was skipped or failed as expected: it has no result. A test that cannot be set up has one,
        which says so: it must not vanish from the record.
        """
        report = yield
        error, measured = call.excinfo, is_measured(item, self.settings)
        if call.when == "setup" and measured:
            self._identify(item, report)
        if self.watch.stopped and call.when != "teardown":
            return _left_to_another(report)
        if call.when != "teardown" and OUT_OF_MEMORY in item.stash:
            self._identify(item, report)
            why = item.stash[OUT_OF_MEMORY]
            seen = observer_for(item).finish(End(EndKind.OUT_OF_MEMORY, why))
            self._attach_observed(item, report, seen)
            return report
        observer = item.stash.get(OBSERVER, None)
        in_worker = item.config.pluginmanager.has_plugin("ttnn_perf_assigned")
        if in_worker and error is not None and error.typename == "BdbQuit":  # nobody to talk to
            hint = "a debugger works with --ttnn-perf-isolate inline, or --pdb"
            report.sections.append(("ttnn-perf", hint))
        if call.when == "setup" and report.failed and measured:
            sweep = test_settings(item, self.settings).sweep
            ended = End(EndKind.RAISED, f"in its setup: {_raised(call, report)}")
            _attach(report, Observation(item.nodeid, ended=ended, sweep=sweep))
        if observer is not None and report.failed and error is not None:
            why_not = observer.instruments.explanation(text_of(error.value))
            report.sections += [("ttnn-perf: memory", why_not)] if why_not else []
        if call.when != "call":
            return report
        if self.running is item:
            if report.failed:
                self.failed_subtest = f"in a subtest: {_raised(call, report)}"
        elif observer is not None and report.outcome != "skipped":
            failed = _raised(call, report) if report.failed else self.failed_subtest
            observer.read_output(report.capstdout + report.capstderr)
            self._identify(item, report)
            self._attach_observed(item, report, checked(observer, failed))
        return report

    def _attach_observed(
        self, item: pytest.Item, report: pytest.TestReport, observation: Observation
    ) -> None:
        """Attach an observation, with the machine if keys name it.

        A capture that was there before may be of any machine.
        """
        observation = with_hardware(item, observation)
        hardware, opened = observation.hardware, observation.configuration
        captured = any(observed.capture for observed in observation.metrics.values())
        if hardware is not None and (opened or not captured):
            here = on_this_host(hardware, self.settings.key, os.environ)
            observation = replace(observation, hardware=here)
        if self.calls is not None:
            observation = replace(observation, conditions={"calls": self.calls.take()})
        _attach(report, observation)

    def _identify(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Put a test's identity on its report, for distributed tests."""
        for identity in identities_among([item]).values():
            setattr(report, IDENTITY, identity)


def checked(observer: Observer, raised: str | None = None) -> Observation:
    from pytest_ttnn_perf.measure.recorder import check_test

    observation = observer.finish(None if raised is None else End(EndKind.RAISED, raised))
    helper_pccs = None if observer.helper_pccs is None else tuple(observer.helper_pccs)
    try:
        return check_test(
            observation,
            observer.artifact,
            observer.run,
            by_the_clock=observer.instruments.by_the_clock,
            helper_pccs=helper_pccs,
        )
    except (UsageError, RuleError) as error:  # a mistake in the settings, or ours
        return replace(observation, problems=(*observation.problems, str(error)))


def _left_to_another(report: pytest.TestReport) -> pytest.TestReport:
    """Make the report of a stopped test no failure."""
    file, line, _ = report.location
    report.outcome, report.sections = "skipped", []
    report.longrepr = (file, line or 0, "left to a worker of its own")
    vars(report).pop("wasxfail", None)
    setattr(report, APART, True)
    return report


def _attach(report: pytest.TestReport, observation: Observation) -> None:
    placed = replace(observation, location=place_in_code(report.location))
    setattr(report, OBSERVATION, encode(placed))


def _raised(call: pytest.CallInfo[None], report: pytest.TestReport) -> str:
    if call.excinfo is None:  # failed by a plugin, such as a strict xfail that passed
        return (str(report.longrepr).strip().splitlines() or ["an error"])[0]
    return error_text(call.excinfo.typename, text_of(call.excinfo.value))


def _uses_fixture(item: pytest.Item) -> bool:
    return NAME in getattr(item, "fixturenames", ())


#: A mistake of the user's, from a process that has a share to pytest-xdist, and so to the worker.
REFUSED: Final = "ttnn_perf_refused"
#: Plugins that print, past the terminal reporter, what the orchestrator's session prints as well.
PRINTING: Final = ("pytest_github_actions_annotate_failures", "sugar")
#: Reports that the orchestrator's session writes: of pytest-html, pytest-reportlog,
#: pytest-json-report, allure, and of pytest itself.
_REPORTS: Final = ("htmlpath", "report_log", "json_report", "allure_report_dir", "pastebin")
#: What only the first worker does, which runs all tests: pytest-benchmark's files, pytest-split's
#: durations; and splitting, which must not split a selection again.
_ONCE: Final = (
    "benchmark_json", "benchmark_save", "benchmark_autosave", "store_durations", "splits", "group",
)  # fmt: skip


class AssignedTests:
    """A worker's assignment, or a share of it with its ``own`` folder."""

    def __init__(self, assignment: Assignment, own: Path | None = None) -> None:
        self.assignment, self.own = assignment, own

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Turn away from the user's files; before any plugin has opened one."""
        option, folder = config.option, self.own or self.assignment.folder
        if getattr(option, "xmlpath", None):  # stays set: conftest files look at it
            option.xmlpath = str(folder / "junit.xml")
        unwanted = list(_REPORTS)
        if not self.assignment.first:
            unwanted += _ONCE
            option.basetemp = str(folder / "tmp")
            if hasattr(option, "log_file"):
                option.log_file = str(folder / "tests.log")
        for name in unwanted:
            if getattr(option, name, None):
                setattr(option, name, None)
        if self.assignment.kind is PassKind.CONFIRM and getattr(option, "reruns", None):
            option.reruns = 0
        if self.assignment.alone:
            leave_undistributed(option)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        try:
            return (yield)
        except pytest.UsageError as error:
            getattr(session.config, "workeroutput", {})[REFUSED] = str(error)
            raise

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        settings = settings_of(config)
        if self.assignment.kind is PassKind.DEVICE:
            items[:] = [item for item in items if is_measured(item, settings)]
        if self.assignment.tests is not None:
            wanted = frozenset(self.assignment.tests)
            identities = identities_among(items)
            items[:] = [i for i in items if {i.nodeid, identities.get(i.nodeid)} & wanted]


class SessionForwarder:
    """Forwards every session event to the orchestrator.

    Waits until it is acknowledged, so that nothing is printed or judged while a test is timed, and
    that no test follows the last one that is wanted; not for what changes neither.
    """

    def __init__(self, link: OrchestratorLink) -> None:
        self.link = link
        #: Held when a test has been measured, until that is sent.
        self.interrupts = Interrupts()
        self.session: pytest.Session | None = None
        #: The tests that are timed; None where other processes run them.
        self.measured: frozenset[str] | None = None
        self.deselected: list[str] = []
        #: What tests are filed under, where that is not their id.
        self.identities: dict[str, str] = {}
        self._sent_collection = False
        #: Whether a phase of the running test has failed.
        self._failed = False
        #: Tests that were stopped: the rest of them is not sent.
        self._apart: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Silence the terminal reporter, and keep it: other plugins talk to it."""
        show_stacks_on_request()
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return
        handler = live_logs(config)
        if handler is not None:  # log records are printed where all else is sent
            handler.stream = copy.copy(reporter)
            handler.stream._tw = create_terminal_writer(config, sys.stdout)  # noqa: SLF001
        nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (until the end)
        reporter._tw._file = nowhere  # noqa: SLF001 (no public way to redirect it)

    def opened(self) -> None:
        """Send that a device is opened, from the main thread only.

        Not that a simulated one is: it ends with its process, and is never reset.
        """
        from pytest_ttnn_perf.machine.environment import is_simulated

        is_main = threading.current_thread() is threading.main_thread()
        if is_main and not is_simulated(os.environ):
            self._send("opened")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.session = session

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        try:
            return (yield)
        except pytest.UsageError as error:
            self._stop("refused", str(error))
            raise

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.deselected += [getattr(item, "nodeid", str(item)) for item in items]
        self.identities |= identities_among(items)

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._send("reported", report=self._serialise(report))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._send_strays(session)
        items, settings = session.items, settings_of(session.config)
        measured = [item for item in items if is_measured(item, settings)]
        self.measured = frozenset(item.nodeid for item in measured)
        self.identities |= identities_among(items)
        self._send_collection([item.nodeid for item in items], [item.nodeid for item in measured])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        if not self._sent_collection:  # measured is not known of distributed tests
            self._sent_collection = True
            self._send_collection([*ids], None)

    def _send_collection(self, tests: list[str], measured: list[str] | None) -> None:
        assert self.session is not None
        settings = settings_of(self.session.config)
        self._send(
            "collected",
            tests=tests,
            measured=measured,
            deselected=self.deselected,
            identities=self.identities,
            confirm=settings.confirm_passes,
            root=str(self.session.config.rootpath),
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        refused = getattr(node, "workeroutput", {}).get(REFUSED)
        if refused is not None:
            self._stop("refused", refused)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Do not start if asked to stop: pytest looks after a test."""
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._send("started", test=nodeid, location=location, wait=False)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid
        if getattr(report, APART, False) and test not in self._apart:
            self._apart.add(test)
            self._send("finished", test=test, location=report.location, apart=True)
        if test in self._apart:
            return
        self._failed = self._failed or report.outcome == "failed"
        assert self.session is not None
        if report.when == "setup":  # then the call is timed
            wait = self._is_timed(test)
        else:  # pytest takes all fixtures down with the last test of a session: it must know
            wait = report.when == "call" and bool(self.session.config.getoption("maxfail"))
        self._send("reported", report=self._serialise(report), wait=wait)
        if report.when not in PHASES:  # of a process that is gone: this test never finishes
            self.pytest_runtest_logfinish(test, report.location)
        self.interrupts.release()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Send a test's end; wait where stopping may have been decided."""
        if nodeid in self._apart:
            self._apart.discard(nodeid)
            return
        wait = self._failed or self._is_timed(nodeid)
        self._send("finished", test=nodeid, location=location, apart=False, wait=wait)
        self._failed = False

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Send a warning; those of the configuration the orchestrator has had itself."""
        if when != "config":
            self._send(
                "warned",
                text=text_of(warning_message.message),
                category=warning_message.category.__name__,
                filename=warning_message.filename,
                line=warning_message.lineno,
                when=when,
                test=nodeid,
                location=location,
            )

    def pytest_internalerror(self, excrepr: object) -> None:
        self._stop("broke", str(excrepr))

    @pytest.hookimpl(tryfirst=True)  # the next Ctrl-C may come while others deal with it
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        error, text, code = excinfo.value, str(excinfo.value), None
        if isinstance(error, pytest.exit.Exception):
            asked = error.returncode
            code = int(pytest.ExitCode.INTERRUPTED if asked is None else asked)
        elif not isinstance(error, pytest.Session.Interrupted):
            crash = getattr(excinfo.getrepr(), "reprcrash", None)
            text = f"KeyboardInterrupt in {crash.path}:{crash.lineno}" if crash else text
        self._stop("ended", text, code)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.interrupts.release()
        self._send_strays(session)
        enough = session.config.getoption("maxfail")  # failures are counted where all are known
        if session.shouldfail and not (enough and session.testsfailed >= enough):
            self._stop("ended", str(session.shouldfail))
        self._send("ended", status=int(exitstatus))

    def _send_strays(self, session: pytest.Session) -> None:
        """Send loaded modules of another version, before tests and after them."""
        assignment, cwd = self.link.assignment, session.config.invocation_params.dir
        if assignment.versions is not None:
            from pytest_ttnn_perf.machine.inspection import strays

            ours = (assignment.folder,)
            found = strays(dict(sys.modules), assignment.versions, cwd=cwd, ours=ours)
            if found:
                self._send("strayed", modules=[list(stray) for stray in found])

    def _serialise(self, report: pytest.CollectReport | pytest.TestReport) -> dict[str, object]:
        assert self.session is not None
        config = self.session.config
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        data.pop("node", None)  # pytest-xdist's, of the process that ran the test
        assert isinstance(data, dict)
        kept = (str, int, float, list, dict)
        data["user_properties"] = [
            (name, value if isinstance(value, kept) else text_of(value))
            for name, value in data.get("user_properties", ())
        ]
        return data

    def _is_timed(self, test: str) -> bool:
        return self.measured is None or test in self.measured

    def _stop(self, cause: str, text: str, code: int | None = None) -> None:
        self._send("stopped", cause=cause, text=text, code=code)

    def _send(self, kind: str, *, wait: bool = True, **data: object) -> None:
        if wait or self.link.assignment.shown:  # what was printed before comes before
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        stop = self.link.send(kind, wait=wait, **data)
        if stop is None or self.session is None:
            return
        self.session.shouldstop = stop
        distributing = self.session.config.pluginmanager.get_plugin("dsession")
        if distributing is not None:
            distributing.shouldstop = stop
