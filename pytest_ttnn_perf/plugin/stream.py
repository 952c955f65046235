"""A worker's stream: everything that happens in its session, told to the orchestrator."""

from __future__ import annotations

import copy
import json
import logging
import os
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest.config import create_terminal_writer

from pytest_ttnn_perf._support.visible import text_of
from pytest_ttnn_perf.model.message import (
    Broke,
    Collected,
    CollectionReported,
    Ended,
    Finished,
    Opened,
    Refused,
    Reported,
    Started,
    Stopped,
    Warned,
)
from pytest_ttnn_perf.plugin.assigned import REFUSED, own_id
from pytest_ttnn_perf.plugin.failure import FAILED, SHOWN, interruption_text
from pytest_ttnn_perf.plugin.marker import is_measured
from pytest_ttnn_perf.plugin.settings import settings_of

if TYPE_CHECKING:
    import warnings
    from collections.abc import Generator, Sequence

    from pytest_ttnn_perf.model.message import Message
    from pytest_ttnn_perf.workflow.link import Link

_PHASES: Final = ("setup", "call", "teardown")


@dataclass(eq=False)
class Stream:
    """Hooks that tell; each waits until the orchestrator has taken notice."""

    link: Link
    session: pytest.Session | None = None
    deselected: list[str] = field(default_factory=list)
    told: bool = False

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Silence the terminal reporter, and keep it: other plugins talk to it."""
        self.link.prepare()
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            _show_live_logs(config, reporter)
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (until the end)
            reporter._tw._file = nowhere  # noqa: SLF001 (no public way to redirect it)

    def opened(self) -> None:
        """Tell that a device is opened; the channel is this thread's."""
        if threading.current_thread() is threading.main_thread():
            self._tell(Opened())

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the session, which stops when it is told to."""
        self.session = session

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Tell a mistake of the user's apart from a worker that broke."""
        try:
            return (yield)
        except pytest.UsageError as error:
            self._tell(Refused(str(error)))
            raise

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count what the user deselected."""
        self.deselected += [getattr(item, "nodeid", str(item)) for item in items]

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell what could not be collected, or was skipped as a whole."""
        if not report.passed:
            self._tell(CollectionReported(self._serialised(report)))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tell the tests to come, and what plugins have to say about them."""
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
        told = (str(settings.baselines), settings.confirm, str(config.rootpath))
        self._tell(Collected(tests, measured, self.deselected, lines, *told))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Tell the tests to come where other processes collect them; all collect the same."""
        if not self.told:
            self.told = True
            assert self.session is not None
            settings = settings_of(self.session.config)
            told = (str(settings.baselines), settings.confirm)
            self._tell(Collected([self._id(test) for test in ids], None, [], [], *told))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Tell a mistake of the user's that such a process found."""
        refused = getattr(node, "workeroutput", {}).get(REFUSED)
        if refused is not None:
            self._tell(Refused(refused))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Do not even start if told to stop: pytest looks only after its first test."""
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Tell that a test starts."""
        self._tell(Started(self._id(nodeid), list(location)))

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell how a phase of a test ended."""
        self._tell(Reported(self._serialised(report)))
        if report.when not in _PHASES:  # of a process that is gone: this test never finishes
            self.pytest_runtest_logfinish(report.nodeid, report.location)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Tell that a test is over."""
        self._tell(Finished(self._id(nodeid), list(location)))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Tell a warning; those of the configuration the orchestrator has had itself."""
        if when != "config":
            self._tell(
                Warned(
                    text=str(warning_message.message),
                    category=warning_message.category.__name__,
                    filename=warning_message.filename,
                    line=warning_message.lineno,
                    when=when,
                    test=nodeid,
                    location=None if location is None else list(location),
                )
            )

    def pytest_internalerror(self, excrepr: object) -> None:
        """Tell that pytest itself failed here."""
        self._tell(Broke(str(excrepr)))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Tell that something ended this session before its time."""
        error = excinfo.value
        if isinstance(error, pytest.exit.Exception):
            code = pytest.ExitCode.INTERRUPTED if error.returncode is None else error.returncode
            self._tell(Stopped(str(error), int(code)))
        elif isinstance(error, pytest.Session.Interrupted):
            self._tell(Stopped(str(error), None))
        else:
            self._tell(Stopped(interruption_text(excinfo), None))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Tell that this worker came to its end, and why if a plugin wanted it to."""
        enough = session.config.getoption("maxfail")  # failures are counted where all are known
        if session.shouldfail and not (enough and session.testsfailed >= enough):
            self._tell(Stopped(FAILED + str(session.shouldfail), None))
        self._tell(Ended(int(exitstatus)))

    def _serialised(self, report: pytest.CollectReport | pytest.TestReport) -> dict[str, object]:
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
        return data

    def _id(self, test: str) -> str:
        assert self.session is not None
        grouped = getattr(self.session.config.option, "dist", None) == "loadgroup"
        return own_id(test, grouped=grouped)

    def _tell(self, message: Message) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        stop = self.link.say(message)
        if stop is None or self.session is None:
            return
        self.session.shouldstop = stop
        distributing = self.session.config.pluginmanager.get_plugin("dsession")
        if distributing is not None:
            distributing.shouldstop = stop


def live_logs(config: pytest.Config) -> logging.StreamHandler[Any] | None:
    """Return what prints log records while tests run; None unless the user asked for that."""
    handler = getattr(config.pluginmanager.get_plugin("logging-plugin"), "log_cli_handler", None)
    return handler if isinstance(handler, logging.StreamHandler) else None


def _show_live_logs(config: pytest.Config, reporter: Any) -> None:
    """Let log records through where all else that this session reports is told, not printed."""
    handler = live_logs(config)
    if handler is not None:
        handler.stream = copy.copy(reporter)
        handler.stream._tw = create_terminal_writer(config, sys.stdout)  # noqa: SLF001


def _sendable(value: object) -> object:
    """Return a property as it is if JSON keeps it so, else its text, which is what JUnit writes."""
    try:
        kept = repr(json.loads(json.dumps(value))) == repr(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 (a class of the user's may raise anything there)
        kept = False
    return value if kept else text_of(value)
