"""The names that Tenstorrent's repositories have for systems: SKUs, device names, card types."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

WORMHOLE: Final = "wormhole_b0"
BLACKHOLE: Final = "blackhole"


class System(NamedTuple):
    """An architecture and a board as hardware keys spell them; None for what a name leaves open."""

    arch: str
    board: str | None = None


def system_of(name: str) -> System | None:
    """Return the system that a name stands for, of any of the repositories.

    >>> system_of("wh_llmbox_perf"), system_of("N150"), system_of("wormhole")
    (System(arch='wormhole_b0', board='t3k'), System(arch='wormhole_b0', board='n150'), \
System(arch='wormhole_b0', board=None))
    >>> system_of("my-host") is None
    True
    """
    plain = _QUALIFIER.sub("", name.strip().lower().replace("-", "_"))
    return _SYSTEMS.get(plain) or _SYSTEMS.get(_PREFIX.sub("", plain))


_PREFIX: Final = re.compile(r"^(?:wh|bh|wormhole|blackhole)_")
#: What CI adds to a SKU: the same hardware in another pool of machines.
_QUALIFIER: Final = re.compile(r"(?:_(?:perf|civ2|viommu))+$")

_SYSTEMS: Final = {
    "wormhole": System(WORMHOLE),
    "wormhole_b0": System(WORMHOLE),
    "blackhole": System(BLACKHOLE),
    "n150": System(WORMHOLE, "n150"),
    "n300": System(WORMHOLE, "n300"),
    "t3k": System(WORMHOLE, "t3k"),
    "t3000": System(WORMHOLE, "t3k"),
    "llmbox": System(WORMHOLE, "t3k"),
    "galaxy": System(WORMHOLE, "galaxy"),
    "galaxy_wh": System(WORMHOLE, "galaxy"),
    "glx": System(WORMHOLE, "galaxy"),
    "tg": System(WORMHOLE, "galaxy"),
    "p100": System(BLACKHOLE, "p100"),
    "p150": System(BLACKHOLE, "p150"),
    "p150x2": System(BLACKHOLE, "p150_x2"),
    "p150_x2": System(BLACKHOLE, "p150_x2"),
    "p150x4": System(BLACKHOLE, "p150_x4"),
    "p150_x4": System(BLACKHOLE, "p150_x4"),
    "p150x8": System(BLACKHOLE, "p150_x8"),
    "p150_x8": System(BLACKHOLE, "p150_x8"),
    "loudbox": System(BLACKHOLE, "p150_x8"),
    "p300": System(BLACKHOLE, "p300"),
    "p300x2": System(BLACKHOLE, "p300_x2"),
    "p300_x2": System(BLACKHOLE, "p300_x2"),
    "quietbox_2": System(BLACKHOLE, "p300_x2"),
    "bhglx": System(BLACKHOLE, "blackhole_galaxy"),
    "galaxy_bh": System(BLACKHOLE, "blackhole_galaxy"),
    "bh_galaxy": System(BLACKHOLE, "blackhole_galaxy"),
    "bh_glx": System(BLACKHOLE, "blackhole_galaxy"),
    "blackhole_galaxy": System(BLACKHOLE, "blackhole_galaxy"),
}
