"""The system of this machine as its driver names it; no chip is opened for that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.device.chips import visible_chips
from pytest_ttnn_perf.device.environment import devices_of, is_simulated
from pytest_ttnn_perf.device.host import ROOT
from pytest_ttnn_perf.records.systems import System, card_of, system_of_chips

if TYPE_CHECKING:
    from collections.abc import Mapping


#: A chip's card in sysfs, since version 2.7 of the driver.
_CARD_FILES: Final = "sys/class/tenstorrent/tenstorrent!*/tt_card_type"
#: Cards of which the driver shows one of two chips: the other one is reached through it.
_OF_TWO_CHIPS: Final = frozenset({"n300"})


def system_here(environment: Mapping[str, str]) -> System | None:
    """Return what a process with this environment would run on; None where that is not known.

    Where it may use only some of the chips, nothing is known of the board: TTNN names a system by
    the chips that it sees.
    """
    root = Path(environment.get(ROOT) or "/")
    if is_simulated(environment):
        return None
    files = {_chip(file): file for file in root.glob(_CARD_FILES)}
    cards = [card_of(_text(file)) for file in files.values()]
    system = system_of_chips(
        card for card in cards for _ in range(2 if card in _OF_TWO_CHIPS else 1)
    )
    if system and visible_chips(environment, devices_of(environment)) != tuple(sorted(files)):
        return System(system.arch)
    return system


def _chip(file: Path) -> int:
    number = file.parent.name.rpartition("!")[2]
    return int(number) if number.isdecimal() else -1


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
