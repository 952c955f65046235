"""Numbers, tables and listings as people read them, and what a command prints."""

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
from unicodedata import combining, east_asian_width

from pytest_ttnn_perf.core.dataclass import dataclass
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.text import (
    BYTE_UNITS,
    NANOSECONDS_IN,
    digits,
    inert,
    percent,
    scaled,
    unit_filled_by,
)
from pytest_ttnn_perf.core.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


# Lines and tables in the width there is: what is wrapped, cut, left out and coloured.

BOLD, RED, GREEN, YELLOW, CYAN = "1", "31", "32", "33", "36"
#: Of what goes to a file: tables and lines are as wide as they are.
UNLIMITED: Final = sys.maxsize
#: A narrower terminal gets lines of this width, and folds them itself.
NARROWEST: Final = 40


class Style(NamedTuple):
    """How wide a line may be, whether it may have colours, and whether sentences are wrapped.

    They are on a terminal. In a file each is one line, which can be searched.
    """

    width: int = UNLIMITED
    colour: bool = False
    wrap: bool = False


def stdout_style() -> Style:
    """Return the style of what commands print: that of the terminal, or of ``COLUMNS``."""
    terminal = sys.stdout.isatty()
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if not terminal and not os.environ.get("COLUMNS", "").isdecimal():
        return Style()
    width = max(shutil.get_terminal_size((80, 24)).columns, NARROWEST)
    return Style(width, colour=colour, wrap=terminal)


def shown_path(path: Path, cwd: Path) -> str:
    """Return a path as seen from the folder the user stands in, if it is inside that."""
    nearer = Path(os.path.relpath(path, cwd))
    return str(path) if os.pardir in nearer.parts else str(nearer)


class Line(NamedTuple):
    """A line of output; ``bad`` and ``good`` ones may be coloured.

    One that is ``drawn`` is cut where it is too long, others are wrapped.
    """

    text: str
    bad: bool = False
    good: bool = False
    drawn: bool = False


class Painted(NamedTuple):
    """A line that was laid out already: its texts, each in its colour."""

    parts: Sequence[tuple[str, str | None]]


class Fit(NamedTuple):
    """What a column does in a table that is too wide.

    It is cut to no less than ``least`` columns (None: not at all), in the ``middle`` or at its end.
    Columns are left out in the order of ``drop`` (None: never). One that is ``below`` stands below
    its row.
    """

    least: int | None = None
    middle: bool = False
    drop: int | None = None
    below: bool = False


#: A name: its beginning and its end tell more than its middle.
NAME: Final = Fit(least=24, middle=True)
METRIC: Final = Fit(least=14, middle=True)
BELOW: Final = Fit(below=True)
DROPPED: Final = tuple(Fit(drop=order) for order in range(6))


class Row(NamedTuple):
    """The cells of a row with their colours, or a ``title`` as wide as the table."""

    cells: Sequence[str]
    colours: Sequence[str | None] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under their headings, laid out once it is known how wide a line may be.

    Columns in ``right`` are aligned to the right. ``narrower`` is what is laid out instead where
    this one does not fit.
    """

    headings: Sequence[str]
    rows: Sequence[Row]
    right: frozenset[int] = frozenset()
    fits: Sequence[Fit] = ()
    narrower: Callable[[], Table] | None = None

    def lines(self, style: Style = Style()) -> list[str]:  # noqa: B008 (it cannot change)
        """Return the lines of the table."""
        widths = self._natural(padding=_PADDING)
        every = range(len(self.headings))
        if sum(widths) + len(_BETWEEN) * (len(widths) - 1) <= style.width:
            return list(self._laid_out(every, widths, style, below=()))
        if self.narrower is not None:
            return self.narrower().lines(style)
        widths, fits = self._natural(padding=0), self._fits()
        below = [index for index in every if fits[index].below]
        kept = _kept([index for index in every if index not in below], widths, fits, style.width)
        widths = _narrowed(kept, widths, fits, style.width)
        return list(self._laid_out(kept, widths, style, below=below))

    def _fits(self) -> Sequence[Fit]:
        return self.fits or [Fit()] * len(self.headings)

    def _natural(self, *, padding: int) -> list[int]:
        rows = [row.cells for row in self.rows if row.cells]
        columns: Iterable[Sequence[str]] = zip(*rows, strict=True) if rows else ()
        widths = [columns_of(heading) + padding for heading in self.headings]
        for index, column in enumerate(columns):
            widths[index] = max(widths[index], *map(columns_of, column))
        return widths

    def _laid_out(
        self, kept: Sequence[int], widths: Sequence[int], style: Style, *, below: Sequence[int]
    ) -> Iterator[str]:
        fits = self._fits()

        def line(cells: Sequence[str], colours: Sequence[str | None] = ()) -> str:
            shown = []
            for index in kept:
                text = _cut(cells[index], widths[index], middle=fits[index].middle)
                space = " " * (widths[index] - columns_of(text))
                text = coloured(text, colours[index] if colours else None, style)
                shown.append(f"{space}{text}" if index in self.right else f"{text}{space}")
            return _BETWEEN.join(shown).rstrip()

        yield line(self.headings)
        yield line(["-" * width for width in widths])
        for row in self.rows:
            if row.title:
                yield cut_middle(row.title, style.width)
                continue
            yield line(row.cells, row.colours)
            for index in below:
                if row.cells[index] not in NOTHING:
                    text = f"{_INDENT}{row.cells[index]}"
                    yield from wrapped(text, style.width, hanging=len(_INDENT))


#: A part of an output.
Block = str | Line | Painted | Table


def table_of(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    fits: Sequence[Fit] = (),
) -> Table:
    """Return a table of texts that others may have written: all of them are only read."""
    shown = [Row([inert(cell).strip() for cell in row]) for row in rows]
    return Table([inert(heading) for heading in headings], shown, right, fits)


#: A column is this much wider than its heading, where there is room.
_PADDING: Final = 2
_BETWEEN: Final = "  "
_INDENT: Final = "    "
_CUT: Final = "…"
#: What is in a cell that tells nothing.
NOTHING: Final = frozenset({"", "-"})
#: A column that may not be cut is cut to this before it is left out, where nothing else helps.
_LEAST: Final = 6


def _kept(
    columns: Sequence[int], widths: Sequence[int], fits: Sequence[Fit], width: int
) -> list[int]:
    """Return the columns that have room once those that may be cut are."""

    def least(index: int) -> int:
        least = fits[index].least
        return widths[index] if least is None else min(widths[index], least)

    def needed(kept: Sequence[int], room: Callable[[int], int]) -> int:
        return sum(map(room, kept)) + len(_BETWEEN) * (len(kept) - 1)

    kept = list(columns)
    order = [index for index in columns if fits[index].drop is not None]
    for index in sorted(order, key=lambda each: fits[each].drop or 0):
        if needed(kept, least) > width:
            kept.remove(index)
    while len(kept) > 1 and needed(kept, lambda index: min(widths[index], _LEAST)) > width:
        kept.pop()
    return kept


def _narrowed(
    kept: Sequence[int], widths: Sequence[int], fits: Sequence[Fit], width: int
) -> list[int]:
    """Return widths that fit: the widest column that may be cut gives way first."""
    narrow = list(widths)
    given = [fit.least for fit in fits]
    leasts = [own if least is None else least for own, least in zip(widths, given, strict=True)]
    too_wide = sum(widths[index] for index in kept) + len(_BETWEEN) * (len(kept) - 1) - width
    for least in (leasts, [_LEAST] * len(widths)):
        while too_wide > 0 and (able := [index for index in kept if narrow[index] > least[index]]):
            narrow[max(able, key=narrow.__getitem__)] -= 1
            too_wide -= 1
    return narrow


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes.

    >>> columns_of("op"), columns_of("漢字")
    (2, 4)
    """
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _cut(text: str, width: int, *, middle: bool) -> str:
    if middle:
        return cut_id(text, width) if "::" in text else cut_middle(text, width)
    return cut_end(text, width)


def cut_end(text: str, width: int) -> str:
    """Return the beginning of a text that takes more than ``width`` columns.

    >>> cut_end("MatmulDeviceOperation", 9)
    'MatmulDe…'
    """
    return text if columns_of(text) <= width else _first(text, width - 1) + _CUT


def cut_middle(text: str, width: int) -> str:
    """Return the beginning and the end of a text that takes more than ``width`` columns.

    >>> cut_middle("test_model[a-very-long-parameter]", 21)
    'test_model…parameter]'
    """
    if columns_of(text) <= width:
        return text
    end = (width - 1) // 2
    return _first(text, width - 1 - end) + _CUT + _first(text[::-1], end)[::-1]


def cut_id(test: str, width: int) -> str:
    """Return a test id in ``width`` columns: its folders tell least.

    >>> cut_id("models/llama/test_decode.py::test_layer[8]", 34)
    '…/test_decode.py::test_layer[8]'
    """
    file, colons, name = test.partition("::")
    short = f"{_CUT}/{file.rpartition('/')[2]}{colons}{name}" if "/" in file else test
    return test if columns_of(test) <= width else cut_middle(short, width)


def _first(text: str, width: int) -> str:
    if text.isascii():
        return text[: max(width, 0)]
    taken = 0
    for place, character in enumerate(text):
        taken += columns_of(character)
        if taken > width:
            return text[:place]
    return text


#: The space between a number and its unit, at which no line ends.
_UNIT: Final = re.compile(r"(?<=\d) (?=%|(?:[nuµm]?s|[KMG]?i?B)\b)")
_JOINED: Final = "\xa0"
#: How much further the lines that go on are indented: more than what belongs to a line.
_HANGING: Final = 6


def wrapped(text: str, width: int, *, hanging: int | None = None) -> Iterator[str]:
    """Yield a text in lines of at most ``width`` columns, those after the first indented.

    Long test ids in it are cut.

    >>> list(wrapped("  by op: Matmul 1x1x32x4096 +61 us", 26))
    ['  by op: Matmul', '        1x1x32x4096 +61 us']
    """
    if columns_of(text) <= width:
        yield text
        return
    start = len(text) - len(text.lstrip(" "))
    indent = " " * min(start + _HANGING if hanging is None else hanging, width // 2)
    line = " " * min(start, width // 2)
    words = [word.replace(_JOINED, " ") for word in _UNIT.sub(_JOINED, text[start:]).split(" ")]
    for word in map(inert, words):  # each may begin a line
        shown = cut_id(word, width // 2) if "::" in word and len(words) > 1 else word
        for number, piece in enumerate(_pieces(shown, width - len(indent))):
            longer = f"{line} {piece}" if line.strip() else line + piece
            if line.strip() and (number or columns_of(longer) > width):
                yield line.rstrip()
                line = indent + piece
            else:
                line = longer
    yield line.rstrip()


def _pieces(word: str, width: int) -> Iterator[str]:
    """Yield a word whole, or in pieces that have room in a line."""
    while columns_of(word) > width:
        first = _first(word, width)
        if word[len(first) :].startswith("::"):  # no line begins as a command to CI does
            first = first[:-1]
        yield first
        word = inert(word[len(first) :])
    yield word


#: A command at the end of a line, and its words: what is quoted is part of one.
_COMMAND: Final = re.compile(r"(?<=: )(?:[A-Z][A-Z_]*=\S+ )*(?:pytest|ttnn-perf|python) \S.*$")
_WORDS: Final = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"[^"]*")+""")


def fitted(text: str, width: int) -> Iterator[str]:
    """Yield a line as a terminal of this ``width`` shows it.

    A command at its end can still be copied: it is broken between its words alone, and so that a
    shell reads it as one.
    """
    found = _COMMAND.search(text) if columns_of(text) > width else None
    if found is None:
        yield from wrapped(text, width)
        return
    yield from wrapped(text[: found.start()].rstrip(), width)
    indent = " " * (len(text) - len(text.lstrip(" ")) + _HANGING)
    first, *words = map(inert, _WORDS.findall(found[0]))
    line = indent + first
    for word in words:
        if columns_of(f"{line} {word} \\") > width:
            yield f"{line} \\"
            line = f"{indent}  {word}"
        else:
            line = f"{line} {word}"
    yield line


def printed(blocks: Iterable[Block], style: Style) -> Iterator[str]:
    """Yield the lines of an output as they are printed.

    What others wrote is only read: none of it moves the cursor, or is a command to CI.
    """
    for block in blocks:
        if isinstance(block, Table):
            yield from block.lines(style)
            continue
        if isinstance(block, Painted):
            yield "".join(coloured(inert(text), code, style) for text, code in block.parts)
            continue
        line = Line(block) if isinstance(block, str) else block
        text = inert(line.text)
        texts: Iterable[str] = [text]
        if style.wrap:
            texts = [cut_end(text, style.width)] if line.drawn else fitted(text, style.width)
        code = RED if line.bad else GREEN if line.good else None
        yield from (coloured(each, code, style) for each in texts)


def coloured(text: str, code: str | None, style: Style) -> str:
    """Return a text in a colour, where there are colours."""
    return f"\x1b[{code}m{text}\x1b[0m" if style.colour and code and text else text


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
