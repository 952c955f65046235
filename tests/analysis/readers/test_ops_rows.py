"""Rows of an op table: cores, replays, windows, and new architectures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.ops.regions import window
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.ops import TraceReplays
from tests.analysis.readers.ops_text import (
    FW,
    GAP,
    KERNEL,
    Row,
    op,
    read,
    signpost,
    text,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.core.ops import OpTable


DM = "DEVICE QUASAR_DM KERNEL DURATION [ns]"
TRISC = "DEVICE QUASAR_NEO_TRISC KERNEL DURATION [ns]"
DM_FW = "DEVICE DM FW DURATION [ns]"
TRISC_FW = "DEVICE TRISC FW DURATION [ns]"
LEAST = ("OP CODE", "OP TYPE", "DEVICE ID", "DEVICE ARCH")


def row(**times: str) -> Row:
    """Return an op with times of its own, by the names of the columns here."""
    plain = {k: v for k, v in op(device_arch="quasar").items() if k not in {KERNEL, FW, GAP}}
    columns = {"dm": DM, "trisc": TRISC, "dm_fw": DM_FW, "trisc_fw": TRISC_FW}
    return plain | {columns[name]: cell for name, cell in times.items()}


def test_the_slower_processor_counts(tmp_path: Path) -> None:
    rows = [
        row(dm="300", trisc="1000", dm_fw="350", trisc_fw="1100"),
        row(dm="500", trisc="", dm_fw="600"),
        row(),
    ]
    table = read(tmp_path, text(rows, header=(*LEAST, DM, TRISC, DM_FW, TRISC_FW, "X")))
    assert table.columns.kernel_ns == [1000.0, 500.0]
    assert table.columns.fw_ns == [1100.0, 600.0]
    assert table.dropped == {"no kernel duration": 1}
    assert table.kernel_time == f"the longer of {DM} and {TRISC}"
    assert (table.format, table.arch) == ("v2.1, Quasar", "quasar")


def replay(number: int, codes: str, *, device: int = 0, trace: int = 0) -> list[Row]:
    """Return the ops of one replay, one letter each."""
    return [op(code, device=device, trace=trace, replay=number) for code in codes]


def test_traces_and_devices_are_apart(tmp_path: Path) -> None:
    rows = [
        *replay(1, "AB", device=1),
        *replay(1, "C", device=0),
        *replay(1, "A", device=1, trace=5),
        *replay(2, "AB", device=1),
        *replay(2, "CC", device=0),
    ]
    assert read(tmp_path, text(rows)).traces == (
        TraceReplays(0, 0, 2, alike=1),
        TraceReplays(1, 0, 2, alike=2),
        TraceReplays(1, 5, 1, alike=1),
    )


def test_the_device_says_in_which_order_a_replay_ran(tmp_path: Path) -> None:
    def at(cycle: object, code: str, number: int) -> Row:
        return op(code, cycle=cycle, trace=0, replay=number, attributes=f"{code}{number}")

    rows = [
        op("X", cycle=900),
        at(30, "C", 1), at(10, "A", 1), at(50, "B", 2),
        signpost("between"),
        at(20, "B", 1), at(40, "A", 2), at(60, "C", 2),
        op("Y", cycle=1),
    ]  # fmt: skip
    table = read(tmp_path, text(rows))
    ops = [(only.signature.op, only.replay, only.attributes) for only in table]
    assert ops == [
        ("X", None, ""), ("A", 1, "A1"), ("B", 1, "B1"), ("A", 2, "A2"),
        ("C", 1, "C1"), ("B", 2, "B2"), ("C", 2, "C2"), ("Y", None, ""),
    ]  # fmt: skip
    assert [trace.complete for trace in table.traces] == [True]
    assert table.signposts[0].position == 4


@pytest.fixture
def table(tmp_path: Path) -> OpTable:
    """Return a capture of two prefills around a decode, and of what is before and after them."""
    words = "a PREFILL b b PREFILL_END c DECODE d g inner d PREFILL e PREFILL_END f"
    rows = [
        op(word, kernel="" if word == "g" else 1000) if len(word) == 1 else signpost(word)
        for word in words.split()
    ]
    return read(tmp_path, text(rows))


def codes(table: OpTable) -> str:
    """Return the codes of the ops, one letter each."""
    return "".join(only.signature.op for only in table)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("PREFILL", "PREFILL_END", "bbe"),
        ("DECODE", None, "ddef"),
        (None, "DECODE", "abbc"),
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
        ("PREFILL", "DECODE", "the last signpost 'PREFILL' is not followed by 'DECODE'"),
    ],
)
def test_a_window_that_is_not_there(
    table: OpTable, start: str | None, end: str | None, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        window(table, start, end)
