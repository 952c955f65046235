"""Two branches that changed one baseline file: what became of each test."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.baseline import BaselineFile, TestBaseline


class Take(Enum):
    """Whose baseline is taken where both sides changed one in ways that cannot be joined."""

    OURS = "ours"
    THEIRS = "theirs"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A test that both sides changed; None is a side that removed it. ``taken`` is whose was kept.

    ``settled``: the user had said whose to take.
    """

    test: str
    ours: TestBaseline | None
    theirs: TestBaseline | None
    taken: Take
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Merged:
    """The file, what could not be joined, and the tests that took sessions of both sides."""

    file: BaselineFile
    conflicts: tuple[Conflict, ...] = ()
    joined: tuple[str, ...] = ()

    @property
    def unsettled(self) -> tuple[Conflict, ...]:
        """The conflicts that somebody must look at."""
        return tuple(conflict for conflict in self.conflicts if not conflict.settled)
