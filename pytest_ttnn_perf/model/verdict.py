"""What the gate says about one metric of one test."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.metric import Metric


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


class Reason(Enum):
    """Why the outcome is what it is, where a comparison of numbers does not tell."""

    ABSOLUTE_LIMIT = "absolute limit"
    VALUE_CHANGED = "value changed"
    SAMPLES_DIFFER = "samples differ"
    NO_SAMPLES = "no samples"
    NOT_FINITE = "not finite"
    NOT_POSITIVE = "not positive"
    NOT_RECORDED = "not recorded"
    NOTHING_RECORDED = "nothing recorded"
    RAISED = "raised"
    NOT_CONFIRMED = "not confirmed"
    LOST = "lost"
    SHIFTED = "environment shifted"
    GONE = "gone"
    EXPLAINS = "explains"
    NEW_TEST = "new test"
    NEW_METRIC = "new metric"
    OTHER_KEY = "other key"
    OTHER_CONFIGURATION = "other configuration"
    OTHER_SOURCE = "other source"
    OTHER_DEFINITION = "other definition"


class Verdict(NamedTuple):
    """One metric's verdict, complete enough to build its sentence from.

    A named tuple because the gate makes thousands: it takes a third of a frozen dataclass' time.

    ``change`` and ``limit`` are fractions, positive is worse (0.05 = 5 % worse), None where
    nothing was compared. ``observed`` and ``centre`` are in the metric's unit; ``confirmed`` are
    the medians of the confirm passes. ``detail`` completes ``reason`` (the keys that exist, the
    field that differs). ``provisional``: the baseline rests on one session. ``bound`` is the
    absolute limit that was broken.
    """

    metric: Metric
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

    @property
    def is_of_changed_time(self) -> bool:
        """Whether it tells of a time that changed: the ops may say why."""
        changed = self.outcome in {Outcome.REGRESSED, Outcome.IMPROVED}
        return changed and self.metric.compared_by_ratio

    @property
    def change_as_read(self) -> float | None:
        """``change`` as a reader finds it by dividing the two values."""
        return self.metric.as_read(self.change)

    @property
    def limit_as_read(self) -> float | None:
        """``limit`` in the same terms; that of a gain is on the other side of the baseline."""
        limit = self.limit
        if limit is None or not self.metric.compared_by_ratio:
            return limit
        if self.outcome is not Outcome.IMPROVED:
            return self.metric.as_read(limit)
        gain = self.metric.as_read(1 / (1 + limit) - 1)
        return None if gain is None else -gain
