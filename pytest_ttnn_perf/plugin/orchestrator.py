"""The orchestrator's role: judge observations, fail the right reports, write, and report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.plugin.failure import fail_report
from pytest_ttnn_perf.plugin.marker import is_measured
from pytest_ttnn_perf.plugin.protocol import ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_ttnn_perf.workflow.run import GateRun


@dataclass(eq=False)
class Orchestrator:
    """Judges what workers observed. In one process with its worker, it sees each report first."""

    gate: GateRun

    def pytest_report_header(self) -> str:
        """Say what is on, and for which key."""
        return "ttnn-perf: " + self.gate.heading()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Read the baselines: a broken one stops the run before it costs any time."""
        measured = [i.nodeid for i in session.items if is_measured(i, self.gate.settings)]
        if measured and not session.config.option.collectonly:
            self.collected(measured)

    def collected(self, tests: list[str]) -> None:
        """Take notice of the tests that will be measured."""
        try:
            self.gate.begin(tests)
        except TtnnPerfError as error:
            raise pytest.UsageError(str(error)) from error

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Judge a call report that carries an observation; a failed verdict fails the report.

        Not raised in the call: an xfail would swallow it, and unittest hides its own failures
        from the call. Every later reader of the report sees an ordinary failed call.
        """
        report = yield
        self.received(report)
        return report

    def received(self, report: pytest.TestReport) -> None:
        """Judge what a report carries; everything it takes is in the report."""
        observed = getattr(report, ATTRIBUTE, None)
        if observed is not None:
            self._judge(observed, report)
        elif report.when == "teardown" and report.failed:
            self.gate.withdraw(report.nodeid)

    def _judge(self, observed: dict[str, object], report: pytest.TestReport) -> None:
        try:
            judged = self.gate.judge(report.nodeid, observed)
            text = self.gate.failure(judged)
        except TtnnPerfError as error:
            text = f"NO_DATA: the test's observation could not be judged: {error}"
        if text is not None and report.passed:
            fail_report(report, text)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write record and baselines; a run that could not write does not look fine."""
        ran = session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
        stopped = session.shouldstop or session.shouldfail
        refused = session.exitstatus == pytest.ExitCode.USAGE_ERROR
        if refused or session.config.option.collectonly:
            self.gate.abandon()
        else:
            self.gate.finish(complete=ran and not stopped)
        if self.gate.errors and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Print the verdicts, or that there are none."""
        ran = exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
        if terminalreporter.config.option.collectonly or not (ran or self.gate.judged_any):
            return
        terminalreporter.ensure_newline()
        terminalreporter.section("ttnn-perf")
        if not self.gate.judged_any:
            text = "no test was gated: those that ran are not marked, or were skipped"
            terminalreporter.write_line(text, yellow=True)
            return
        for line in self.gate.summary():
            terminalreporter.write_line(line.text, red=line.bad, green=line.good)
        for error in self.gate.errors:
            terminalreporter.write_line(f"not written: {error}", red=True)
        for text in self.gate.closing():
            terminalreporter.write_line(text)
