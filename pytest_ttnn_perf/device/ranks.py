"""Launchers that start one process per host: such processes start no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What launchers tell a process about itself: its rank, and how many there are.
_LAUNCHERS: Final = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    # Of a step, not of the allocation, in which a single process may run as well.
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)


class Rank(NamedTuple):
    """One of several processes that a launcher has started for one program."""

    number: int
    size: int

    def __str__(self) -> str:
        return f"rank {self.number} of {self.size}"


def rank_of(environment: Mapping[str, str]) -> Rank | None:
    """Return which of several processes this is; None for the only one."""
    for number, size in _LAUNCHERS:
        told = environment.get(number, ""), environment.get(size, "")
        if all(text.isdecimal() for text in told) and int(told[1]) > 1:
            return Rank(int(told[0]), int(told[1]))
    return None
