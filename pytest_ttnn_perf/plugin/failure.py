"""Turning a passed report into a failed one, as complete as one that pytest itself would make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from _pytest._code.code import (
    ExceptionChainRepr,
    ReprEntryNative,
    ReprFileLocation,
    ReprTraceback,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    Location = tuple[str, int | None, str]

_PHASES: Final = ("setup", "call", "teardown")


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


def lost_reports(
    test: str, location: Location, seen: Sequence[str], text: str, tail: str
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
