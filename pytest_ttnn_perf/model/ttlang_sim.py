"""What tt-lang's simulator counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class SimTensor(NamedTuple):
    """The counters of one tensor in a simulation."""

    name: str
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SimCounters:
    """What the simulator counted, by name: the same in every run of the same program.

    They depend on the grid and the scheduler, and say nothing about time.
    """

    counters: Mapping[str, int]
    tensors: tuple[SimTensor, ...] = ()
