"""Reports that fail, where a test is written, and what was collected: for every role."""

from __future__ import annotations

import logging
import os
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from _pytest._code.code import (
    ExceptionChainRepr,
    ReprEntryNative,
    ReprFileLocation,
    ReprTraceback,
)

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.observation import Coverage, Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pytest

    Place = tuple[str, int | None, str]


#: Set on a report of which pytest sends only the text: it was more than a text where it was made.
SHOWN: Final = "ttnn_perf_shown"
#: Before the reason for which a plugin wanted a worker's session to fail.
FAILED: Final = "Failed: "


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


def show_as(report: pytest.TestReport, lines: Sequence[str]) -> None:
    """Let a report that ``fail_report`` made show other lines; its first stays what it is."""
    if isinstance(report.longrepr, ExceptionChainRepr):
        report.longrepr.reprtraceback.reprentries = [
            ReprEntryNative([f"{line}\n" for line in lines])
        ]


def place_of(location: Place) -> Location:
    """Return where a test is written; pytest counts lines from 0."""
    file, line, _ = location
    return Location(file, None if line is None else line + 1)


def interruption_text(excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    """Say where a session was interrupted."""
    crash = getattr(excinfo.getrepr(), "reprcrash", None)
    return f"KeyboardInterrupt in {crash.path}:{crash.lineno}" if crash else "KeyboardInterrupt"


def live_logs(config: pytest.Config) -> logging.StreamHandler[Any] | None:
    """Return what prints log records while tests run; None unless the user asked for that."""
    handler = getattr(config.pluginmanager.get_plugin("logging-plugin"), "log_cli_handler", None)
    return handler if isinstance(handler, logging.StreamHandler) else None


#: Options that select tests, or with which some files are not even looked at, by their names in
#: pytest's namespace. Marks do not: a job that runs what is marked runs all that it is there for.
_PARTIAL: Final = ("keyword", "lf", "ignore", "ignore_glob", "pyargs")


@dataclass(eq=False, slots=True)
class TestCollection:
    """Keeps track of a collection, wherever it takes place: workers' hooks are called here too."""

    config: pytest.Config
    _not_collected: list[str] = field(default_factory=list)
    _deselected: list[str] = field(default_factory=list)
    #: What deselected tests are filed under, where that is not their id.
    identities: dict[str, str] = field(default_factory=dict)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Keep what was deselected: it is there all the same."""
        self._deselected += [getattr(item, "nodeid", str(item)) for item in items]
        real = [item for item in items if hasattr(item, "callspec")]
        if real:  # else they are of a worker, which has told more of them
            from pytest_ttnn_perf.plugin.identity import identities_of
            from pytest_ttnn_perf.plugin.settings import settings_of

            self.identities |= identities_of(real, settings_of(self.config))

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
