"""A snapshot of tt-smi: what is recorded of it, and which system it is of."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.readers.tt_smi import Board, TtSmi, board_facts, board_of


def throttled(*throttlers: int | None) -> object:
    boards = (Board(throttler=each) for each in throttlers)
    return board_facts(TtSmi(tuple(boards))).get("throttled", "unknown")


def test_all_that_a_snapshot_tells() -> None:
    snapshot = TtSmi(
        (
            Board("n300 L", "19.9.0", 800, 16, 41.5, 0),
            Board("n300 R", "18.2.0", 1000, 12, 39),
            Board("n300 L", "19.9.0"),
        ),
        driver="TT-KMD 2.0.0",
        tt_smi="3.1",
        processes=0,
    )

    assert board_facts(snapshot) == {
        "boards": "2 x n300 L, 1 x n300 R",
        "firmware": "18.2.0, 19.9.0",
        "driver": "TT-KMD 2.0.0",
        "tt_smi": "3.1",
        "clock_mhz": 1000,
        "power_w": 16,
        "temperature_c": 41.5,
        "throttled": False,
        "device_processes": 0,
    }


@pytest.mark.parametrize("boards", [(), (Board(), Board())], ids=["none", "silent"])
def test_what_is_not_told_is_no_fact(boards: tuple[Board, ...]) -> None:
    assert board_facts(TtSmi(boards)) == {}


def test_throttled_if_one_board_is() -> None:
    assert [throttled(0, 2), throttled(0, None), throttled(None)] == [True, False, "unknown"]


@pytest.mark.parametrize(
    ("name", "cards"),
    [
        ("n150", ["n150 L"]),
        ("n300", ["n300 L", "n300 R"]),
        ("t3k", ["n300 L", "n300 R"] * 4),
        ("p100", ["p100a"]),
        ("p150_x2", ["P150a", "p150c"]),
        ("p150_x8", ["p150a"] * 8),
        ("p300", ["p300a"] * 2),
        ("p300_x2", ["p300c"] * 4),
        ("galaxy", ["tt-galaxy-wh L"] * 32),
        ("blackhole_galaxy", ["tt-galaxy-bh"] * 32),
        *(
            (None, cards)
            for cards in (
                [], [None], ["n300 L"], ["n300 L", "n300 R"] * 2, ["p150a"] * 3, ["n150", "n300"],
                ["n150", None], ["p100a"] * 2, ["x999"], ["n150 L", "wh_4u L"],
            )
        ),
    ],
)  # fmt: skip
def test_the_system_by_its_cards(name: str | None, cards: list[str | None]) -> None:
    assert board_of(TtSmi(tuple(map(Board, cards)))) == name
