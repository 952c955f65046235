"""The gate's verdict on one metric of one test."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Final

from msgspec import Struct

from pytest_ttnn_perf.core.codec import Mark, Omit
from pytest_ttnn_perf.core.metric import Better, Metric


class Outcome(Enum):
    """The gate's answer. Only WITHIN and IMPROVED are good news.

    SHIFTED: beyond its limit, but no further than the machine as a whole; it fails the run.
    """

    WITHIN = "WITHIN"
    REGRESSED = "REGRESSED"
    SHIFTED = "SHIFTED"
    IMPROVED = "IMPROVED"
    NO_BASELINE = "NO_BASELINE"
    NOT_COMPARABLE = "NOT_COMPARABLE"
    TOO_NOISY = "TOO_NOISY"
    NO_DATA = "NO_DATA"


#: Needs no sentence: as before, or what the machine did to all tests, which is said once.
QUIET: Final = frozenset({Outcome.WITHIN, Outcome.SHIFTED})
#: There is nothing to compare with.
WITHOUT_BASELINE: Final = frozenset({Outcome.NO_BASELINE, Outcome.NOT_COMPARABLE})


class Reason(Enum):
    """The reason of an outcome, beyond a comparison of numbers."""

    ABSOLUTE_LIMIT = "absolute limit"
    VALUE_CHANGED = "value changed"
    SAMPLES_DIFFER = "samples differ"
    NO_SAMPLES = "no samples"
    NOT_FINITE = "not finite"
    NOT_POSITIVE = "not positive"
    NOT_RECORDED = "not recorded"
    NOTHING_RECORDED = "nothing recorded"
    RAISED = "raised"
    OUT_OF_MEMORY = "out of memory"
    NOT_CONFIRMED = "not confirmed"
    LOST = "lost"
    SHIFTED = "environment shifted"
    GONE = "gone"
    EXPLAINS = "explains"
    OPS_CHANGED = "ops changed"
    NEW_TEST = "new test"
    NEW_METRIC = "new metric"
    OTHER_KEY = "other key"
    OTHER_CONFIGURATION = "other configuration"
    OTHER_SOURCE = "other source"
    OTHER_DEFINITION = "other definition"
    UNDECIDED = "undecided"


class Verdict(Struct, frozen=True):
    """One metric's verdict, complete enough to build its sentence from.

    ``change`` and ``limit`` are fractions, positive is worse (0.05 = 5 % worse), None where nothing
    was compared. ``observed`` and ``centre`` are in the metric's unit; ``confirmed`` are the
    medians of the confirm passes. ``detail`` completes ``reason`` (the keys that exist, the field
    that differs); without one it names the ops of a changed number. ``provisional``: the baseline
    has too few ``runs`` to show how much they differ. ``bound`` is the absolute limit that was
    broken. ``machine`` is how much worse the controls of the confirm passes were, which ``change``
    is without; None if unknown. ``assumed``: samples that are single or equal show no noise, so
    some is assumed. ``worst`` is the worst of the sessions that ``centre`` is of, for accuracies;
    None where it is the centre.
    """

    metric: Annotated[Metric, Mark.INLINE]
    outcome: Outcome
    reason: Reason | None = None
    detail: str | None = None
    observed: float | None = None
    centre: float | None = None
    change: float | None = None
    limit: float | None = None
    provisional: bool = False
    samples: int = 0
    sessions: int = 0
    confirmed: tuple[float, ...] = ()
    bound: float | None = None
    runs: Omit[int] = 0
    machine: Omit[float | None] = None
    assumed: Omit[bool] = False
    worst: Omit[float | None] = None

    @property
    def is_of_changed_time(self) -> bool:
        """True for a changed time, which its ops may explain."""
        changed = self.outcome in {Outcome.REGRESSED, Outcome.IMPROVED}
        return changed and self.metric.compared_by_ratio

    @property
    def is_of_changed_ops(self) -> bool:
        """True for a changed number of ops, which their list may explain."""
        changed = self.outcome in {Outcome.REGRESSED, Outcome.IMPROVED} and self.reason is None
        return changed and self.metric.counts_ops

    @property
    def worst_allowed(self) -> float | None:
        """The worst value allowed, in the metric's unit; None without a limit."""
        if self.bound is not None:
            return self.bound
        centre, limit = self.centre, self.limit
        if centre is None or limit is None:
            return None
        lower = self.metric.better is Better.LOWER
        if self.metric.compared_by_ratio:
            return centre * (1 + limit) if lower else centre / (1 + limit)
        return centre + abs(centre) * (limit if lower else -limit)

    @property
    def change_as_read(self) -> float | None:
        """``change`` as read from the two values: minus is lower."""
        return self.metric.as_read(self.change)

    @property
    def limit_as_read(self) -> float | None:
        """``limit`` in the same terms, without a sign.

        That of a gain is on the other side of the baseline.
        """
        limit = self.limit
        if limit is None or not self.metric.compared_by_ratio:
            return limit
        gained = self.outcome is Outcome.IMPROVED
        read = self.metric.as_read(1 / (1 + limit) - 1 if gained else limit)
        return None if read is None else abs(read)


class Shift(Struct, frozen=True):
    """A move of most tests that no code change explains.

    ``change`` is the median change over the tests that vote, as a fraction; positive is worse.
    ``moved`` of the ``voting`` tests did. ``differences`` are changes since the baselines were
    accepted.
    """

    change: float
    moved: int
    voting: int
    differences: tuple[str, ...] = ()

    @property
    def worse(self) -> bool:
        """True if the machine is slower."""
        return self.change > 0
