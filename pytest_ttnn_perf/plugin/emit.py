"""Failed reports, what was collected, and hooks that other plugins implement."""

from __future__ import annotations

import json
import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest._code.code import (
    ExceptionChainRepr,
    ReprEntryNative,
    ReprFileLocation,
    ReprTraceback,
)
from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import TtnnPerfError
from pytest_ttnn_perf.core.hardware import UNKNOWN, Hardware
from pytest_ttnn_perf.core.observation import Coverage
from pytest_ttnn_perf.core.options import attribute_of
from pytest_ttnn_perf.core.text import repr_of, text_of
from pytest_ttnn_perf.plugin.settings import is_parametrised, settings_of
from pytest_ttnn_perf.report.tables import NARROWEST, UNLIMITED, Style, fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_ttnn_perf.core.observation import Location, Observation, Run
    from pytest_ttnn_perf.core.settings import Settings

    Place = tuple[str, int | None, str]


# Reports that fail, where a test is written, and what was collected: for every role.


def fail_report(report: pytest.TestReport, text: str, config: pytest.Config | None = None) -> None:
    """Make ``report`` a failure that shows ``text``.

    As wide as the terminal of ``config``. A structured representation, not a bare string: short
    summary, JUnit and annotation plugins read its ``reprcrash``, and pytest's own serialisation
    keeps it.
    """
    file, line, _ = report.location
    crash = ReprFileLocation(file, (line or 0) + 1, text.splitlines()[0])
    reporter = config and config.pluginmanager.get_plugin("terminalreporter")
    style = Style() if reporter is None else style_of(reporter)
    width = style.width if style.wrap else UNLIMITED
    lines = [line for each in text.splitlines() for line in fitted(each, width)]
    entry = ReprEntryNative([f"{line}\n" for line in lines])
    trace = ReprTraceback([entry], extraline=None, style="value")
    report.longrepr = ExceptionChainRepr([(trace, crash, None)])
    report.outcome = "failed"
    # An expected failure excuses what the test does, not what it costs.
    if hasattr(report, "wasxfail"):
        del report.wasxfail


def place_in_code(location: Place) -> Location:
    """Return where a test is written; pytest counts lines from 0."""
    file, line, _ = location
    return file, None if line is None else line + 1


def live_logs(config: pytest.Config) -> logging.StreamHandler[Any] | None:
    handler = getattr(config.pluginmanager.get_plugin("logging-plugin"), "log_cli_handler", None)
    return handler if isinstance(handler, logging.StreamHandler) else None


#: Options that select tests, or with which some files are not even looked at, by their names in
#: pytest's namespace. Marks do not: a job that runs what is marked runs all that it is there for.
#: A script is no suite: it says nothing of other tests.
_PARTIAL: Final = ("keyword", "lf", "ignore", "ignore_glob", "pyargs", attribute_of("script"))


def identities_among(items: Sequence[pytest.Item]) -> dict[str, str]:
    parametrised = list(filter(is_parametrised, items))
    if not parametrised:  # most runs have none, and pay for none
        return {}
    from pytest_ttnn_perf.plugin.identity import identities_of

    return identities_of(parametrised, settings_of(parametrised[0].config))


class TestCollection:
    """Keeps track of a collection, here or in workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self._not_collected: list[str] = []
        self._deselected: list[str] = []
        #: What deselected tests are filed under, where that is not their id.
        self.identities: dict[str, str] = {}

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Keep what was deselected: it is there all the same."""
        self._deselected += [getattr(item, "nodeid", str(item)) for item in items]
        self.identities |= identities_among(items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not be collected: its tests may be there."""
        if not report.passed:
            self._not_collected.append(report.nodeid)

    def coverage(self, tests: Iterable[str]) -> Coverage | None:
        """Return the collection with ``tests`` to run; None if files were selected."""
        option = self.config.option
        if any(getattr(option, name, None) for name in _PARTIAL):
            return None
        cwd, root = self.config.invocation_params.dir, self.config.rootpath
        whole = [argument for argument in self.config.args if "::" not in argument]
        found = [os.path.relpath(cwd / argument, root) for argument in whole]
        places = tuple("" if each == "." else each for each in found if not each.startswith(".."))
        if not places:
            return None
        deselected = tuple(self._deselected)
        return Coverage(places, (*tests, *deselected, *self._not_collected), deselected)


# Calls of the hooks that other plugins implement.

#: What an implementation may end with; pytest's outcomes are no Exceptions.
_RAISED: Final = (Exception, SystemExit, pytest.fail.Exception, pytest.skip.Exception)


class HookError(TtnnPerfError):
    """An implementation of one of our hooks that raised, or returned nonsense."""


def _call(config: pytest.Config, name: str, /, **arguments: object) -> Any:
    try:
        return getattr(config.hook, name)(**arguments)
    except _RAISED as error:
        message = f"{name} raised {type(error).__name__}: {text_of(error)}".rstrip(": ")
        raise HookError(message) from error


class Extensions:
    """Takes up rules and formats of others, once conftest files are loaded."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def pytest_configure(self, config: pytest.Config) -> None:
        settings, hook = self.settings, "pytest_ttnn_perf_rules"
        try:  # most runs have none, and pay for none
            rules = _all_of(config, hook, lambda: wings.findings.CustomRule)
            if rules or settings.select or settings.ignore or settings.rules:
                codes = [rule.code for rule in rules]
                twice = next((code for code in codes if codes.count(code) > 1), None)
                if twice is not None:
                    message = f"{hook} returned two rules {twice}"
                    raise HookError(message)
                wings.findings.use_custom_rules(rules)
                config.add_cleanup(partial(wings.findings.use_custom_rules, None))
                wings.findings.select_rules(settings.select, settings.ignore, settings.rules)
            hook = "pytest_ttnn_perf_capture_formats"
            formats = _all_of(config, hook, lambda: wings.captures.CaptureFormat)
            if formats:
                wings.captures.use_capture_formats(formats)
                config.add_cleanup(partial(wings.captures.use_capture_formats, ()))
        except TtnnPerfError as error:
            raise pytest.UsageError(str(error)) from error


def with_hardware(item: pytest.Item, observation: Observation) -> Observation:
    """Add the hardware that a hook knows, where it is not known."""
    known, name = observation.hardware, "pytest_ttnn_perf_hardware"
    if known is not None and UNKNOWN not in {known.arch, known.board}:
        return observation
    try:
        result = _call(item.config, name, item=item, hardware=known)
    except HookError as error:
        return replace(observation, problems=(*observation.problems, str(error)))
    if result is None:
        return observation
    if isinstance(result, Hardware) and result.arch and result.board:
        return replace(observation, hardware=result)
    expected = "expected Hardware(arch, board, mesh) of non-empty strings"
    problem = f"{name} returned {repr_of(result)}: {expected}"
    return replace(observation, problems=(*observation.problems, problem))


def report_run(config: pytest.Config, run: Run) -> list[str]:
    """Let others report a run; return what went wrong."""
    name = "pytest_ttnn_perf_report"
    if not getattr(config.hook, name).get_hookimpls():
        return []
    from pytest_ttnn_perf.report.run import run_text

    try:
        _call(config, name, config=config, run=run, document=json.loads(run_text(run)))
    except HookError as error:
        return [str(error)]
    return []


def _all_of(config: pytest.Config, name: str, kind_of: Callable[[], type[Any]]) -> list[Any]:
    found: list[Any] = []
    for result in _call(config, name, config=config):
        kind = kind_of()
        for extension in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(extension, kind):
                mistake = extension.problem()
            else:
                mistake = f"expected a list of {kind.__name__}, found {repr_of(extension)}"
            if mistake is not None:
                message = f"{name} returned something that cannot be used: {mistake}"
                raise HookError(message)
            found.append(extension)
    return found


def style_of(reporter: pytest.TerminalReporter) -> Style:
    writer = reporter.config.get_terminal_writer()
    width = max(writer.fullwidth, NARROWEST)
    return Style(width, colour=writer.hasmarkup, wrap=bool(reporter.isatty))
