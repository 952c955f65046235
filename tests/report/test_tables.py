"""Laws of tables and lines: a table looks as tabulate lays it out, and nothing is too wide."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.core.text import inert
from pytest_ttnn_perf.report.tables import (
    METRIC,
    NAME,
    NARROWEST,
    Fit,
    Line,
    Style,
    columns_of,
    fitted,
    printed,
    table_of,
)
from tests.properties.strategies import SOME

if TYPE_CHECKING:
    from pytest_ttnn_perf.report.tables import Block

#: Wide and combining letters, line breaks, colours of a terminal, and words that fill a line.
_HOSTILE = st.text(st.sampled_from("a é漢字ё\u0301\n\t\x1b…[]:-/#"), max_size=200) | st.text(
    max_size=60
)
_IDS = st.builds("{}::{}[{}]".format, _HOSTILE, _HOSTILE, _HOSTILE)
_FITS = st.builds(
    Fit,
    least=st.none() | st.integers(4, 30),
    middle=st.booleans(),
    drop=st.none() | st.integers(0, 3),
    below=st.booleans(),
)
_WIDTHS = st.integers(NARROWEST, 200)


@st.composite
def tables(draw: st.DrawFn, cells: st.SearchStrategy[str]) -> tuple[list[str], list[list[str]]]:
    """Draw the headings of a table, and its rows."""
    columns = draw(st.integers(1, 4))
    row = st.lists(cells, min_size=columns, max_size=columns)
    return draw(row), draw(st.lists(row, min_size=1, max_size=5))


@SOME
@given(tables(_HOSTILE), st.lists(_FITS, min_size=4, max_size=4), _WIDTHS)
def test_no_table_is_wider_than_the_terminal(
    table: tuple[list[str], list[list[str]]], fits: list[Fit], width: int
) -> None:
    headings, rows = table
    found = table_of(headings, rows, fits=fits[: len(headings)]).lines(Style(width))
    assert max(map(columns_of, found)) <= width
    assert not any("\n" in line or "\x1b" in line for line in found)


def test_names_are_not_cut_where_they_then_read_alike() -> None:
    names = [f"device_kernel_time_{kind}.prefill" for kind in ("matmul", "attention", "norm")]
    rows = [("test_decode[32]", name, "7.514 ms") for name in names]
    table = table_of(("test", "metric", "now"), rows, fits=(NAME, METRIC, Fit()))
    shown = [line.split()[1] for line in table.lines(Style(50))[2:]]
    assert len(set(shown)) == len(names)
    assert all("…" in name for name in shown)


@SOME
@given(_IDS | _HOSTILE, tables(_HOSTILE), _WIDTHS)
def test_no_line_is_a_command_to_a_terminal_or_to_ci(
    text: str, table: tuple[list[str], list[list[str]]], width: int
) -> None:
    """Wherever lines are broken, and whatever is left out before a cell."""
    cells = table_of(*table, fits=[Fit(least=4, middle=True, drop=0)] * len(table[0]))
    blocks: list[Block] = [text, f"  accept: pytest {text}", Line(text), cells]
    for line in printed(blocks, Style(width, wrap=True)):
        assert line.isprintable()
        assert not line.lstrip().startswith("::")
        assert not re.search(r"##[a-z]*\[", line)


@SOME
@given(_IDS, _WIDTHS)
def test_a_command_can_be_copied_from_a_narrow_terminal(test: str, width: int) -> None:
    """It is one line, which the terminal breaks."""
    test = inert("".join(test.split()))  # what cannot be seen is spelt before
    command = ["pytest", test, "--ttnn-perf-update=all", "--ttnn-perf-reason", "more layers"]
    (line,) = fitted(f"  accept: {shlex.join(command)}", width)
    assert shlex.split(line.partition(" accept:")[2]) == command
