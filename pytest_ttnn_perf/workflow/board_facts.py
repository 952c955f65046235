"""What a snapshot of tt-smi says about the boards: recorded beside a run, and never compared."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_ttnn_perf.model.device_log import TtSmi
    from pytest_ttnn_perf.model.hardware import Scalar

#: A card by its number, without the letter of its build, e.g. "a" of p150a.
_CARD: Final = re.compile(r"([np][0-9]{3})[a-z]?")
#: The systems as TTNN names them, by their cards and how many chips these have together. What two
#: n300 are depends on the cables between them, which tt-smi does not show.
_SYSTEMS: Final = {
    ("n300", 2): "n300",
    ("n300", 8): "t3k",
    ("p100", 1): "p100",
    ("p150", 1): "p150",
    ("p150", 2): "p150_x2",
    ("p150", 4): "p150_x4",
    ("p150", 8): "p150_x8",
    ("p300", 2): "p300",
    ("p300", 4): "p300_x2",
}
#: Those that TTNN names the same however many chips there are.
_OF_ANY_SIZE: Final = {
    "n150": "n150",
    "tt-galaxy-wh": "galaxy",
    "tt-galaxy-bh": "blackhole_galaxy",
}


def board_facts(snapshot: TtSmi) -> Mapping[str, Scalar]:
    """Return what the snapshot tells, and nothing that it does not.

    Of several boards, the fastest clock, the highest power and temperature; throttled if one is.
    """
    boards = snapshot.boards
    telemetry = [board.telemetry for board in boards]
    types = Counter(board.board_type for board in boards if board.board_type is not None)
    firmware = {board.firmware.bundle for board in boards if board.firmware.bundle is not None}
    throttlers = [each.throttler for each in telemetry if each.throttler is not None]
    facts: dict[str, Scalar] = {
        "boards": ", ".join(f"{count} x {name}" for name, count in types.items()) or None,
        "firmware": ", ".join(sorted(firmware)) or None,
        "driver": snapshot.driver,
        "tt_smi": snapshot.tt_smi,
        "clock_mhz": _largest(each.clock_mhz for each in telemetry),
        "power_w": _largest(each.power_w for each in telemetry),
        "temperature_c": _largest(each.temperature_c for each in telemetry),
        "throttled": any(throttlers) if throttlers else None,
        "device_processes": snapshot.processes,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def board_of(snapshot: TtSmi) -> str | None:
    """Return the system as hardware keys name it; None for one that has no name, or is not told.

    tt-smi lists chips: a card of two chips stands there twice, "n300 L" and "n300 R".
    """
    cards = {_card(board.board_type) for board in snapshot.boards}
    if len(cards) != 1:
        return None
    card = cards.pop()
    return _OF_ANY_SIZE.get(card) or _SYSTEMS.get((card, len(snapshot.boards)))


def _card(board_type: str | None) -> str:
    """Return the card that a chip is on.

    >>> _card("n300 L"), _card("p150a"), _card("tt-galaxy-wh L")
    ('n300', 'p150', 'tt-galaxy-wh')
    """
    name = (board_type or "").lower().partition(" ")[0]
    found = _CARD.fullmatch(name)
    return found[1] if found else name


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
