"""Keeping a worker to its assignment: its tests, and none of the user's files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from pytest_ttnn_perf.model.assignment import PassKind
from pytest_ttnn_perf.plugin.fixture import TURN
from pytest_ttnn_perf.plugin.marker import is_measured, profiles_itself
from pytest_ttnn_perf.plugin.settings import settings_of
from pytest_ttnn_perf.workflow.observe import turn_in

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from pytest_ttnn_perf.model.assignment import Assignment

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
class Assigned:
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

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say why a debugger quits at once: there is nobody to talk to."""
        report = yield
        if call.excinfo is not None and call.excinfo.typename == "BdbQuit":
            hint = "a debugger works with --ttnn-perf-isolate inline, or --pdb"
            report.sections.append(("ttnn-perf", hint))
        return report

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
            items[:] = [i for i in items if is_measured(i, settings) and not profiles_itself(i)]
        if self.assignment.tests is not None:
            wanted = frozenset(self.assignment.tests)
            grouped = getattr(config.option, "loadgroup", False)
            items[:] = [item for item in items if own_id(item.nodeid, grouped=grouped) in wanted]


def own_id(test: str, *, grouped: bool) -> str:
    """Return a test's id without the group that ``--dist loadgroup`` appends to it."""
    end = test.rfind("@")
    of_group = grouped and end > max(test.rfind("]"), test.rfind("::"))
    return test[:end] if of_group else test
