"""What is stored to compare with."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.records.hardware import Configuration, Hardware

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.metric import Metric
    from pytest_ttnn_perf.records.ops import OpGroups


#: The version of the baseline file's schema that this code writes.
BASELINE_FORMAT: Final = 1
#: Sessions kept on each side of the last accept. A full list is never rolled: dropping the
#: oldest session for the newest would let the centre creep by steps too small to fail.
MAX_SESSIONS: Final = 20


class Session(NamedTuple):
    """What one process measured: median and MAD (unscaled) in the metric's unit, of n samples.

    A tuple, as it is in the file: the gate turns thousands of them into columns.
    """

    median: float
    mad: float
    n: int


@dataclass(frozen=True, slots=True)
class MetricBaseline:
    """The sessions of one metric, newest last; those from ``since`` on follow the last accept."""

    metric: Metric
    sessions: tuple[Session, ...]
    since: int = 0

    @property
    def current(self) -> tuple[Session, ...]:
        """The sessions since the last accept: the ones the centre is taken of."""
        return self.sessions[self.since :]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Who the stored numbers come from: when, at which commit, why, with which ttnn.

    ``environment`` is what else a change of the whole machine might be explained with.
    """

    at: str
    commit: str | None = None
    reason: str | None = None
    ttnn: str | None = None
    environment: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TestBaseline:
    """The stored numbers of one test.

    ``ops`` is the place of its op table, relative to the key's folder; ``op_table`` that table
    itself, of a baseline that is yet to be written.
    """

    __test__ = False  # a record, not something for pytest to collect

    accepted: Accepted
    metrics: Mapping[str, MetricBaseline]
    configuration: Configuration = Configuration()
    ops: str | None = None
    op_table: OpGroups | None = None


@dataclass(frozen=True, slots=True)
class BaselineFile:
    """The baselines of one test file on one hardware key.

    ``test_file`` is stated only where the file's own name does not tell (shortened names).
    """

    hardware: Hardware
    tests: Mapping[str, TestBaseline] = field(default_factory=dict)
    test_file: str | None = None


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


@dataclass(frozen=True, slots=True)
class Traits:
    """What a test ran and measured: its value of each metric, in the metric's unit, and its ops."""

    values: Mapping[Metric, float]
    ops: OpGroups | None = None


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
