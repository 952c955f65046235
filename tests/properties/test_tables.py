"""Laws of tables: one that is laid out here looks as tabulate lays it out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tabulate import tabulate

from pytest_ttnn_perf.report.numbers import table_lines
from tests.properties.strategies import MANY

_CELLS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
_WIDE = st.text(st.sampled_from("a é漢字"), max_size=6)


@st.composite
def tables(draw: st.DrawFn, cells: st.SearchStrategy[str]) -> tuple[list[str], list[list[str]]]:
    """Draw the headings of a table, and its rows."""
    columns = draw(st.integers(1, 4))
    row = st.lists(cells, min_size=columns, max_size=columns)
    return draw(row), draw(st.lists(row, min_size=1, max_size=5))


@MANY
@given(tables(_CELLS) | tables(_WIDE), st.sets(st.integers(0, 3)))
def test_a_table_looks_as_tabulate_lays_it_out(
    table: tuple[list[str], list[list[str]]], right: set[int]
) -> None:
    headings, rows = table
    align = ["right" if index in right else "left" for index in range(len(headings))]
    expected = tabulate(
        rows, headers=headings, tablefmt="simple", disable_numparse=True, colalign=align
    )
    found = table_lines(headings, rows, right=frozenset(right))
    lines = [line.rstrip() for line in expected.split("\n")]
    while lines and not lines[-1]:
        lines.pop()  # a last row without a word is no line of the one, and a line of the other
    assert found[: len(lines)] == lines
    assert not any(found[len(lines) :])
