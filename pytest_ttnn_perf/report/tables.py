"""Numbers, tables and listings as people read them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar
from unicodedata import east_asian_width

from msgspec import Struct

from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.observation import Outcome
from pytest_ttnn_perf.core.text import (
    BYTE_UNITS,
    NANOSECONDS_IN,
    TIME_UNITS,
    digits,
    inert,
    percent,
    scaled,
    unit_filled_by,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence


# Lines and tables in the width there is: what is wrapped, cut, left out and coloured.

BOLD, RED, GREEN, YELLOW, CYAN = "1", "31", "32", "33", "36"
#: Of what goes to a file: tables and lines are as wide as they are.
UNLIMITED: Final = sys.maxsize
#: A narrower terminal gets lines of this width, and folds them itself.
NARROWEST: Final = 40


class Style(NamedTuple):
    """Width, colours and wrapping of an output."""

    width: int = UNLIMITED
    colour: bool = False
    wrap: bool = False


def stdout_style() -> Style:
    """Return the style of the terminal, or of ``COLUMNS``."""
    terminal = sys.stdout.isatty()
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if not terminal and not os.environ.get("COLUMNS", "").isdecimal():
        return Style()
    width = max(shutil.get_terminal_size((80, 24)).columns, NARROWEST)
    return Style(width, colour=colour, wrap=terminal)


def shown_path(path: Path, cwd: Path) -> str:
    nearer = Path(os.path.relpath(path, cwd))
    return str(path) if os.pardir in nearer.parts else str(nearer)


class Line(NamedTuple):
    """A line of output; ``bad`` and ``good`` ones may be coloured."""

    text: str
    bad: bool = False
    good: bool = False


#: A line in several colours.
ColouredParts = list[tuple[str, str | None]]


class Fit(NamedTuple):
    """The fate of a column in a table that is too wide."""

    #: It is cut to no less than this (None: not at all), in the middle or at its end.
    least: int | None = None
    middle: bool = False
    #: Columns are left out in this order (None: never), or stand below their row.
    drop: int | None = None
    below: bool = False


#: A name: its beginning and its end tell more than its middle.
NAME: Final = Fit(least=24, middle=True)
METRIC: Final = Fit(least=14, middle=True)
BELOW: Final = Fit(below=True)
DROPPED: Final = tuple(Fit(drop=order) for order in range(6))


class Row(NamedTuple):
    """The cells of a row, or a ``title`` across the table."""

    cells: Sequence[str]
    colours: Sequence[str | None] = ()
    title: str = ""


#: A column is this much wider than its heading, where there is room.
_PADDING: Final = 2
_BETWEEN: Final = 2
_INDENT: Final = "    "
_CUT: Final = "…"
#: The text of an empty cell.
NOTHING: Final = frozenset({"", "-"})
#: A column that may not be cut is cut to this before it is left out, where nothing else helps.
_LEAST: Final = 6
#: The first of the letters that stand for a cell; nothing printable uses them.
_STAND_IN: Final = 0xF0000


class Table(Struct, frozen=True):
    """Rows under headings."""

    headings: Sequence[str]
    rows: Sequence[Row]
    right: frozenset[int] = frozenset()
    fits: Sequence[Fit] = ()

    def lines(self, style: Style = Style()) -> list[str]:  # noqa: B008 (it cannot change)
        columns = range(len(self.headings))
        cells = [row.cells for row in self.rows if row.cells]
        widths = [max(columns_of(each[i]) for each in (self.headings, *cells)) for i in columns]
        padded = [
            max(width, columns_of(heading) + _PADDING if heading else 0)
            for width, heading in zip(widths, self.headings, strict=True)
        ]
        if sum(padded) + _BETWEEN * (len(padded) - 1) <= style.width:
            return list(self._laid_out(dict(enumerate(padded)), style))
        if "test" in self.headings and all(row.cells for row in self.rows):
            by_file = self._by_file()
            if len(by_file.rows) > len(self.rows):  # some names have a file to stand under
                return by_file.lines(style)
        fits = dict(enumerate(self.fits or [Fit()] * len(self.headings)))
        below = [index for index in columns if fits[index].below]
        for index in columns:
            if fits[index].middle:
                fits[index] = _distinct(fits[index], {row[index] for row in cells})
        kept = {index: widths[index] for index in columns if index not in below}
        return list(self._laid_out(_fit_columns(kept, fits, style.width), style, below))

    def _by_file(self) -> Table:
        """Name the key and the file of tests above their rows."""
        test = self.headings.index("test")
        columns = [index for index, heading in enumerate(self.headings) if heading != "key"]
        above = [index for index, heading in enumerate(self.headings) if heading == "key"]
        rows: list[Row] = []
        known = ""
        for row in self.rows:
            file, colons, name = row.cells[test].partition("::")
            title = " ".join([*(row.cells[index] for index in above), file])
            if colons and title != known:
                rows.append(Row((), title=title))
                known = title
            cells = [*row.cells[:test], f"  {name}" if colons else file, *row.cells[test + 1 :]]
            colours = [row.colours[index] for index in columns] if row.colours else ()
            rows.append(Row([cells[index] for index in columns], colours))
        right = frozenset(columns.index(index) for index in self.right)
        headings = [self.headings[index] for index in columns]
        return Table(headings, rows, right, [self.fits[i] for i in columns] if self.fits else ())

    def _laid_out(
        self, widths: Mapping[int, int], style: Style, below: Sequence[int] = ()
    ) -> Iterator[str]:
        from tabulate import tabulate

        shown: list[str] = []

        def stand_in(index: int, text: str, colour: str | None = None) -> str:
            """Return letters of the cell's width: tabulate counts letters, not columns."""
            cut: Callable[[str, int], str] = cut_end
            if self.fits and self.fits[index].middle:
                cut = cut_name
            text = cut(text, widths[index])
            shown.append(coloured(text, colour, style))
            return chr(_STAND_IN + len(shown) - 1) * columns_of(text)

        table = [
            [stand_in(index, self.headings[index]) for index in widths],
            ["-" * width for width in widths.values()],
            *(
                [stand_in(i, row.cells[i], row.colours[i] if row.colours else None) for i in widths]
                for row in self.rows
                if row.cells
            ),
        ]
        align = ["right" if index in self.right else "left" for index in widths]
        text = tabulate(table, tablefmt="plain", disable_numparse=True, colalign=align)
        text = _STAND_INS.sub(lambda found: shown[ord(found[1]) - _STAND_IN], text)
        lines = (line.rstrip() for line in text.split("\n"))
        above = (next(lines, ""), next(lines, ""))
        yield from above if any(self.headings) else ()
        for row in self.rows:
            if row.title:
                yield cut_middle(row.title, style.width)
                continue
            yield next(lines, "")
            for index in below:
                if row.cells[index] not in NOTHING:
                    text = f"{_INDENT}{row.cells[index]}"
                    yield from wrapped(text, style.width, hanging=len(_INDENT))


#: Every letter that stands for a cell, as often as the cell is wide.
_STAND_INS: Final = re.compile(f"([{chr(_STAND_IN)}-{chr(sys.maxunicode)}])\\1*")
#: A part of an output.
Block = str | Line | ColouredParts | Table


def table_of(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    fits: Sequence[Fit] = (),
) -> Table:
    """Return a table of untrusted texts."""
    shown = [Row([inert(cell).strip() for cell in row]) for row in rows]
    return Table([inert(heading) for heading in headings], shown, right, fits)


def _distinct(fit: Fit, names: Collection[str]) -> Fit:
    """Let names be cut only while they remain distinct."""
    widest = max(map(columns_of, names), default=0)
    for width in range(fit.least or widest, widest):
        if len({cut_name(name, width) for name in names}) == len(names):
            return fit._replace(least=width)
    return fit._replace(least=widest)


def _fit_columns(widths: dict[int, int], fits: Mapping[int, Fit], most: int) -> dict[int, int]:
    """Return the widths of the columns that there is room for."""

    def excess(of: Mapping[int, int]) -> int:
        return sum(of.values()) + _BETWEEN * (len(of) - 1) - most

    leasts = {i: min(width, fits[i].least or width) for i, width in widths.items()}
    droppable = [i for i in widths if fits[i].drop is not None]
    for index in sorted(droppable, key=lambda i: fits[i].drop or 0):
        if excess(leasts) > 0:
            del leasts[index]
    kept = list(leasts)
    while len(kept) > 1 and excess({i: min(widths[i], _LEAST) for i in kept}) > 0:
        kept.pop()
    narrow = {i: widths[i] for i in kept}
    for least in (leasts, dict.fromkeys(kept, _LEAST)):
        while excess(narrow) > 0 and (able := [i for i in kept if narrow[i] > least[i]]):
            narrow[max(able, key=narrow.__getitem__)] -= 1
    return narrow


def columns_of(text: str) -> int:
    """Return the columns of a terminal that a text takes."""
    return len(text) + (0 if text.isascii() else sum(east_asian_width(c) in "WF" for c in text))


def cut_end(text: str, width: int) -> str:
    return text if columns_of(text) <= width else _first(text, width - 1) + _CUT


def cut_middle(text: str, width: int) -> str:
    if columns_of(text) <= width:
        return text
    end = (width - 1) // 2
    return _first(text, width - 1 - end) + _CUT + _first(text[::-1], end)[::-1]


def cut_name(name: str, width: int) -> str:
    return cut_id(name, width) if "::" in name else cut_middle(name, width)


def cut_id(test: str, width: int) -> str:
    """Cut a test id to ``width`` columns: its folders first.

    >>> cut_id("models/llama/test_decode.py::test_layer[8]", 34)
    '…/test_decode.py::test_layer[8]'
    """
    file, colons, name = test.partition("::")
    short = f"{_CUT}/{file.rpartition('/')[2]}{colons}{name}" if "/" in file else test
    return test if columns_of(test) <= width else cut_middle(short, width)


def _first(text: str, width: int) -> str:
    text = text[: max(width, 0)]
    while columns_of(text) > max(width, 0):
        text = text[:-1]
    return text


#: The space between a number and its unit, or what it counts, at which no line ends.
_UNIT: Final = re.compile(r"(?<=\d) (?=%|(?:[nuµm]?s|[KMG]?i?B|[A-Z][A-Z_]{5,})\b)")
_JOINED: Final = "\xa0"
#: How much further the lines that go on are indented: more than what belongs to a line.
_HANGING: Final = 6


def wrapped(text: str, width: int, *, hanging: int | None = None) -> Iterator[str]:
    """Yield a text in lines of at most ``width`` columns.

    >>> list(wrapped("  by op: Matmul 1x1x32x4096 +61 µs", 26))
    ['  by op: Matmul', '        1x1x32x4096 +61 µs']
    """
    if columns_of(text) <= width:
        yield text
        return
    start = len(text) - len(text.lstrip(" "))
    indent = " " * min(start + _HANGING if hanging is None else hanging, width // 2)
    words = [word.replace(_JOINED, " ") for word in _UNIT.sub(_JOINED, text[start:]).split(" ")]
    line = " " * min(start, width // 2)
    for word in words:
        opening, start_of_id = ("(", word[1:]) if word.startswith("(") else ("", word)
        piece = (
            opening + cut_id(start_of_id, width // 2) if "::" in word and len(words) > 1 else word
        )
        piece = inert(piece)  # it may begin a line
        if line.strip() and columns_of(f"{line} {piece}") > width:
            yield line.rstrip()
            line = indent
        line = f"{line} {piece}" if line.strip() else line + piece
        while columns_of(line) > width:  # a long word
            first = _first(line, width)
            yield first
            line = indent + inert(line[len(first) :])
    yield line.rstrip()


#: A command at the end of a line.
_COMMAND: Final = re.compile(r"(?<=: )(?:[A-Z][A-Z_]*=\S+ )*(?:pytest|ttnn-perf|python|git) \S.*$")


def fitted(text: str, width: int) -> Iterator[str]:
    """Yield a line in this ``width``, one with a command whole.

    What the terminal breaks itself can be copied as one line.
    """
    if _COMMAND.search(text):
        yield text
    else:
        yield from wrapped(text, width)


def printed(blocks: Iterable[Block], style: Style) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Table):
            yield from block.lines(style)
            continue
        if isinstance(block, list):
            yield "".join(coloured(inert(text), code, style) for text, code in block)
            continue
        line = Line(block) if isinstance(block, str) else block
        text = inert(line.text)
        texts: Iterable[str] = [text]
        if style.wrap:
            texts = fitted(text, style.width)
        code = RED if line.bad else GREEN if line.good else None
        yield from (coloured(each, code, style) for each in texts)


def coloured(text: str, code: str | None, style: Style) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if style.colour and code and text else text


_COUNTED: Final = frozenset({Kind.COUNT, Kind.BYTES})


def format_value(metric: Metric, value: float | None, *, beside: float | None = None) -> str:
    """Return a value in its unit, or that of the other value."""
    if value is None:
        return "-"
    if metric.kind is Kind.ACCURACY:
        text = f"{value:.6g}"
        text = ">0.999999" if text == "1" and value < 1 else text  # short of 1 never reads as 1
        return f"{text} {metric.unit}".rstrip()
    if metric.unit in NANOSECONDS_IN:
        factor = NANOSECONDS_IN[metric.unit]
        return scaled(
            value * factor, TIME_UNITS, beside=None if beside is None else beside * factor
        )
    if metric.unit == "B":
        return scaled(value, BYTE_UNITS, beside=beside)
    if value == int(value) and (metric.kind in _COUNTED or metric.better is Better.EQUAL):
        return f"{int(value)} {metric.unit}".rstrip()
    return f"{digits(value)} {metric.unit}".rstrip()


def display_unit(metric: Metric, value: float | None) -> tuple[str, float]:
    """Return the unit that a value is shown in, and its factor."""
    if metric.kind is not Kind.ACCURACY and value is not None:
        if metric.unit in NANOSECONDS_IN:
            unit, factor = unit_filled_by(value * NANOSECONDS_IN[metric.unit], TIME_UNITS)
            return unit, NANOSECONDS_IN[metric.unit] / factor
        if metric.unit == "B":
            unit, factor = unit_filled_by(value, BYTE_UNITS)
            return unit, 1 / factor
    return metric.unit, 1.0


def format_change(change: float | None) -> str:
    """Return a signed percentage."""
    if change is None:
        return "-"
    text = f"{change * 100:+.1f} %"
    return text[1:] if text[1:] == "0.0 %" else text


def format_fraction(fraction: float | None) -> str:
    """Return a percentage without a sign."""
    return "-" if fraction is None else percent(abs(fraction))


T = TypeVar("T")


class Column(Struct, Generic[T], frozen=True):
    """A column: programs read ``name``, people ``heading``; either may be missing."""

    name: str
    value: Callable[[T], object]
    heading: str = ""
    cell: Callable[[T], str] | None = None
    right: bool = False
    #: Its cell is empty where all such columns repeat the row above.
    once: bool = False
    fit: Fit = Fit()
    colour: Callable[[T], str | None] | None = None

    def text(self, record: T) -> str:
        return inert(self.cell(record) if self.cell else str(self.value(record))).strip()


#: The colours of verdicts that are not as before.
OUTCOME_COLOURS: Final = {
    **dict.fromkeys((Outcome.REGRESSED, Outcome.TOO_NOISY, Outcome.NO_DATA), RED),
    **dict.fromkeys((Outcome.NO_BASELINE, Outcome.NOT_COMPARABLE, Outcome.SHIFTED), YELLOW),
    Outcome.IMPROVED: GREEN,
}


def id_column(
    test: Callable[[T], str],
    *,
    renamed_to: Callable[[T], str | None] = lambda _: None,
    name: str = "test",
) -> Column[T]:
    def both(record: T) -> str:
        return " → ".join(filter(None, (test(record), renamed_to(record))))

    return Column(name, test, "test", both, once=True, fit=NAME)


class Columns(Generic[T]):
    """The columns of a table, of CSV and of JSON."""

    __slots__ = ("_named", "_shown", "names")

    def __init__(self, *columns: Column[T]) -> None:
        self._named = [column for column in columns if column.name]
        self._shown = [column for column in columns if column.heading]
        self.names = tuple(column.name for column in self._named)

    def table(self, records: Iterable[T]) -> list[Table]:
        records = list(records)
        shown = [
            column
            for column in self._shown
            if column.fit.drop is None or any(column.text(each) not in NOTHING for each in records)
        ]
        rows: list[Row] = []
        known: list[object] | None = None
        for record in records:
            now = [column.value(record) for column in shown if column.once]
            repeated, known = now == known, now
            cells = ["" if column.once and repeated else column.text(record) for column in shown]
            rows.append(Row(cells, [column.colour and column.colour(record) for column in shown]))
        right = frozenset(index for index, column in enumerate(shown) if column.right)
        headings = [column.heading for column in shown]
        return [Table(headings, rows, right, [column.fit for column in shown])] if rows else []

    def rows(self, records: Iterable[T]) -> tuple[tuple[object, ...], ...]:
        return tuple(tuple(column.value(record) for column in self._named) for record in records)

    def objects(self, records: Iterable[T]) -> list[dict[str, object]]:
        return [dict(zip(self.names, row, strict=True)) for row in self.rows(records)]


class Listing(Struct, frozen=True):
    """The output of a command: lines, JSON document and CSV rows."""

    lines: tuple[Block, ...]
    document: object
    headings: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def text(self, shape: str, style: Style | None = None) -> str:
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
    """Return a document as printed JSON, without commands to CI systems."""
    # Two of these stand in strings only, where one may be spelt.
    return json.dumps(document, indent=2).replace("##", r"#\u0023") + "\n"


#: With which of these, also as wide as they are in Japanese, a cell is a formula to a spreadsheet.
_FORMULA_BEGINS: Final = tuple("=+-@＝＋－＠")


def _csv_cell(value: object) -> object:
    if value is None or isinstance(value, (int, float)):
        return value
    text = inert(str(value))
    return f"'{text}" if text.startswith(_FORMULA_BEGINS) else text


class Result(Struct, frozen=True):
    """The text and errors to print, and the outcome for the shell."""

    text: str
    failed: bool = False
    #: No test is to blame, but the machine is slower as a whole.
    shifted: bool = False
    inconclusive: bool = False
    errors: str = ""
    #: Called once the text is out, so that a change is read before it is made.
    then: Callable[[], Result] | None = None
