"""Lines and tables in the width there is: what is wrapped, cut, left out and coloured."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import combining, east_asian_width

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import inert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
