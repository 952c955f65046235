"""Shows a worker's session to this session's plugins: its reports, and what was collected."""

from __future__ import annotations

import logging
import os
import re
import warnings
from dataclasses import field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest._code.code import (
    ExceptionChainRepr,
    ReprEntryNative,
    ReprFileLocation,
    ReprTraceback,
    TerminalRepr,
)
from _pytest.reports import CollectErrorRepr

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import visible_lines
from pytest_ttnn_perf.records.observation import Coverage, Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from _pytest._io import TerminalWriter

    from pytest_ttnn_perf.records.messages import Collected, Warned

    Place = tuple[str, int | None, str]


#: Set on a report of which pytest sends only the text: it was more than a text where it was made.
SHOWN: Final = "ttnn_perf_shown"
#: Before the reason for which a plugin wanted a worker's session to fail.
FAILED: Final = "Failed: "
_PHASES: Final = ("setup", "call", "teardown")
_INTERRUPTED: Final = re.compile(r"KeyboardInterrupt in (.+):(\d+)")


class TextRepr(TerminalRepr):
    """A failure of which only the text is left. Not a bare string: pytest cuts those to a line."""

    def __init__(self, text: str) -> None:
        self.text = text

    def toterminal(self, tw: TerminalWriter) -> None:
        """Print it."""
        tw.line(self.text)


def fail_report(report: pytest.TestReport, text: str) -> None:
    """Make ``report`` a failure that shows ``text`` and points at the test.

    A structured representation, not a bare string: short summary, JUnit and annotation plugins
    read its ``reprcrash``, and pytest's own serialisation keeps it.
    """
    file, line, _ = report.location
    crash = ReprFileLocation(file, (line or 0) + 1, text.splitlines()[0])
    entry = ReprEntryNative([text + "\n"])
    trace = ReprTraceback([entry], extraline=None, style="value")
    report.longrepr = ExceptionChainRepr([(trace, crash, None)])
    report.outcome = "failed"
    # An expected failure excuses what the test does, not what it costs.
    if hasattr(report, "wasxfail"):
        del report.wasxfail


def location_of(test: str) -> Place:
    """Return what can be told of a test's place by its id alone."""
    file, _, name = test.partition("::")
    words, bracket, parameters = name.partition("[")  # parameters may hold anything
    return file, None, words.replace("::", ".") + bracket + parameters


def place_of(location: Place) -> Location:
    """Return where a test is written; pytest counts lines from 0."""
    file, line, _ = location
    return Location(file, None if line is None else line + 1)


def lost_reports(
    test: str, location: Place, seen: Sequence[str], text: str, tail: str
) -> list[pytest.TestReport]:
    """Return the reports that a test still owes whose process is gone.

    The first phase without a report has failed; then the test is taken down, as others are.
    """
    missing = [phase for phase in _PHASES if phase not in seen] or ["teardown"]
    shown = f"{text}\n{tail}" if tail else text
    reports = []
    for phase in (missing[0], *([] if missing[0] == "teardown" else ["teardown"])):
        report = pytest.TestReport(test, location, {}, "passed", None, phase)  # type: ignore[arg-type]
        reports.append(report)
    fail_report(reports[0], shown)
    return reports


def interruption_text(excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    """Say where a session was interrupted."""
    crash = getattr(excinfo.getrepr(), "reprcrash", None)
    return f"KeyboardInterrupt in {crash.path}:{crash.lineno}" if crash else "KeyboardInterrupt"


def interruption(text: str) -> KeyboardInterrupt | None:
    """Return the interruption that a worker told of, as if raised in the same line of code here.

    pytest says where it was interrupted, and that is in a test. None: it told of something else.
    """
    found = _INTERRUPTED.fullmatch(text)
    try:
        if found is not None:
            line = "\n" * (int(found[2]) - 1) + "raise KeyboardInterrupt"
            exec(compile(line, found[1], "exec"), {})
    except KeyboardInterrupt as error:
        return error
    return KeyboardInterrupt() if text in {"", "KeyboardInterrupt"} else None


def live_logs(config: pytest.Config) -> logging.StreamHandler[Any] | None:
    """Return what prints log records while tests run; None unless the user asked for that."""
    handler = getattr(config.pluginmanager.get_plugin("logging-plugin"), "log_cli_handler", None)
    return handler if isinstance(handler, logging.StreamHandler) else None


@dataclass(frozen=True, slots=True)
class Emitter:
    """Calls the hooks that pytest would call if the tests ran here."""

    session: pytest.Session

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
            reporter.ensure_newline()
            writer = self.session.config.get_terminal_writer()
            if writer.width_of_current_line:  # letters that no file name stands before
                writer.line()
            reporter.write_line(visible_lines(text))

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
        """Return the report that a worker serialised, with tuples where JSON has only lists."""
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


#: Options that select tests, or with which some files are not even looked at, by their names in
#: pytest's namespace. Marks do not: a job that runs what is marked runs all that it is there for.
_PARTIAL: Final = ("keyword", "lf", "ignore", "ignore_glob", "pyargs")


@dataclass(eq=False, slots=True)
class TestCollection:
    """Keeps track of a collection, wherever it takes place: workers' hooks are called here too."""

    config: pytest.Config
    _not_collected: list[str] = field(default_factory=list)
    _deselected: list[str] = field(default_factory=list)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Keep what was deselected: it is there all the same."""
        self._deselected += [getattr(item, "nodeid", str(item)) for item in items]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not be collected, or was skipped as a whole: its tests may be there."""
        if not report.passed:
            self._not_collected.append(report.nodeid)

    def coverage(self, tests: Iterable[str]) -> Coverage | None:
        """Return what was collected, with ``tests`` to run; None if it was a selection of files."""
        option = self.config.option
        if any(getattr(option, name, None) for name in _PARTIAL):
            return None
        found = (_place(argument, self.config) for argument in self.config.args)
        places = tuple(place for place in found if place is not None)
        if not places:
            return None
        deselected = tuple(self._deselected)
        return Coverage(places, (*tests, *deselected, *self._not_collected), deselected)


def _place(argument: str, config: pytest.Config) -> str | None:
    """Return where the tests of an argument lie, from the root; None if it is not all of a file."""
    if "::" in argument:
        return None
    place = os.path.relpath(config.invocation_params.dir / argument, config.rootpath)
    if place.startswith(".."):
        return None
    return "" if place == "." else place.replace(os.sep, "/")
