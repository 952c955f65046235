"""What a project has let go: tests that it no longer runs, and baselines of another time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Stale:
    """Baselines that say little of today, all for one reason; ``oldest`` was accepted first."""

    why: str
    tests: tuple[str, ...]
    oldest: str
    oldest_at: str


@dataclass(frozen=True, slots=True)
class Lapses:
    """What a run shows of its project's baselines.

    ``lost`` are tests with a baseline that have no result in a full run, where one is required.
    """

    lost: tuple[str, ...] = ()
    stale: tuple[Stale, ...] = ()


#: Everything is as it should be.
NO_LAPSES: Final = Lapses()
