"""A worker's assignment, and the messages in which it sends its session to the orchestrator."""

from __future__ import annotations

import copy
import json
import os
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest.config import create_terminal_writer

from pytest_ttnn_perf._base.text import text_of
from pytest_ttnn_perf.measure.timing import turn_in
from pytest_ttnn_perf.plugin import TURN
from pytest_ttnn_perf.plugin.activation import leave_undistributed
from pytest_ttnn_perf.plugin.captured_output import keep_captured
from pytest_ttnn_perf.plugin.reports import FAILED, SHOWN, interruption_text, live_logs
from pytest_ttnn_perf.plugin.settings import (
    is_measured,
    is_parametrised,
    profiles_itself,
    settings_of,
    test_settings,
)
from pytest_ttnn_perf.processes.channel import Interrupts, show_stacks_on_request
from pytest_ttnn_perf.records.messages import (
    APART,
    PHASES,
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
    Warned,
)
from pytest_ttnn_perf.records.settings import PassChoice

if TYPE_CHECKING:
    import warnings
    from collections.abc import Generator, Sequence

    from pytest_ttnn_perf.processes.channel import OrchestratorLink
    from pytest_ttnn_perf.records.messages import Assignment, Message
    from pytest_ttnn_perf.records.observation import SweepPoint
    from pytest_ttnn_perf.records.settings import Settings


#: What a process that has a share tells pytest-xdist, and so the worker: a mistake of the user's.
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


@dataclass(eq=False)
class AssignedTests:
    """A worker's assignment.

    One that has a share in it has a folder of its ``own``, and takes turns with the others in
    timing.
    """

    assignment: Assignment
    own: Path | None = None

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
        if self.own is not None:
            config.stash[TURN] = turn_in(self.assignment.folder)
        if self.assignment.alone:
            leave_undistributed(option)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """Hand on a mistake of the user's: pytest-xdist itself tells only that a process broke."""
        try:
            return (yield)
        except pytest.UsageError as error:
            getattr(session.config, "workeroutput", {})[REFUSED] = str(error)
            raise

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep the assigned tests of those that the user selected."""
        if self.assignment.kind is PassKind.DEVICE:
            settings = settings_of(config)
            items[:] = [item for item in items if is_measured(item, settings)]
            if settings.passes is not PassChoice.DEVICE:  # the wall pass runs them
                items[:] = [item for item in items if not profiles_itself(item)]
        if self.assignment.tests is not None:
            wanted = frozenset(self.assignment.tests)
            grouped = getattr(config.option, "loadgroup", False)
            items[:] = [
                item
                for item in items
                if own_id(item.nodeid, grouped=grouped) in wanted or _identity(item) in wanted
            ]


def _points(items: Sequence[pytest.Item], settings: Settings) -> dict[str, SweepPoint]:
    """Return where measured tests stand in their sweeps."""
    found: dict[str, SweepPoint] = {}
    for item in items:
        if is_parametrised(item) and is_measured(item, settings):
            point = test_settings(item, settings).sweep
            found |= {} if point is None else {item.nodeid: point}
    return found


def _identity(item: pytest.Item) -> str:
    """Return what a test is filed under, by which another version of it may be asked for."""
    if not is_parametrised(item):
        return item.nodeid
    from pytest_ttnn_perf.plugin.identity import identity_of

    return identity_of(item, settings_of(item.config).identity_ignores)


def own_id(test: str, *, grouped: bool) -> str:
    """Return a test's id without the group that ``--dist loadgroup`` appends to it."""
    end = test.rfind("@")
    of_group = grouped and end > max(test.rfind("]"), test.rfind("::"))
    return test[:end] if of_group else test


@dataclass(eq=False)
class SessionForwarder:
    """Forwards every session event to the orchestrator.

    Waits until it is acknowledged, so that nothing is printed or judged while a test is timed, and
    that no test follows the last one that is wanted. What changes neither is left as a note.
    """

    link: OrchestratorLink
    #: Held when a test has been measured, until that is sent.
    interrupts: Interrupts = field(default_factory=Interrupts)
    session: pytest.Session | None = None
    #: The tests that are timed; None where other processes run them.
    measured: frozenset[str] | None = None
    deselected: list[str] = field(default_factory=list)
    #: What tests are filed under, where that is not their id.
    identities: dict[str, str] = field(default_factory=dict)
    sent_collection: bool = False
    #: Whether a phase of the running test has failed.
    _failed: bool = False
    #: Whether ids end in the group of a test.
    _grouped: bool = False
    #: Tests that were stopped: the rest of them is nobody's business.
    _apart: set[str] = field(default_factory=set)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Silence the terminal reporter, and keep it: other plugins talk to it."""
        show_stacks_on_request()
        keep_captured(config, self.link.assignment.folder)
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            _show_live_logs(config, reporter)
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (until the end)
            reporter._tw._file = nowhere  # noqa: SLF001 (no public way to redirect it)

    def opened(self) -> None:
        """Send that a device is opened; only the main thread may use the channel.

        Not that a simulated one is: it ends with its process, and is never reset.
        """
        from pytest_ttnn_perf.device.environment import is_simulated

        is_main = threading.current_thread() is threading.main_thread()
        if is_main and not is_simulated(os.environ):
            self._send(Opened())

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the session, which stops when the orchestrator asks for it."""
        self.session = session
        self._grouped = getattr(session.config.option, "dist", None) == "loadgroup"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Send a mistake of the user's, which is not a worker that broke."""
        try:
            return (yield)
        except pytest.UsageError as error:
            self._send(Refused(str(error)))
            raise

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count what the user deselected."""
        self.deselected += [getattr(item, "nodeid", str(item)) for item in items]
        self._identify(items)

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell what could not be collected, or was skipped as a whole."""
        if not report.passed:
            self._send(CollectionReported(self._serialise(report)))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Send the tests to come, and the lines that plugins print about them."""
        config, items = session.config, session.items
        answers = config.hook.pytest_report_collectionfinish(
            config=config, start_path=config.invocation_params.dir, items=items
        )
        lines: list[str] = []
        for answer in reversed(answers):
            lines += [answer] if isinstance(answer, str) else answer
        settings = settings_of(config)
        measured = [item.nodeid for item in items if is_measured(item, settings)]
        tests = [item.nodeid for item in items]
        self.measured = frozenset(measured)
        known = (str(settings.baselines), settings.confirm, str(config.rootpath))
        self._identify(items)
        points = _points(items, settings)
        self._send(
            Collected(tests, measured, self.deselected, lines, *known, self.identities, points)
        )

    def _identify(self, items: Sequence[pytest.Item]) -> None:
        parametrised = list(filter(is_parametrised, items))
        if parametrised:
            from pytest_ttnn_perf.plugin.identity import identities_of

            self.identities |= identities_of(parametrised, settings_of(parametrised[0].config))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Send the tests to come where other processes collect them; all collect the same."""
        if not self.sent_collection:
            self.sent_collection = True
            assert self.session is not None
            settings = settings_of(self.session.config)
            known = (str(settings.baselines), settings.confirm)
            self._send(Collected([self._id(test) for test in ids], None, [], [], *known))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Send a mistake of the user's that such a process found."""
        refused = getattr(node, "workeroutput", {}).get(REFUSED)
        if refused is not None:
            self._send(Refused(refused))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Do not even start if asked to stop: pytest looks only after its first test."""
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Send that a test starts."""
        self._send(Started(self._id(nodeid), list(location)), wait=False)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send how a phase of a test ended."""
        if getattr(report, APART, False) and report.nodeid not in self._apart:
            self._apart.add(report.nodeid)
            self._send(ProfilesItself(self._id(report.nodeid)))
        if report.nodeid in self._apart:
            return
        self._failed = self._failed or report.outcome == "failed"
        test = report.nodeid
        self._send(Reported(self._serialise(report)), wait=self._waits_after(test, report))
        if report.when not in PHASES:  # of a process that is gone: this test never finishes
            self.pytest_runtest_logfinish(test, report.location)
        self.interrupts.release()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Send that a test is over; whether to stop is asked where that may have been decided."""
        if nodeid in self._apart:
            self._apart.discard(nodeid)
            return
        wait = self._failed or self.measured is None or nodeid in self.measured
        self._send(Finished(self._id(nodeid), list(location)), wait=wait)
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
                Warned(
                    text=text_of(warning_message.message),
                    category=warning_message.category.__name__,
                    filename=warning_message.filename,
                    line=warning_message.lineno,
                    when=when,
                    test=nodeid,
                    location=None if location is None else list(location),
                )
            )

    def pytest_internalerror(self, excrepr: object) -> None:
        """Send that pytest itself failed here."""
        self._send(Broke(str(excrepr)))

    @pytest.hookimpl(tryfirst=True)  # the next Ctrl-C may come while others deal with it
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Send that something ended this session before its time."""
        error = excinfo.value
        if isinstance(error, pytest.exit.Exception):
            code = pytest.ExitCode.INTERRUPTED if error.returncode is None else error.returncode
            self._send(Stopped(str(error), int(code)))
        elif isinstance(error, pytest.Session.Interrupted):
            self._send(Stopped(str(error), None))
        else:
            self._send(Stopped(interruption_text(excinfo), None))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Send that this worker came to its end, and why if a plugin wanted it to."""
        self.interrupts.release()
        enough = session.config.getoption("maxfail")  # failures are counted where all are known
        if session.shouldfail and not (enough and session.testsfailed >= enough):
            self._send(Stopped(FAILED + str(session.shouldfail), None))
        self._send(Ended(int(exitstatus)))

    def _serialise(self, report: pytest.CollectReport | pytest.TestReport) -> dict[str, object]:
        assert self.session is not None
        config = self.session.config
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        data.pop("node", None)  # pytest-xdist's, of the process that ran the test
        assert isinstance(data, dict)
        data["nodeid"] = self._id(data["nodeid"])
        if isinstance(data.get("longrepr"), str) and not isinstance(report.longrepr, str):
            data[SHOWN] = True
        if "user_properties" in data:
            data["user_properties"] = [(n, _sendable(v)) for n, v in data["user_properties"]]
        if data.get("sections"):
            data["sections"] = [(name, _shortened(text)) for name, text in data["sections"]]
        return data

    def _waits_after(self, test: str, report: pytest.TestReport) -> bool:
        """Tell whether what follows a report must not begin before it is acknowledged."""
        if report.when == "setup":  # then the call is timed
            return self.measured is None or test in self.measured
        # pytest takes all fixtures down with the last test of a session: it must know.
        assert self.session is not None
        return report.when == "call" and bool(self.session.config.getoption("maxfail"))

    def _id(self, test: str) -> str:
        return own_id(test, grouped=True) if self._grouped else test

    def _send(self, message: Message, *, wait: bool = True) -> None:
        if wait:  # what was printed before comes before
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        stop = self.link.send(message, wait=wait)
        if stop is None or self.session is None:
            return
        self.session.shouldstop = stop
        distributing = self.session.config.pluginmanager.get_plugin("dsession")
        if distributing is not None:
            distributing.shouldstop = stop


def _show_live_logs(config: pytest.Config, reporter: Any) -> None:
    """Let log records through where all else that this session reports is sent, not printed."""
    handler = live_logs(config)
    if handler is not None:
        handler.stream = copy.copy(reporter)
        handler.stream._tw = create_terminal_writer(config, sys.stdout)  # noqa: SLF001


#: So much of what a test prints is sent: both processes would hold all of it several times.
_SECTION: Final = 1 << 24


def _shortened(text: str) -> str:
    """Return what a test printed, the end of what is long."""
    if len(text) <= _SECTION:
        return text
    return f"[ttnn-perf: the last {_SECTION:,} of {len(text):,} characters]\n{text[-_SECTION:]}"


def _sendable(value: object) -> object:
    """Return a property as it is if JSON keeps it so, else its text, which is what JUnit writes."""
    try:
        kept = repr(json.loads(json.dumps(value))) == repr(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 (a class of the user's may raise anything there)
        kept = False
    return value if kept else text_of(value)
