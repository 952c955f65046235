"""Systems as hardware keys spell them: by the names that repositories use, or by their cards."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import did_you_mean
from pytest_ttnn_perf.records.hardware import UNKNOWN, Hardware

if TYPE_CHECKING:
    from collections.abc import Iterable

WORMHOLE: Final = "wormhole_b0"
BLACKHOLE: Final = "blackhole"
#: As TTNN names them.
ARCHITECTURES: Final = (WORMHOLE, BLACKHOLE, "quasar")


class System(NamedTuple):
    """An architecture and a board as hardware keys spell them; None for a board left open."""

    arch: str
    board: str | None = None


def system_of(name: str) -> System | None:
    """Return the system that a name stands for: a SKU, a device name or a card type.

    >>> system_of("wh_llmbox_perf"), system_of("P150b"), system_of("wormhole")
    (System(arch='wormhole_b0', board='t3k'), System(arch='blackhole', board='p150'), \
System(arch='wormhole_b0', board=None))
    >>> system_of("my-host") is None
    True
    """
    plain = _QUALIFIER.sub("", name.strip().lower().replace("-", "_"))
    if plain in _BY_NAME:
        return _BY_NAME[plain]
    prefix, _, rest = plain.partition("_")
    found = _BY_NAME.get(_without_build(rest if prefix in _PREFIXES else plain))
    # An LLMBox of Blackhole is another system than one of Wormhole.
    return found if found is None or _PREFIXES.get(prefix, found.arch) == found.arch else None


def system_of_chips(cards: Iterable[str]) -> System | None:
    """Return the system of a machine by the card that each of its chips is on.

    Cards are named as tt-smi or the driver does. None for cards of several kinds, or unknown ones.

    >>> system_of_chips(["n300 L", "n300 R"]), system_of_chips(["galaxy-wormhole"] * 32)
    (System(arch='wormhole_b0', board='n300'), System(arch='wormhole_b0', board='galaxy'))
    >>> system_of_chips(["p150a"] * 3)
    System(arch='blackhole', board=None)
    """
    chips = [card_of(card) for card in cards]
    if len(set(chips)) != 1 or chips[0] not in _BY_CARD:
        return None
    arch, boards = _BY_CARD[chips[0]]
    return System(arch, boards if isinstance(boards, str) else boards.get(len(chips)))


def typed_hardware(key: str) -> Hardware:
    """Return the hardware of a key that somebody typed: one that runs can have.

    Raises:
        UsageError: it is none, or its board is not of its architecture.
    """
    hardware = Hardware.from_key(key)
    if hardware is None:
        message = f"expected a hardware key such as wormhole_b0-n150-1x1, found {key!r}"
        raise UsageError(message)
    if hardware.arch not in {*ARCHITECTURES, "host", UNKNOWN}:
        meant = did_you_mean(hardware.arch, ARCHITECTURES)
        expected = f"expected one of {', '.join(ARCHITECTURES)}"
        message = f"{key}: {expected} as architecture, found {hardware.arch!r}{meant}"
        raise UsageError(message)
    of_board = _BOARDS.get(hardware.board)
    if of_board is not None and hardware.arch not in {of_board.arch, UNKNOWN}:
        message = f"{key}: {hardware.board} is a board of {of_board.arch}"
        raise UsageError(message)
    return hardware


def card_of(name: str) -> str:
    """Return a card without the side of its chip and the letter of its build.

    >>> card_of("n300 L"), card_of("p150a"), card_of("tt-galaxy-wh L")
    ('n300', 'p150', 'tt-galaxy-wh')
    """
    return _without_build(name.strip().lower().partition(" ")[0])


def _without_build(name: str) -> str:
    found = _CARD.fullmatch(name)
    return found[1] if found else name


#: A card by its number, and the letter of its build.
_CARD: Final = re.compile(r"([np][0-9]{3})[a-z]?")
#: What names of systems begin with, and the architecture that it stands for.
_PREFIXES: Final = {
    **dict.fromkeys(("wh", "wormhole"), WORMHOLE),
    **dict.fromkeys(("bh", "blackhole"), BLACKHOLE),
}
#: What CI adds to a SKU: the same hardware in another pool of machines.
_QUALIFIER: Final = re.compile(r"(?:_(?:perf|civ2|viommu))+$")

#: What TTNN names a system by: the card, and how many chips all cards have together, or one name
#: for any number. What two n300 are depends on the cables between them.
_BY_CARD: Final[dict[str, tuple[str, str | dict[int, str]]]] = {
    "n150": (WORMHOLE, "n150"),
    "n300": (WORMHOLE, {2: "n300", 8: "t3k"}),
    "p100": (BLACKHOLE, {1: "p100"}),
    "p150": (BLACKHOLE, {1: "p150", 2: "p150_x2", 4: "p150_x4", 8: "p150_x8"}),
    "p300": (BLACKHOLE, {2: "p300", 4: "p300_x2"}),
    # As the driver names them, and as tt-smi does.
    "galaxy-wormhole": (WORMHOLE, "galaxy"),
    "tt-galaxy-wh": (WORMHOLE, "galaxy"),
    "galaxy-blackhole": (BLACKHOLE, "blackhole_galaxy"),
    "tt-galaxy-bh": (BLACKHOLE, "blackhole_galaxy"),
}
#: What repositories call boards beside their names in keys.
_ALIASES: Final = {
    "t3000": "t3k",
    "llmbox": "t3k",
    "galaxy_wh": "galaxy",
    "glx": "galaxy",
    "tg": "galaxy",
    "p150x2": "p150_x2",
    "p150x4": "p150_x4",
    "p150x8": "p150_x8",
    "loudbox": "p150_x8",
    "p300x2": "p300_x2",
    "quietbox_2": "p300_x2",
    "bhglx": "blackhole_galaxy",
    "galaxy_bh": "blackhole_galaxy",
    "bh_galaxy": "blackhole_galaxy",
    "bh_glx": "blackhole_galaxy",
    "blackhole_glx": "blackhole_galaxy",
}
_BOARDS: Final = {
    board: System(arch, board)
    for arch, boards in _BY_CARD.values()
    for board in ((boards,) if isinstance(boards, str) else boards.values())
}
_BY_NAME: Final = {
    "wormhole": System(WORMHOLE),
    WORMHOLE: System(WORMHOLE),
    BLACKHOLE: System(BLACKHOLE),
    **_BOARDS,
    **{alias: _BOARDS[board] for alias, board in _ALIASES.items()},
}
