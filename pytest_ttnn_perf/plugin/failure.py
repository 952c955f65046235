"""Turning a passed report into a failed one, as complete as one that pytest itself would make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from _pytest._code.code import (
    ExceptionChainRepr,
    ReprEntryNative,
    ReprFileLocation,
    ReprTraceback,
)

if TYPE_CHECKING:
    import pytest


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
