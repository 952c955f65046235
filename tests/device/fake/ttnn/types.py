"""The small types around devices."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Arch(enum.Enum):
    WORMHOLE_B0 = 2
    BLACKHOLE = 3
    QUASAR = 4


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
