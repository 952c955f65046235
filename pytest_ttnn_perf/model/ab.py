"""A commit against the working tree, measured in turns on one machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.comparison import Difference
    from pytest_ttnn_perf.model.paired import Paired

#: Fewer rounds say next to nothing of how much rounds differ.
MIN_ROUNDS = 3
MAX_ROUNDS = 50
#: What could not be judged is no pass.
_FAILING = frozenset({Outcome.REGRESSED, Outcome.TOO_NOISY, Outcome.NO_DATA})
_TOLD = frozenset({Outcome.REGRESSED, Outcome.IMPROVED, Outcome.WITHIN})


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its full and its short name, and the first line of its message."""

    id: str
    short: str
    subject: str


@dataclass(frozen=True, slots=True)
class WorkingTree:
    """What is checked out; ``commit`` is None in a repository that has none yet.

    ``changed`` and ``untracked`` count files that the commit does not have as they are.
    """

    commit: Commit | None
    changed: int = 0
    untracked: int = 0


@dataclass(frozen=True, slots=True)
class StrayCode:
    """The first of ``count`` modules that are not of the side whose tests ran them.

    ``folder`` has that side's own version of it. Both paths are as the user would type them.
    """

    name: str
    file: str
    folder: str
    count: int
    installed: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """One metric of one test on both sides. ``obstacle`` is what forbids to compare the two.

    ``before`` and ``after`` are the values of the rounds, in the order in which these were run.
    ``by_op`` says which ops make up the change of a time.
    """

    test: str
    paired: Paired
    rounds: int
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    obstacle: Difference | None = None
    by_op: str | None = None

    @property
    def outcome(self) -> Outcome:
        """What the verdict says."""
        return self.paired.verdict.outcome


@dataclass(frozen=True, slots=True)
class AbResult:
    """What rounds tell. ``ref`` is the commit as the user named it.

    ``stopped`` says why there are fewer rounds than ``wanted``; ``whole`` is how many there are of
    the test that has fewest. ``troubles`` say why a test has no result.
    """

    ref: str
    before: Commit
    after: WorkingTree
    wanted: int
    whole: int
    compared: tuple[Compared, ...] = ()
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    troubles: Mapping[str, str] = field(default_factory=dict)
    stopped: str | None = None
    remarks: tuple[str, ...] = ()

    @property
    def judged_any(self) -> bool:
        """Whether anything is known to be better, worse, or as it was."""
        return any(each.outcome in _TOLD for each in self.compared)

    @property
    def failed(self) -> bool:
        """Whether something is worse, or nobody can tell."""
        bad = any(each.outcome in _FAILING for each in self.compared)
        return bad or bool(self.troubles) or not self.judged_any
