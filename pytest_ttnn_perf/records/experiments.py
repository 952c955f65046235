"""Results of comparing two versions or two runs, and of calibrating."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.records.baseline import MetricBaseline
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.metric import Metric
    from pytest_ttnn_perf.records.observation import Run
    from pytest_ttnn_perf.records.verdict import Verdict


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


@dataclass(frozen=True, slots=True)
class Progress:
    """How far sessions have come. ``tests`` is None before the first collection.

    Where each is of several processes, ``side`` names the one under way, ``sides`` is how many
    there are, and ``sides_done`` how many of them are over.
    """

    session: int
    sessions: int
    done: int
    tests: int | None
    elapsed_s: float
    word: str = "session"
    side: str | None = None
    sides: int = 1
    sides_done: int = 0

    @property
    def fraction(self) -> float:
        """The part of the work that is done."""
        within = self.done / self.tests if self.tests else 0.0
        of_session = (self.sides_done + within) / self.sides
        return min((self.session - 1 + of_session) / self.sessions, 1.0)

    @property
    def left_s(self) -> float | None:
        """The time that the rest will take if it goes on like this; None while nobody can tell."""
        return self.elapsed_s * (1 / self.fraction - 1) if self.fraction else None


@dataclass(frozen=True, slots=True)
class Calibrated:
    """One metric of one test. Fractions (0.05 = 5 %); None with fewer than two sessions.

    ``within`` and ``between`` are standard deviations, of samples in a session and of sessions'
    medians; ``false_alarms`` is a probability per run; ``caught`` is the smallest regression that
    is caught in 80 % of runs.
    """

    test: str
    baseline: MetricBaseline
    centre: float
    within: float
    between: float | None
    limit: float
    false_alarms: float | None
    caught: float | None


class Round(NamedTuple):
    """What two processes, one right after the other, measured of one metric.

    ``before_first`` says which of them was the first: a machine that drifts is worse for the other.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    before_first: bool


@dataclass(frozen=True, slots=True)
class Paired:
    """A verdict on rounds, with the interval that its change lies in.

    ``low`` and ``high`` are fractions as the verdict's ``change`` is one: plus is worse. None where
    a metric is not compared by ratio.
    """

    verdict: Verdict
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in both runs; None where a run does not tell it."""

    field: str
    before: Scalar
    after: Scalar


@dataclass(frozen=True, slots=True)
class Reading:
    """What one run says of a metric; ``value`` is None without a finite number."""

    metric: Metric
    value: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """One metric of one test in both runs; None in a run that does not have it.

    ``obstacle`` is what forbids to compare the two.
    """

    test: str
    metric: str
    before: Reading | None
    after: Reading | None
    obstacle: Difference | None = None

    @property
    def unit(self) -> str | None:
        """The unit of the values; None where each has its own."""
        units = {reading.metric.unit for reading in (self.before, self.after) if reading}
        return units.pop() if len(units) == 1 else None

    @property
    def values(self) -> tuple[float, float] | None:
        """Both values, if they may be compared."""
        if self.obstacle or self.before is None or self.after is None:
            return None
        before, after = self.before.value, self.after.value
        return None if before is None or after is None else (before, after)

    @property
    def change(self) -> float | None:
        """How much more there is than before, as a fraction (0.05 = 5 % more).

        None where nothing was compared, and for a change from nothing, which has no size.
        """
        if self.values is None:
            return None
        before, after = self.values
        if before == after:
            return 0.0
        change = (after - before) / abs(before) if before else math.inf
        return change if math.isfinite(change) else None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why one run (``before`` or ``after``) may lack metrics of a test."""

    run: str
    test: str
    what: str


@dataclass(frozen=True, slots=True)
class ByOp:
    """Which ops make up the change of a test's times, in a sentence."""

    test: str
    sentence: str


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Every metric of either run, what differs around them, and what went wrong in them.

    ``by_op`` is of the tests that have an op table in both runs.
    """

    before: Run
    after: Run
    pairs: tuple[Pair, ...]
    environment: tuple[Difference, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    by_op: tuple[ByOp, ...] = ()
