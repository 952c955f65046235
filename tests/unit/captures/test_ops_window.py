"""The part of a capture between signposts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.analysis.captures.ops_rows import window
from pytest_ttnn_perf.records.ops import Signpost
from tests.unit.captures.ops_text import op, read, signpost, text

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.records.ops import OpTable


@pytest.fixture
def table(tmp_path: Path) -> OpTable:
    """Return a capture of two prefills around a decode, and of what is before and after them."""
    words = "a PREFILL b b PREFILL_END c DECODE d g inner d PREFILL e PREFILL_END f"
    rows = [
        op(word, kernel="" if word == "g" else 1000) if len(word) == 1 else signpost(word)
        for word in words.split()
    ]
    return read(tmp_path, text(rows))


def test_where_each_of_several_windows_begins(table: OpTable) -> None:
    assert window(table, "PREFILL", None).calls == (0, 2)
    assert window(table, "DECODE", None).calls == ()


def codes(table: OpTable) -> str:
    """Return the codes of the ops, one letter each."""
    return "".join(only.signature.op for only in table)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("PREFILL", None, "bbe"),
        ("PREFILL", "PREFILL_END", "bbe"),
        ("DECODE", None, "ddef"),
        ("DECODE", "PREFILL", "dd"),
        (None, "DECODE", "abbc"),
        ("PREFILL_END", None, "cddef"),
        ("PREFILL", "PREFILL", "bbcdd"),
        (None, None, "abbcddef"),
    ],
)
def test_what_lies_between(
    table: OpTable, start: str | None, end: str | None, expected: str
) -> None:
    part = window(table, start, end)
    assert codes(part) == expected
    assert part.rows == table.rows == 15
    assert len(part) + len(part.signposts) + sum(part.dropped.values()) == part.rows


def test_what_is_left_out_is_counted(table: OpTable) -> None:
    part = window(table, "DECODE", "PREFILL")
    assert part.dropped == {"no kernel duration": 1, "outside the window": 11}
    assert part.signposts == (Signpost("inner", 1),)


def test_signposts_inside_keep_their_places(table: OpTable) -> None:
    part = window(table, "PREFILL_END", None)
    assert part.signposts == (
        Signpost("DECODE", 1), Signpost("inner", 2), Signpost("PREFILL", 3),
        Signpost("PREFILL_END", 4),
    )  # fmt: skip


def test_what_could_not_be_read_is_told_of_the_window_that_it_is_in(table: OpTable) -> None:
    (unread,) = table.unread
    assert (unread.line, unread.signposts) == (10, 3)
    assert window(table, "PREFILL", None).unread == ()
    assert window(table, "DECODE", "PREFILL").unread == (unread._replace(signposts=0),)
    inner = window(window(table, "PREFILL_END", None), "DECODE", None)
    assert inner.unread == (unread._replace(signposts=0),)


def test_replays_are_judged_by_what_is_inside(tmp_path: Path) -> None:
    rows = [op(code, trace=0, replay=number) for number in (1, 2) for code in "ab"]
    table = read(tmp_path, text([*rows[:3], signpost("CUT"), rows[3]]))
    assert table.traces[0].complete
    assert not window(table, None, "CUT").traces[0].complete


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [
        ("PREFIL", None, "no signpost 'PREFIL'; its signposts: 'PREFILL', 'PREFILL_END', 'DECODE'"),
        ("DECODE", "END", "no signpost 'END'; its signposts: 'PREFILL', "),
        ("PREFILL", "DECODE", "the last signpost 'PREFILL' is not followed by 'DECODE'"),
    ],
)
def test_a_window_that_is_not_there(
    table: OpTable, start: str | None, end: str | None, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        window(table, start, end)


def test_a_capture_without_signposts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no signpost 'A'; its signposts: none"):
        window(read(tmp_path, text([op()])), "A", None)
