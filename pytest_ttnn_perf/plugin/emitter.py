"""Calls the hooks that pytest would call if a worker's tests ran in this session."""

from __future__ import annotations

import os
import re
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest._code.code import TerminalRepr
from _pytest.reports import CollectErrorRepr

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError
from pytest_ttnn_perf.plugin.reports import SHOWN, live_logs
from pytest_ttnn_perf.report.layout import NARROWEST, Style, printed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _pytest._io import TerminalWriter

    from pytest_ttnn_perf.records.messages import (
        Collected,
        Warned,
    )
    from pytest_ttnn_perf.report.live import LiveLine


_INTERRUPTED: Final = re.compile(r"KeyboardInterrupt in ([^\0]+):(\d{1,9})")


class TextRepr(TerminalRepr):
    """A failure of which only the text is left. Not a bare string: pytest cuts those to a line."""

    def __init__(self, text: str) -> None:
        self.text = text

    def toterminal(self, tw: TerminalWriter) -> None:
        """Print it."""
        tw.line(self.text)


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


#: A test that takes no longer shows by its result that there is progress.
_PATIENCE_S: Final = 3.0


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

    def waiting(self, tests: Sequence[str], silent_s: float) -> None:
        """Show on a terminal that tests take their time, below what pytest has printed of them."""
        reporter = self.terminal
        if self.live is None or not tests or silent_s < _PATIENCE_S or reporter is None:
            return
        more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
        column = self.session.config.get_terminal_writer().width_of_current_line
        self.live.show_below(f"ttnn-perf: {tests[0]}{more}: running for {silent_s:.0f} s", column)

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
