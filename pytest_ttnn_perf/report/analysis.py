"""Analyses: figures, and charts of what weighs most."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import unit_for
from pytest_ttnn_perf.analysis.checklist.analyses.headline import is_fraction
from pytest_ttnn_perf.records.finding import AnalysisOutcome
from pytest_ttnn_perf.records.metric import Kind, Metric
from pytest_ttnn_perf.report.layout import Fit, Line, table_of
from pytest_ttnn_perf.report.numbers import Listing, format_fraction, format_ns, format_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.records.finding import Analysis, Row, Section
    from pytest_ttnn_perf.report.layout import Block


def regions_listing(analyses: Sequence[tuple[str, Analysis]]) -> Listing:
    """Lay one analysis of several regions out, one below the other.

    In JSON the first region stands at the top, and all of them in ``regions``.
    """
    listings = [(region, analysis_listing(analysis)) for region, analysis in analyses]
    documents = [{**_document(analysis), "region": region} for region, analysis in analyses]
    lines: list[Block] = []
    for region, each in listings:
        lines += [""] if lines else []
        lines += [f"region {region}", *each.lines] if region else each.lines
    rows = tuple((*row, region) for region, each in listings for row in each.rows)
    document = {**documents[0], "regions": documents}
    return Listing(tuple(lines), document, (*_FIELDS, "region"), rows)


#: Columns of the longest bar, and rows of a chart.
_BAR, _MOST_ROWS = 20, 10
_SIZE: Final = Metric("size", "B", kind=Kind.BYTES)
_HEADINGS: Final = {"ns": "time", "B": "size"}
_FIELDS: Final = ("analysis", "outcome", "section", "label", "value", "unit", "share", "count")


def analysis_listing(analysis: Analysis) -> Listing:
    """Lay an analysis out; charts show the first rows, JSON and CSV all of them."""
    rows = tuple((analysis.name, analysis.outcome.value, *cells) for cells in _rows(analysis))
    return Listing(tuple(_lines(analysis)), _document(analysis), _FIELDS, rows)


def _document(analysis: Analysis) -> dict[str, object]:
    document = asdict(replace(analysis, picture=()))
    document.pop("picture")
    return {"analysis": document.pop("name"), **document, "outcome": analysis.outcome.value}


def _lines(analysis: Analysis) -> Iterator[Block]:
    if analysis.outcome is not AnalysisOutcome.MEASURED:
        yield f"{analysis.outcome.value} {analysis.name}: {analysis.reason}"
        return
    yield f"{analysis.name}: {analysis.title}"
    for figure in analysis.figures:
        yield f"  {figure.label}: {value_text(figure.value, figure.unit)}"
    if analysis.picture:
        yield ""
        yield from (Line(row, drawn=True) for row in analysis.picture)
    # What a picture shows need not be listed as well.
    for section in () if analysis.picture else analysis.sections:
        yield ""
        yield from _chart(section)
    if analysis.notes:
        yield ""
    for note in analysis.notes:
        yield f"note: {note}"


def _chart(section: Section) -> Iterator[Block]:
    """Yield the rows of a section with bars, the longest for the largest share."""
    rows = section.rows[:_MOST_ROWS]
    # Counts are shown where they say anything that values do not.
    counts = any(row.count not in {1, row.value} for row in section.rows)
    headings = ["count"] if counts else []
    headings += [] if is_fraction(section.unit) else [_HEADINGS.get(section.unit, section.unit)]
    headings += [section.of, ""] if section.of else []
    cells = [list(_cells(row, section, headings)) for row in rows]
    labelled = [[" ".join(row.label.split()), *own] for row, own in zip(rows, cells, strict=True)]
    right = frozenset(range(1, len(headings) + (0 if section.of else 1)))
    # Bars say nothing that figures do not; of these, the share says most.
    last = [Fit(), Fit(drop=0)] if section.of else [Fit()] * bool(headings)
    fits = [Fit(least=24), *(Fit(drop=1) for _ in headings[: len(headings) - len(last)]), *last]
    yield table_of([section.heading, *headings], labelled, right=right, fits=fits)
    hidden = len(section.rows) - len(rows)
    if hidden:
        yield f"and {hidden} more, which --format json lists"


def _cells(row: Row, section: Section, headings: Sequence[str]) -> Iterator[str]:
    if headings[:1] == ["count"]:
        yield str(row.count)
    if not is_fraction(section.unit):
        yield value_text(row.value, section.unit, bare=True)
    if section.of:
        yield format_fraction(row.share)
        largest = max((other.share or 0.0 for other in section.rows), default=0.0)
        yield "#" * round(_BAR * (row.share or 0.0) / largest) if largest else ""


def value_text(value: float, unit: str, *, bare: bool = False) -> str:
    """Return a number with its unit; ``bare`` where a heading names it."""
    if unit == "B":
        return format_value(_SIZE, value)
    if unit == "ns":
        return format_ns(value)
    if is_fraction(unit):
        return f"{format_fraction(value)} {unit}"
    digits = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"
    return digits if bare else f"{digits} {unit_for(value, unit)}"


def _rows(analysis: Analysis) -> Iterator[tuple[object, ...]]:
    """Yield section, label, value, unit, share and count; figures are of no section."""
    if analysis.outcome is not AnalysisOutcome.MEASURED:
        yield (None, analysis.reason, None, None, None, None)
    for figure in analysis.figures:
        yield (None, figure.label, figure.value, figure.unit, None, None)
    for section in analysis.sections:
        for row in section.rows:
            yield (section.heading, row.label, row.value, section.unit, row.share, row.count)
