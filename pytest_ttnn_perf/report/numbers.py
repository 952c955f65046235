"""Numbers, tables and listings as people read them, and what a command prints."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import (
    BYTE_UNITS,
    NANOSECONDS_IN,
    digits,
    inert,
    percent,
    scaled,
    unit_filled_by,
)
from pytest_ttnn_perf.records.metric import Better, Kind, Metric
from pytest_ttnn_perf.records.verdict import Outcome
from pytest_ttnn_perf.report.layout import (
    GREEN,
    NAME,
    NOTHING,
    RED,
    YELLOW,
    Fit,
    Row,
    Table,
    printed,
    stdout_style,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_ttnn_perf.report.layout import Block, Style


#: Display units of time, longest first, with their nanoseconds.
_TIME_UNITS: Final = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
_COUNTED: Final = frozenset({Kind.COUNT, Kind.BYTES})


def format_value(metric: Metric, value: float | None, *, beside: float | None = None) -> str:
    """Return a value with its unit.

    ``beside`` is the value it stands next to: both are shown in one unit, chosen for that one, so
    that a reader never compares milliseconds with microseconds.

    >>> format_value(Metric("wall_time", "ns"), 12_410_000)
    '12.41 ms'
    """
    if value is None:
        return "-"
    if metric.kind is Kind.ACCURACY:
        return _with_unit(_accuracy(value), metric.unit)
    if metric.unit in NANOSECONDS_IN:
        factor = NANOSECONDS_IN[metric.unit]
        return scaled(
            value * factor, _TIME_UNITS, beside=None if beside is None else beside * factor
        )
    if metric.unit == "B":
        return scaled(value, BYTE_UNITS, beside=beside)
    if value == int(value) and (metric.kind in _COUNTED or metric.better is Better.EQUAL):
        return _with_unit(str(int(value)), metric.unit)
    return _with_unit(digits(value), metric.unit)


def display_unit(metric: Metric, value: float | None) -> tuple[str, float]:
    """Return the unit that a value is shown in, and what it is multiplied by for that.

    >>> display_unit(Metric("wall_time", "us"), 12_410.0)
    ('ms', 0.001)
    """
    if metric.kind is not Kind.ACCURACY and value is not None:
        if metric.unit in NANOSECONDS_IN:
            unit, factor = unit_filled_by(value * NANOSECONDS_IN[metric.unit], _TIME_UNITS)
            return unit, NANOSECONDS_IN[metric.unit] / factor
        if metric.unit == "B":
            unit, factor = unit_filled_by(value, BYTE_UNITS)
            return unit, 1 / factor
    return metric.unit, 1.0


def format_ns(nanoseconds: float) -> str:
    """Return a time in the unit that suits it.

    >>> format_ns(61_300)
    '61.30 us'
    """
    return scaled(nanoseconds, _TIME_UNITS)


def format_change(change: float | None) -> str:
    """Return a signed percentage.

    >>> format_change(0.218), format_change(-0.0001)
    ('+21.8 %', '0.0 %')
    """
    if change is None:
        return "-"
    text = f"{change * 100:+.1f} %"
    return text[1:] if text[1:] == "0.0 %" else text


def format_fraction(fraction: float | None) -> str:
    """Return a percentage without a sign.

    >>> format_fraction(0.0499)
    '5.0 %'
    """
    return "-" if fraction is None else percent(abs(fraction))


def _accuracy(value: float) -> str:
    """Return six significant digits; what is short of 1 never reads as 1.

    >>> _accuracy(0.99123456), _accuracy(0.99999998), _accuracy(1.0)
    ('0.991235', '>0.999999', '1')
    """
    text = f"{value:.6g}"
    return ">0.999999" if text == "1" and value < 1 else text


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column of a listing.

    Programs read ``value`` under ``name``, people read ``cell`` (or else the value) under
    ``heading``. A column without a name is for people only, one without a heading for programs
    only. Cells ``once`` are left empty where all of these have the same values as the row above.

    In a table that is too wide, people read ``short`` instead, and the column does as ``fit`` says.
    ``title`` is then the part of it that rows share, such as the file of tests: it stands in a line
    of its own above them. ``colour`` is that of a cell.
    """

    name: str
    value: Callable[[T], object]
    heading: str = ""
    cell: Callable[[T], str] | None = None
    right: bool = False
    once: bool = False
    fit: Fit = Fit()
    short: Callable[[T], str] | None = None
    title: Callable[[T], str] | None = None
    colour: Callable[[T], str | None] | None = None

    def text(self, record: T, *, narrow: bool = False) -> str:
        """Return what people read."""
        if narrow and self.short:
            return inert(self.short(record))
        return inert(self.cell(record) if self.cell else str(self.value(record))).strip()


_COLOURS: Final = {
    **dict.fromkeys((Outcome.REGRESSED, Outcome.TOO_NOISY, Outcome.NO_DATA), RED),
    **dict.fromkeys((Outcome.NO_BASELINE, Outcome.NOT_COMPARABLE, Outcome.SHIFTED), YELLOW),
    Outcome.IMPROVED: GREEN,
}


def outcome_colour(outcome: Outcome) -> str | None:
    """Return the colour of a verdict; None for what is as before."""
    return _COLOURS.get(outcome)


def id_column(
    test: Callable[[T], str],
    *,
    renamed_to: Callable[[T], str | None] = lambda _: None,
    name: str = "test",
) -> Column[T]:
    """Return the column of test ids; where there is little room, they are grouped by file."""

    def both(record: T, part: Callable[[str], str] = str) -> str:
        ids = filter(None, (test(record), renamed_to(record)))
        return " → ".join(dict.fromkeys(map(part, ids)))

    def file(record: T) -> str:
        return both(record, lambda one: one.partition("::")[0])

    def inside(record: T) -> str:
        return "  " + both(record, lambda one: one.partition("::")[2] or "(the whole file)")

    return Column(name, test, "test", both, once=True, fit=NAME, short=inside, title=file)


class Columns(Generic[T]):
    """The columns of a listing, which lay out records as a table, as CSV and as JSON."""

    __slots__ = ("_named", "_shown", "names")

    def __init__(self, *columns: Column[T]) -> None:
        self._named = [column for column in columns if column.name]
        self._shown = [column for column in columns if column.heading]
        self.names = tuple(column.name for column in self._named)

    def table(self, records: Iterable[T]) -> list[Table]:
        """Return the table of records; none without records."""
        found = list(records)
        return [self._table(found, lambda: self._table(found, None))] if found else []

    def _table(self, records: list[T], narrower: Callable[[], Table] | None) -> Table:
        narrow = narrower is None
        shown = [one for one in self._shown if not (narrow and self._is_needless(one, records))]
        return Table(
            [inert(column.heading) for column in shown],
            list(self._rows_of(records, shown, narrow=narrow)),
            frozenset(index for index, column in enumerate(shown) if column.right),
            [column.fit for column in shown],
            narrower,
        )

    @staticmethod
    def _is_needless(column: Column[T], records: list[T]) -> bool:
        """Return whether a column stands above its rows, or may be left out and tells nothing."""
        if column.title and not column.short:
            return True
        droppable = column.fit.drop is not None
        return droppable and all(column.text(record) in NOTHING for record in records)

    def _rows_of(self, records: list[T], shown: list[Column[T]], *, narrow: bool) -> Iterator[Row]:
        known: list[object] | None = None
        title = ""
        for record in records:
            now = [column.value(record) for column in self._shown if column.once]
            repeated, known = now == known, now
            if narrow:
                above = [each.title(record) for each in self._shown if each.title]
                last, title = title, inert(" ".join(filter(None, above)))
                if title and title != last:
                    yield Row((), title=title)
            yield Row(
                ["" if column.once and repeated else column.text(record, narrow=narrow)
                 for column in shown],
                [column.colour and column.colour(record) for column in shown],
            )  # fmt: skip

    def rows(self, records: Iterable[T]) -> tuple[tuple[object, ...], ...]:
        """Return what programs read, as the rows of a CSV."""
        return tuple(tuple(column.value(record) for column in self._named) for record in records)

    def objects(self, records: Iterable[T]) -> list[dict[str, object]]:
        """Return what programs read, as the objects of a JSON list."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows(records)]


@dataclass(frozen=True, slots=True)
class Listing:
    """What a command prints. ``document`` is plain JSON; ``rows`` are under ``headings``."""

    lines: tuple[Block, ...]
    document: object
    headings: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def text(self, shape: str, style: Style | None = None) -> str:
        """Return the result as ``table``, ``json`` or ``csv``; a table in the style of stdout."""
        if shape == "json":
            return json_text(self.document)
        if shape == "csv":
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(self.headings)
            writer.writerows(map(_csv_cell, row) for row in self.rows)
            return text.getvalue()
        return "".join(f"{line}\n" for line in printed(self.lines, style or stdout_style()))


def json_text(document: object) -> str:
    """Return a document as it is printed: CI systems find no commands in it."""
    # Two of these stand in strings only, where one may be spelt.
    return json.dumps(document, indent=2).replace("##", r"#\u0023") + "\n"


#: With which of these, also as wide as they are in Japanese, a cell is a formula to a spreadsheet.
_FORMULA_BEGINS: Final = tuple("=+-@＝＋－＠")


def _csv_cell(value: object) -> object:
    """Return a cell: numbers as such, and text that is only text, also to a spreadsheet."""
    if value is None or isinstance(value, (int, float)):
        return value
    text = inert(str(value))
    return f"'{text}" if text.startswith(_FORMULA_BEGINS) else text


@dataclass(frozen=True, slots=True)
class Result:
    """The text to print, and whether it is bad news for the shell.

    ``shifted``: no test is to blame, but the machine is slower as a whole. ``inconclusive``: it is
    not known whether there is bad news. ``errors`` is what goes to stderr. ``then`` is what is done
    once the text is out, so that a change is read before it is made; what it returns is printed
    after it.
    """

    text: str
    failed: bool = False
    shifted: bool = False
    inconclusive: bool = False
    errors: str = ""
    then: Callable[[], Result] | None = None
