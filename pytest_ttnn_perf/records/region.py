"""The parts of a capture that are measured, each as one thing: a trace, a window, or everything."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    #: The rows of a table that one execution ran, by device.
    Step = Mapping[int, Sequence[int]]


class Basis(Enum):
    """What makes some ops a region, in the words of a report."""

    REPLAYS = "replay"
    WINDOW = "window"
    CALLS = "measured call"
    REPEATS = "call"
    WHOLE = "whole capture"


@dataclass(frozen=True, slots=True)
class Region:
    """Ops that are measured as one. A step is one execution of them: a replay, a window, a call.

    ``name`` is "" for what needs none: the measured calls of a test, the one trace of a capture, or
    all of it. ``steps`` are in the order in which they ran.
    """

    name: str
    basis: Basis
    steps: tuple[Step, ...]

    @property
    def rows(self) -> list[int]:
        """All rows of the region, in their order."""
        return sorted(row for step in self.steps for rows in step.values() for row in rows)


class RegionChoice(NamedTuple):
    """What of a capture a test is about: a region by its name, or what is between two signposts.

    Without any of them it is all that the capture measures.
    """

    region: str | None = None
    start: str | None = None
    end: str | None = None


EVERYTHING: Final = RegionChoice()


@dataclass(frozen=True, slots=True)
class Outside:
    """What belongs to no region: loading, compilation, warm-up. Times of the device with most."""

    ops: int = 0
    kernel_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class StepTime:
    """What a step of a region takes: the time of the middle one, of its slowest device.

    Of two in the middle, the mean. ``devices_ns`` are the times of all devices in the same steps,
    ``ops`` those of the slowest. ``gaps_ns`` is what passes between these; None where that is not
    known or was not asked for.
    """

    region: str
    basis: Basis
    steps: int
    ops: int
    step_ns: float
    devices_ns: Mapping[int, float]
    gaps_ns: float | None = None


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions of a capture in the order in which they begin, and what is in none of them."""

    regions: tuple[Region, ...]
    outside: Outside = Outside()

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(region.name for region in self.regions)


_NO_NAME: Final = re.compile(r"[^a-z0-9]+")
#: What signposts of measurements begin with, which says nothing.
_PREFIX: Final = "perf_"


def region_name(signpost: str) -> str:
    """Return the name of the region that a signpost opens.

    >>> region_name("PERF_DECODE"), region_name("OftNet module")
    ('decode', 'oftnet_module')
    """
    return _NO_NAME.sub("_", signpost.lower()).strip("_").removeprefix(_PREFIX)
