"""Numbers, tables and listings as people read them, and what a command prints."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import (
    BYTE_UNITS,
    NANOSECONDS_IN,
    digits,
    inert,
    percent,
    scaled,
    visible,
)
from pytest_ttnn_perf.records.metric import Better, Kind, Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


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


def format_ns(nanoseconds: float) -> str:
    """Return a time in the unit that suits it.

    >>> format_ns(61_300)
    '61.30 us'
    """
    return scaled(nanoseconds, _TIME_UNITS)


def format_change(change: float | None) -> str:
    """Return a signed percentage; plus is worse.

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


def table_lines(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()
) -> list[str]:
    """Lay rows out under their headings; the columns in ``right`` are aligned to the right.

    A row is one line, whatever is in its cells.
    """
    if not rows or not all(_is_plain(cell) for row in (headings, *rows) for cell in row):
        rows = [[visible(cell) for cell in row] for row in rows]
        return _wide_table_lines(headings, rows, right=right)
    columns = [[cell.strip() for cell in column] for column in zip(*rows, strict=True)]
    widths = [
        max(len(heading) + _PADDING, *map(len, column))
        for heading, column in zip(headings, columns, strict=True)
    ]
    places = [">" if index in right else "<" for index in range(len(headings))]
    layout = "  ".join(f"{{:{place}{width}}}" for place, width in zip(places, widths, strict=True))
    lines = (headings, ["-" * width for width in widths], *zip(*columns, strict=True))
    return [layout.format(*line).rstrip() for line in lines]


#: As tabulate has it: a column is this much wider than its heading.
_PADDING: Final = 2


def _is_plain(cell: str) -> bool:
    """Return whether a cell is as wide as it has characters, and one line."""
    return cell.isascii() and cell.isprintable()


def _wide_table_lines(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int]
) -> list[str]:
    """Lay out what is wider than its letters, which takes longer to load than most tables."""
    from tabulate import tabulate

    align = ["right" if index in right else "left" for index in range(len(headings))]
    text = tabulate(
        rows, headers=headings, tablefmt="simple", disable_numparse=True, colalign=align
    )
    return [line.rstrip() for line in text.splitlines()]


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column of a listing.

    Programs read ``value`` under ``name``, people read ``cell`` (or else the value) under
    ``heading``. A column without a name is for people only, one without a heading for programs
    only. Cells ``once`` are left empty where all of these have the same values as the row above.
    """

    name: str
    value: Callable[[T], object]
    heading: str = ""
    cell: Callable[[T], str] | None = None
    right: bool = False
    once: bool = False


class Columns(Generic[T]):
    """The columns of a listing, which lay out records as a table, as CSV and as JSON."""

    __slots__ = ("_named", "_shown", "names")

    def __init__(self, *columns: Column[T]) -> None:
        self._named = [column for column in columns if column.name]
        self._shown = [column for column in columns if column.heading]
        self.names = tuple(column.name for column in self._named)

    def table(self, records: Iterable[T]) -> list[str]:
        """Return the lines of a table; none without records."""
        rows, last = [], None
        for record in records:
            known = [column.value(record) for column in self._shown if column.once]
            repeated, last = known == last, known
            rows.append([
                "" if column.once and repeated
                else column.cell(record) if column.cell
                else str(column.value(record))
                for column in self._shown
            ])  # fmt: skip
        right = frozenset(index for index, column in enumerate(self._shown) if column.right)
        headings = [column.heading for column in self._shown]
        return table_lines(headings, rows, right=right) if rows else []

    def rows(self, records: Iterable[T]) -> tuple[tuple[object, ...], ...]:
        """Return what programs read, as the rows of a CSV."""
        return tuple(tuple(column.value(record) for column in self._named) for record in records)

    def objects(self, records: Iterable[T]) -> list[dict[str, object]]:
        """Return what programs read, as the objects of a JSON list."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows(records)]


@dataclass(frozen=True, slots=True)
class Listing:
    """What a command prints. ``document`` is plain JSON; ``rows`` are under ``headings``."""

    lines: tuple[str, ...]
    document: object
    headings: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def text(self, shape: str) -> str:
        """Return the result as ``table``, ``json`` or ``csv``."""
        if shape == "json":
            return json_text(self.document)
        if shape == "csv":
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(self.headings)
            writer.writerows(map(_csv_cell, row) for row in self.rows)
            return text.getvalue()
        return "".join(f"{inert(line)}\n" for line in self.lines)


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


class Line(NamedTuple):
    """A line of output; ``bad`` and ``good`` ones may be coloured."""

    text: str
    bad: bool = False
    good: bool = False


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
