"""Replays of a trace: their order, and whether all of them were seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.records.ops import TraceReplays
from tests.unit.captures.ops_text import HEADER, REPLAY, Row, op, read, signpost, text

if TYPE_CHECKING:
    from pathlib import Path


def replay(number: int, codes: str, *, device: int = 0, trace: int = 0) -> list[Row]:
    """Return the ops of one replay, one letter each."""
    return [op(code, device=device, trace=trace, replay=number) for code in codes]


@pytest.mark.parametrize(
    ("replays", "complete"),
    [(["AB", "AB", "AB"], True), (["AB", "AB", "A"], False), (["AB", "BA"], False)],
    ids=["equal", "one lacks an op", "other ops"],
)
def test_replays_are_complete_if_they_are_equal(
    tmp_path: Path, replays: list[str], complete: bool
) -> None:
    rows = [row for number, codes in enumerate(replays, start=1) for row in replay(number, codes)]
    (found,) = read(tmp_path, text([op("A"), *rows])).traces
    assert found == TraceReplays(0, 0, len(replays), complete=complete)


def test_a_dropped_op_makes_its_replay_incomplete(tmp_path: Path) -> None:
    rows = [*replay(1, "AB"), *replay(2, "A"), op("B", kernel=-1, trace=0, replay=2)]
    table = read(tmp_path, text(rows))
    assert [trace.complete for trace in table.traces] == [False]
    assert table.dropped == {"negative kernel duration": 1}


def test_traces_and_devices_are_apart(tmp_path: Path) -> None:
    rows = [
        *replay(1, "AB", device=1),
        *replay(1, "C", device=0),
        *replay(1, "A", device=1, trace=5),
        *replay(2, "AB", device=1),
        *replay(2, "CC", device=0),
    ]
    assert read(tmp_path, text(rows)).traces == (
        TraceReplays(0, 0, 2, complete=False),
        TraceReplays(1, 0, 2, complete=True),
        TraceReplays(1, 5, 1, complete=True),
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


def test_without_cycles_the_file_says_in_which_order(tmp_path: Path) -> None:
    rows = [*replay(1, "BA"), *replay(2, "BA")]
    rows[0]["DEVICE FW START CYCLE"] = ""
    table = read(tmp_path, text(rows))
    assert [only.signature.op for only in table] == ["B", "A", "B", "A"]


def test_replays_that_are_not_told_apart_are_not_counted(tmp_path: Path) -> None:
    header = tuple(name for name in HEADER if name != REPLAY)
    table = read(tmp_path, text([*replay(1, "AB"), *replay(2, "A")], header=header))
    assert table.traces == ()
    assert table.columns.trace == [0, 0, 0]
