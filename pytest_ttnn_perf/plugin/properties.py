"""What a report says of its test beside the outcome: metrics, and where the test is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.observation import Location
from pytest_ttnn_perf.workflow.junit import properties_of

if TYPE_CHECKING:
    import pytest

    from pytest_ttnn_perf.workflow.run import GateRun


def tell(report: pytest.TestReport, gate: GateRun) -> None:
    """Add the metrics of a judged test to its report, from which JUnit reports are made.

    To that of the call, which others read, and to that of the teardown, which pytest's own report
    takes them from.
    """
    if hasattr(report, "context"):  # of a subtest
        return
    report.user_properties += properties_of(report.nodeid, gate)


def place_of(location: tuple[str, int | None, str]) -> Location:
    """Return where a test is written; pytest counts lines from 0."""
    file, line, _ = location
    return Location(file, None if line is None else line + 1)
