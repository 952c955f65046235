"""What a device ran, iteration by iteration, as a profiler inside the process saw it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class ProfilerKind(Enum):
    """Where device times come from."""

    AUTO = "auto"
    OFF = "off"
    REALTIME = "realtime"
    DEVICE = "device"
    TRACY = "tracy"
    TTLANG = "ttlang"


class PassChoice(Enum):
    """Which passes a run makes."""

    BOTH = "both"
    WALL = "wall"
    DEVICE = "device"


class ProgramRun(NamedTuple):
    """One execution of a program on one chip; ``cores`` is None where that is not told."""

    chip: int
    kernel_ns: float
    cores: int | None = None


@dataclass(frozen=True, slots=True)
class Iteration:
    """The programs of one call of a model, in the order they ran on each chip."""

    programs: tuple[ProgramRun, ...]

    @property
    def by_chip(self) -> Mapping[int, tuple[ProgramRun, ...]]:
        """The programs of each chip."""
        chips: dict[int, list[ProgramRun]] = defaultdict(list)
        for program in self.programs:
            chips[program.chip].append(program)
        return {chip: tuple(programs) for chip, programs in sorted(chips.items())}

    @property
    def kernel_ns(self) -> float:
        """The time of the slowest chip: they run side by side."""
        times = [sum(p.kernel_ns for p in programs) for programs in self.by_chip.values()]
        return max(times, default=0.0)

    @property
    def op_count(self) -> int:
        """The programs of the chip that ran most."""
        return max(map(len, self.by_chip.values()), default=0)


@dataclass(frozen=True, slots=True)
class Profile:
    """A measured model. ``problem`` says why its numbers are none; ``dropped``, that data is lost.

    What was dropped may be kept by a profiler with more room.
    """

    iterations: tuple[Iteration, ...] = ()
    problem: str | None = None
    dropped: bool = False
