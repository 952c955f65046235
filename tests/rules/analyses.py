"""Parts of analyses, as tests expect them."""

from __future__ import annotations

from pytest_ttnn_perf.records.finding import Analysis, AnalysisOutcome, Row, Section


def section(heading: str, unit: str, of: str, *rows: tuple[object, ...]) -> Section:
    """Return a section; a row is its label, its value and, where it has them, share and count."""
    return Section(heading, unit, tuple(Row(*row) for row in rows), of)  # type: ignore[arg-type]


def why_not_measured(analysis: Analysis) -> str | None:
    """Return the reason of an analysis that has nothing to tell."""
    assert analysis.outcome is AnalysisOutcome.NOT_MEASURED
    return analysis.reason
