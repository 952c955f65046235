"""Both roles in one process: every report is judged as it is made. For debugging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.model.message import OBSERVATION
from pytest_ttnn_perf.plugin.failure import fail_report
from pytest_ttnn_perf.plugin.marker import is_measured
from pytest_ttnn_perf.plugin.properties import tell

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_ttnn_perf.plugin.gathering import Gathering
    from pytest_ttnn_perf.workflow.run import GateRun


@dataclass(eq=False)
class Inline:
    """Judges what the worker in the same process observed. There are no confirm passes."""

    gate: GateRun
    gathering: Gathering

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Read the baselines: a broken one stops the run before it costs any time."""
        self.gate.coverage = self.gathering.coverage(item.nodeid for item in session.items)
        measured = [i.nodeid for i in session.items if is_measured(i, self.gate.settings)]
        if measured and not session.config.option.collectonly:
            try:
                self.gate.begin(measured)
            except TtnnPerfError as error:
                raise pytest.UsageError(str(error)) from error

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Judge a call report that carries an observation; a failed verdict fails the report.

        Not raised in the call: an xfail would swallow it, and unittest hides its own failures
        from the call. Every later reader of the report sees an ordinary failed call.
        """
        report = yield
        observed = getattr(report, OBSERVATION, None)
        if observed is not None:
            self._judge(observed, report)
        elif report.when == "teardown" and report.failed:
            self.gate.withdraw(report.nodeid)
        if report.when != "setup" or observed is not None:
            tell(report, self.gate)
        return report

    def _judge(self, observed: dict[str, object], report: pytest.TestReport) -> None:
        try:
            text = self.gate.failure(self.gate.judge(report.nodeid, observed))
        except TtnnPerfError as error:
            text = f"NO_DATA: the test's observation could not be judged: {error}"
        if text is not None and report.passed:
            fail_report(report, text)
