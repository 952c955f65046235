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

    from pytest_ttnn_perf.records.finding import Analysis, Section
    from pytest_ttnn_perf.report.layout import Block


#: Columns of the longest bar, and rows of a chart.
_BAR, _MOST_ROWS = 20, 10
_SIZE: Final = Metric("size", "B", kind=Kind.BYTES)
_HEADINGS: Final = {"ns": "time", "B": "size"}
_FIELDS: Final = (
    *("analysis", "outcome", "section", "label", "value", "unit", "share", "count", "region"),
)


def analysis_listing(analyses: Sequence[tuple[str, Analysis]]) -> Listing:
    """Lay one analysis of several regions out, one below the other.

    Charts show the first rows, JSON and CSV all of them. In JSON the first region stands at the
    top, and all of them in ``regions``.
    """
    lines: list[Block] = []
    rows: list[tuple[object, ...]] = []
    documents = []
    for region, analysis in analyses:
        lines += [""] if lines else []
        lines += [f"region {region}"] if region else []
        lines += _lines(analysis)
        name, outcome = analysis.name, analysis.outcome.value
        rows += ((name, outcome, *cells, region) for cells in _rows(analysis))
        document = asdict(analysis)
        del document["name"]
        documents.append({"analysis": name, **document, "outcome": outcome, "region": region})
    return Listing(tuple(lines), {**documents[0], "regions": documents}, _FIELDS, tuple(rows))


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
    rows, unit, of = section.rows[:_MOST_ROWS], section.unit, section.of
    columns = [(section.heading, [" ".join(row.label.split()) for row in rows], Fit(least=24))]
    # Counts are shown where they say anything that values do not.
    if any(row.count not in {1, row.value} for row in section.rows):
        columns.append(("count", [str(row.count) for row in rows], Fit(drop=1)))
    if not _is_fraction(unit):
        values = [_value_text(row.value, unit, bare=True) for row in rows]
        columns.append((_HEADINGS.get(unit, unit), values, Fit(drop=1 if of else None)))
    if of:
        # Bars say nothing that figures do not; of these, the share says most.
        largest = max(row.share or 0.0 for row in section.rows) or 1.0
        bars = ["#" * round(_BAR * (row.share or 0.0) / largest) for row in rows]
        columns.append((of, [format_fraction(row.share) for row in rows], Fit()))
        columns.append(("", bars, Fit(drop=0)))
    right = frozenset(range(1, len(columns) - bool(of)))
    headings, cells, fits = zip(*columns, strict=True)
    yield table_of(headings, zip(*cells, strict=True), right=right, fits=fits)
    hidden = len(section.rows) - len(rows)
    if hidden:
        yield f"and {hidden} more, which --format json lists"


def _value_text(value: float, unit: str, *, bare: bool = False) -> str:
    """Return a number with its unit; ``bare`` where something else names it."""
    if unit == "B":
        return format_value(_SIZE, value)
    if unit == "ns":
        return format_ns(value)
    if _is_fraction(unit):
        return format_fraction(value) if bare else f"{format_fraction(value)} {unit}"
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
        unit = self.unit or ""
        return _value_text(self.value or 0.0, unit, bare=_is_fraction(unit))

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
