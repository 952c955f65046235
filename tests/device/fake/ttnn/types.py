"""The small types around devices."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from . import _machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Arch(enum.Enum):
    WORMHOLE_B0 = 2
    BLACKHOLE = 3
    QUASAR = 4


class DispatchCoreType(enum.Enum):
    WORKER = 0
    ETH = 1


class DispatchCoreAxis(enum.Enum):
    ROW = 0
    COL = 1


@dataclass(frozen=True, slots=True)
class DispatchCoreConfig:
    type: DispatchCoreType | None = None
    axis: DispatchCoreAxis | None = None
    fabric_tensix_config: object = None

    def __post_init__(self) -> None:
        # The defaults are those of the hardware, so even this asks for it.
        arch = _machine.context().script.arch
        usual = DispatchCoreAxis.COL if arch == "blackhole" else DispatchCoreAxis.ROW
        object.__setattr__(self, "type", self.type or DispatchCoreType.WORKER)
        object.__setattr__(self, "axis", self.axis or usual)


class MeshShape:
    """Rows and columns."""

    def __init__(self, *extents: int | Sequence[int]) -> None:
        parts = [[part] if isinstance(part, int) else part for part in extents]
        self._extents = tuple(extent for part in parts for extent in part)

    def __iter__(self) -> Iterator[int]:
        return iter(self._extents)

    def __getitem__(self, index: int) -> int:
        return self._extents[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeshShape) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self._extents)

    def __repr__(self) -> str:
        return f"MeshShape({list(self)})"

    def dims(self) -> int:
        return len(self._extents)

    def mesh_size(self) -> int:
        return prod(self._extents)


@dataclass(frozen=True, slots=True)
class CoreCoord:
    x: int
    y: int
