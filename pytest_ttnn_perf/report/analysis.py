"""Analyses: figures and charts of what weighs most, or what comes first in each."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import unit_for
from pytest_ttnn_perf.records.finding import AnalysisOutcome
from pytest_ttnn_perf.records.metric import Kind, Metric
from pytest_ttnn_perf.report.layout import NAME, Fit, table_of
from pytest_ttnn_perf.report.numbers import (
    Column,
    Columns,
    Listing,
    format_fraction,
    format_ns,
    format_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
    document = asdict(analysis)
    return {"analysis": document.pop("name"), **document, "outcome": analysis.outcome.value}


def _lines(analysis: Analysis) -> Iterator[Block]:
    if analysis.outcome is not AnalysisOutcome.MEASURED:
        yield f"{analysis.outcome.value} {analysis.name}: {analysis.reason}"
        return
    yield f"{analysis.name}: {analysis.title}"
    for figure in analysis.figures:
        yield f"  {figure.label}: {_value_text(figure.value, figure.unit)}"
    for section in analysis.sections:
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
    headings += [] if _is_fraction(section.unit) else [_HEADINGS.get(section.unit, section.unit)]
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
    if not _is_fraction(section.unit):
        yield _value_text(row.value, section.unit, bare=True)
    if section.of:
        yield format_fraction(row.share)
        largest = max((other.share or 0.0 for other in section.rows), default=0.0)
        yield "#" * round(_BAR * (row.share or 0.0) / largest) if largest else ""


def _value_text(value: float, unit: str, *, bare: bool = False) -> str:
    """Return a number with its unit; ``bare`` where a heading names it."""
    if unit == "B":
        return format_value(_SIZE, value)
    if unit == "ns":
        return format_ns(value)
    if _is_fraction(unit):
        return f"{format_fraction(value)} {unit}"
    digits = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"
    return digits if bare else f"{digits} {unit_for(value, unit)}"


def _is_fraction(unit: str) -> bool:
    return unit.startswith("of ")


def _rows(analysis: Analysis) -> Iterator[tuple[object, ...]]:
    """Yield section, label, value, unit, share and count; figures are of no section."""
    if analysis.outcome is not AnalysisOutcome.MEASURED:
        yield (None, analysis.reason, None, None, None, None)
    for figure in analysis.figures:
        yield (None, figure.label, figure.value, figure.unit, None, None)
    for section in analysis.sections:
        for row in section.rows:
            yield (section.heading, row.label, row.value, section.unit, row.share, row.count)


class First(NamedTuple):
    """An analysis of a region, and what comes first in it; None where it was not made."""

    region: str
    analysis: Analysis
    section: str | None = None
    label: str | None = None
    value: float | None = None
    unit: str | None = None

    @property
    def figure(self) -> str:
        """The number alone, with a unit that is none of a fraction."""
        if self.value is None or self.unit is None:
            return ""
        fraction = _is_fraction(self.unit)
        return format_fraction(self.value) if fraction else _value_text(self.value, self.unit)

    @property
    def what(self) -> str:
        """What the number is of."""
        label = ", ".join(filter(None, (self.section, " ".join((self.label or "").split()))))
        return f"{self.unit}: {label}" if _is_fraction(self.unit or "") else label


_COLUMNS: Final[Columns[First]] = Columns(
    Column("analysis", lambda e: e.analysis.name, "analysis"),
    Column("outcome", lambda e: e.analysis.outcome.value),
    Column("reason", lambda e: e.analysis.reason),
    Column("section", lambda e: e.section),
    Column("label", lambda e: e.label),
    Column("value", lambda e: e.value),
    Column("unit", lambda e: e.unit),
    Column("region", lambda e: e.region),
    Column("", lambda e: e.figure, "figure", right=True),
    Column("", lambda e: e.what, "what", fit=NAME),
)


def overview_listing(
    analyses: Iterable[tuple[str, Analysis]], notes: Sequence[str], more: str
) -> Listing:
    """Lay out what comes first in each analysis, region by region; ``more`` shows all of one."""
    found = [_first(region, analysis) for region, analysis in analyses]
    lines: list[Block] = [f"note: {note}" for note in notes]
    for region in dict.fromkeys(each.region for each in found):
        own = [each for each in found if each.region == region]
        lines += [""] if lines else []
        lines += [f"region {region}"] if region else []
        lines += _COLUMNS.table(each for each in own if each.value is not None)
        lines += _not_made(own)
    lines.append(f"all of one: {more}")
    document = {"analyses": _COLUMNS.objects(found), "notes": list(notes)}
    return Listing(tuple(lines), document, _COLUMNS.names, _COLUMNS.rows(found))


def _first(region: str, analysis: Analysis) -> First:
    for figure in analysis.figures:
        return First(region, analysis, None, figure.label, figure.value, figure.unit)
    for section in analysis.sections:
        row = section.rows[0]
        told = (row.value, section.unit) if row.share is None else (row.share, section.of)
        return First(region, analysis, section.heading, row.label, *told)
    return First(region, analysis)


def _not_made(entries: Iterable[First]) -> Iterator[str]:
    """Say in one line for each reason which analyses were not made."""
    names: dict[tuple[str, str], list[str]] = {}
    for each in entries:
        reason = each.analysis.reason
        if reason is not None:
            # Why nothing else than what is needed will do is said by the analysis itself.
            short = reason.partition(":")[0] if reason.startswith("needs ") else reason
            names.setdefault((each.analysis.outcome.value, short), []).append(each.analysis.name)
    for (outcome, reason), own in names.items():
        yield f"{outcome} {', '.join(own)}: {reason}"
