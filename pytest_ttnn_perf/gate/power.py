"""What a gate can see: how often it is wrong, and the smallest change that it catches.

All changes, limits and standard deviations are natural logarithms: 0.05 is about 5 %.
"""

from __future__ import annotations

from math import erfc, hypot, isfinite, log, pi, sqrt
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY, Policy
from pytest_ttnn_perf.gate.ratios import MAD_TO_SIGMA, MEDIAN_ERROR

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.baseline import MetricBaseline


#: Halvings until a bracket of twice the largest deviations is narrower than any limit's digits.
_HALVINGS: Final = 60
_FAR: Final = 20.0
_ROOT_2: Final = sqrt(2)
#: How far the furthest of two measurements lies beyond the next, in deviations; of more, less.
_TOP_GAP: Final = 2 / sqrt(pi)


@dataclass(frozen=True, slots=True)
class Noise:
    """What a baseline's current sessions show of the noise of a metric, as fractions.

    ``within_sd`` is that of samples in one session, ``between_sd`` that of the sessions' medians,
    ``centre_sd`` the error that the latter leaves in the baseline's centre. The last two are None
    for a single session, which shows nothing of them: no noise known is not no noise.
    """

    within_sd: float
    between_sd: float | None
    centre_sd: float | None
    sessions: int


def noise_of(baseline: MetricBaseline) -> Noise:
    """Return the noise of a metric that is compared by ratio, since its last accept.

    Raises:
        ValueError: the metric is compared by difference, for which noise has no ratio.
    """
    if not baseline.metric.compared_by_ratio:
        message = f"{baseline.metric.name} is not compared by ratio"
        raise ValueError(message)
    sessions = baseline.current
    count = len(sessions)
    within_sd = MAD_TO_SIGMA * sum(session.mad / session.median for session in sessions) / count
    if count == 1:
        return Noise(within_sd, None, None, count)
    logs = [log(session.median) for session in sessions]
    mean = sum(logs) / count
    between_sd = hypot(*(value - mean for value in logs)) / sqrt(count - 1)
    return Noise(within_sd, between_sd, MEDIAN_ERROR * between_sd / sqrt(count), count)


@dataclass(frozen=True, slots=True)
class Seeing:
    """What decides how well a gate sees: its limit, and the noise of what is held against it.

    ``session_sd`` is new in each process of a run, ``run_sd`` the same in all of them, and
    ``centre_sd`` that of the baseline. A run measures ``measurements`` times before it fails a
    test.

    Raises:
        ValueError: a number is not finite, a deviation is negative, nothing is measured.
    """

    limit: float
    session_sd: float
    run_sd: float
    centre_sd: float
    measurements: int
    policy: Policy = DEFAULT_POLICY

    def __post_init__(self) -> None:
        for name in ("limit", "session_sd", "run_sd", "centre_sd"):
            value = getattr(self, name)
            if not isfinite(value) or (value < 0 and name != "limit"):
                message = f"{name} is {value}, expected a finite number of at least 0"
                raise ValueError(message)
        if self.measurements < 1:
            message = f"measurements is {self.measurements}, expected 1 or more"
            raise ValueError(message)

    def alarm_rate(self) -> float:
        """Return the probability that an unchanged test fails, or a little more.

        The mean of all measurements must be beyond the limit. That no single one may be far below
        it, nor the first alone far above, makes false alarms rarer still, and is left out.
        """
        return _beyond(self.limit, hypot(self.session_sd / sqrt(self.measurements), self._shared))

    def catch_rate(self, change: float) -> float:
        """Return a probability with which a test that is slower by ``change`` fails at least.

        All conditions are taken to be met independently of each other. They go together, the more
        so the more a run's measurements share: then more is caught than this says.
        """
        count, one_sd = self.measurements, hypot(self.session_sd, self._shared)
        if count == 1:
            return _beyond(self.limit - change, one_sd)
        # A first that lies furthest out counts as the next one does: the mean is lower for that,
        # and varies as if there were half a measurement less.
        lower = _TOP_GAP * self.session_sd / count**2
        mean_sd = hypot(self.session_sd / sqrt(count - 0.5), self._shared)
        rate = _beyond(self.limit - change + lower, mean_sd)
        rate *= _beyond(self.policy.screen * self.limit - change, one_sd)
        rate *= _beyond(self.policy.agree * self.limit - change, one_sd) ** (count - 1)
        return rate

    def smallest_caught(self, power: float = 0.8) -> float:
        """Return the smallest change that is caught with probability ``power``.

        Raises:
            ValueError: ``power`` is not between 0 and 1.
        """
        if not 0 < power < 1:
            message = f"power is {power}, expected a probability between 0 and 1"
            raise ValueError(message)
        low = 0.0
        high = self.limit + _FAR * (self.session_sd + self._shared)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.catch_rate(middle) < power else (low, middle)
        return high

    @property
    def _shared(self) -> float:
        return hypot(self.run_sd, self.centre_sd)


def _beyond(gap: float, sd: float) -> float:
    """Return the probability that noise exceeds ``gap``; without noise it must be negative."""
    if sd == 0:
        return 1.0 if gap < 0 else 0.0
    return erfc(gap / sd / _ROOT_2) / 2
