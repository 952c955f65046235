"""The system of this machine as its driver names it; no chip is opened for that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.device.chips import visible_chips
from pytest_ttnn_perf.device.environment import devices_of, is_simulated
from pytest_ttnn_perf.device.host import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping


class System(NamedTuple):
    """An architecture and a board as hardware keys spell them; None for what is not known."""

    arch: str | None = None
    board: str | None = None


#: A chip's card in sysfs, since version 2.7 of the driver.
_CARD_FILES: Final = "sys/class/tenstorrent/tenstorrent!*/tt_card_type"
#: A card's number, without the letter of its build, e.g. "a" of p150a.
_NUMBERED: Final = re.compile(r"([np][0-9]{3})[a-z]?")
_WORMHOLE: Final = "wormhole_b0"
_BLACKHOLE: Final = "blackhole"
#: The systems as TTNN names them, by their cards and how many chips with PCIe these have together:
#: an n300 has one for two chips. What two n300 are depends on the cables between them.
_SYSTEMS: Final = {
    ("n300", 1): "n300",
    ("n300", 4): "t3k",
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
    "galaxy-wormhole": "galaxy",
    "galaxy-blackhole": "blackhole_galaxy",
}
_ARCHITECTURES: Final = {
    **dict.fromkeys(("n150", "n300", "galaxy-wormhole"), _WORMHOLE),
    **dict.fromkeys(("p100", "p150", "p300", "galaxy-blackhole"), _BLACKHOLE),
}


def system_here(environment: Mapping[str, str]) -> System:
    """Return what a process with this environment would run on.

    Where it may use only some of the chips, nothing is known of the board: TTNN names a system by
    the chips that it sees.
    """
    root = Path(environment.get(ROOT) or "/")
    if is_simulated(environment):
        return System()
    files = {_chip(file): file for file in root.glob(_CARD_FILES)}
    cards = {_card(file) for file in files.values()}
    if len(cards) != 1:
        return System()
    card = cards.pop()
    arch = _ARCHITECTURES.get(card)
    if visible_chips(environment, devices_of(environment)) != tuple(sorted(files)):
        return System(arch)
    return System(arch, _OF_ANY_SIZE.get(card) or _SYSTEMS.get((card, len(files))))


def _chip(file: Path) -> int:
    number = file.parent.name.rpartition("!")[2]
    return int(number) if number.isdecimal() else -1


def _card(file: Path) -> str:
    try:
        name = file.read_text(encoding="utf-8", errors="replace").strip().lower()
    except OSError:
        return ""
    numbered = _NUMBERED.fullmatch(name)
    return numbered[1] if numbered else name
