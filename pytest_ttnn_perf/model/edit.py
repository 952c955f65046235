"""What a command is about to do to baselines, so that it can be read before it is done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.metric import Metric


class FileFate(Enum):
    """What becomes of a file."""

    CREATE = "create"
    CHANGE = "change"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Level:
    """What a metric is compared with: the centre, in its unit, and the sessions it is taken of.

    ``spread`` counts the sessions before the last accept, which tell the spread only.
    """

    centre: float
    sessions: int
    spread: int = 0


@dataclass(frozen=True, slots=True)
class MetricEdit:
    """One metric before and after; None where it is not stored.

    ``change`` is a fraction of the baseline, plus is worse; None where there is none.
    """

    metric: Metric
    what: str
    before: Level | None = None
    after: Level | None = None
    change: float | None = None


@dataclass(frozen=True, slots=True)
class TestEdit:
    """One test's baseline. ``renamed_to`` is its new id, if that is what changes."""

    __test__ = False  # a record, not something for pytest to collect

    key: str
    test: str
    metrics: tuple[MetricEdit, ...] = ()
    renamed_to: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file, as the user would name it from where they stand, and what becomes of it."""

    path: str
    fate: FileFate


@dataclass(frozen=True, slots=True)
class Refusal:
    """A test whose result is not accepted, why, and what to do about it."""

    key: str
    test: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Edits:
    """All that a command would do. ``remarks`` are said beside it."""

    tests: tuple[TestEdit, ...] = ()
    files: tuple[FileEdit, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    remarks: tuple[str, ...] = ()
