"""What JUnit reports say of a test beside its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.report.properties import property_pairs

if TYPE_CHECKING:
    from pytest_ttnn_perf.workflow.run import GateRun


def properties_of(test: str, gate: GateRun) -> list[tuple[str, str]]:
    """Return the metrics of a test that was judged; none if they are not wanted."""
    judged = gate.judged(test)
    if judged is None or not gate.settings.junit_properties:
        return []
    return property_pairs(judged, gate.hardware)
