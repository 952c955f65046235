"""Baselines whose test is gone, and what may have become of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.hardware import Hardware


@dataclass(frozen=True, slots=True)
class Orphan:
    """A stored baseline that no test is compared with any more.

    ``looks_like`` is a new test that it resembles; ``taken`` says that that one has a baseline of
    its own by now.
    """

    hardware: Hardware
    test: str
    looks_like: str | None = None
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Renaming:
    """What one rename command would do for some orphans: a test, a function or a file."""

    before: str
    after: str
    orphans: tuple[Orphan, ...]


@dataclass(frozen=True, slots=True)
class Orphaned:
    """The orphans of a run, what may be renamed, and what the commands for it need to be told.

    ``record`` is where the record of the run is; ``options`` are words for every command.
    """

    orphans: tuple[Orphan, ...]
    renamings: tuple[Renaming, ...] = ()
    record: str | None = None
    options: tuple[str, ...] = ()
