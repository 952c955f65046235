"""What a gated run says and writes around its tests, wherever these run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from pytest_ttnn_perf.plugin.failure import fail_report

if TYPE_CHECKING:
    from pytest_ttnn_perf.workflow.run import GateRun

#: Nothing failed by name, but the machine is slower as a whole.
EXIT_SHIFTED: Final = 6
#: A plugin that annotates failed tests, and these are failed tests like any other.
_ANNOTATES_FAILURES: Final = "pytest_github_actions_annotate_failures"


@dataclass(eq=False)
class Closing:
    """Heading, record and summary of a gated run."""

    gate: GateRun

    def pytest_report_header(self) -> str:
        """Say what is on, and for which key."""
        return "ttnn-perf: " + self.gate.heading()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write record and baselines; a run that could not write does not look fine."""
        ran = session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
        stopped = session.shouldstop or session.shouldfail
        refused = session.exitstatus == pytest.ExitCode.USAGE_ERROR
        if refused or session.config.option.collectonly:
            self.gate.abandon()
        else:
            self.gate.finish(complete=ran and not stopped and not self.gate.cut_short)
        if session.exitstatus == pytest.ExitCode.OK:
            if self.gate.results.errors or self.gate.lapses.lost:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            elif self.gate.shift and self.gate.shift.worse:
                session.exitstatus = EXIT_SHIFTED
                _fail_run(session, "environment shifted", self.gate.shift_text())

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Print the verdicts, or that there are none."""
        ran = exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, EXIT_SHIFTED}
        if terminalreporter.config.option.collectonly or not (ran or self.gate.judged_any):
            return
        terminalreporter.ensure_newline()
        terminalreporter.section("ttnn-perf")
        if not self.gate.judged_any:
            text = "no test was gated: "
            text += self.gate.cut_short or "those that ran are not marked, or were skipped"
            terminalreporter.write_line(text, yellow=True)
        for line in self.gate.summary() if self.gate.judged_any else self.gate.lapsed():
            terminalreporter.write_line(line.text, red=line.bad, green=line.good)
        for error in self.gate.results.errors:
            terminalreporter.write_line(f"not written: {error}", red=True)
        if not self.gate.judged_any:
            return
        for text in self.gate.results.closing():
            terminalreporter.write_line(text)
        self._annotate(terminalreporter)

    def _annotate(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell GitHub what belongs to which line of code.

        Here every line stands by itself, whatever tests printed; -q, -s and -n change nothing.
        """
        gate, results = self.gate, self.gate.results
        if results.reports is None or not (results.job.annotates and gate.settings.annotations):
            return
        annotated = terminalreporter.config.pluginmanager.has_plugin(_ANNOTATES_FAILURES)
        for line in results.reports.annotations(failures=not annotated):
            terminalreporter.write_line(line)


def _fail_run(session: pytest.Session, name: str, text: str) -> None:
    """Show a failure of the run, which no test has, as a failed case in every report.

    Who reads JUnit or the last line of the terminal, and no exit code, must not see a pass. Those
    who count failed tests, or run them again, are left out: there is no such test.
    """
    manager = session.config.pluginmanager
    names = ("session", "terminalreporter", "lfplugin", "stepwiseplugin")
    apart = [plugin for plugin in map(manager.get_plugin, names) if plugin is not None]
    reporters = manager.subset_hook_caller("pytest_runtest_logreport", remove_plugins=apart)
    reporters(report=_failed_case(name, text))
    terminal = manager.get_plugin("terminalreporter")
    if terminal is not None:
        # The summary says the rest.
        said = _failed_case(name, text.splitlines()[0])
        terminal.stats.setdefault("failed", []).append(said)


def _failed_case(name: str, text: str) -> pytest.TestReport:
    location = ("ttnn-perf", None, name)
    report = pytest.TestReport(f"ttnn-perf::{name}", location, {}, "failed", None, "call")
    fail_report(report, text)
    return report
