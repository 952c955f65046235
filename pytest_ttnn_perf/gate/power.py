"""What a gate can see: how often it is wrong, and the smallest change that it catches.

All changes, limits and standard deviations are natural logarithms: 0.05 is about 5 %.
"""

from __future__ import annotations

from math import erfc, exp, hypot, isfinite, log, pi, sqrt
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.gate.ratios import MAD_TO_SIGMA, MEDIAN_ERROR

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.baseline import MetricBaseline


#: The quadrature's step. The trapezoidal rule is exact to the last digits for bells that are wider
#: than it, as all are for up to 60 measurements.
_STEP: Final = 0.125
#: Nothing beyond ten standard deviations is counted: it is less than 1e-22.
_NODES: Final = tuple(_STEP * index for index in range(-80, 81))
_WEIGHTS: Final = tuple(_STEP * exp(-node * node / 2) / sqrt(2 * pi) for node in _NODES)
_ROOT_2: Final = sqrt(2)
#: Standard deviations from the limit within which every power lies that a double can tell from 1.
_FAR: Final = 20.0
#: Halvings until a bracket of twice that is narrower than 1e-10 standard deviations.
_HALVINGS: Final = 40


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


def alarm_rate(
    *,
    limit: float,
    session_sd: float,
    centre_sd: float,
    measurements: int,
    change: float = 0.0,
) -> float:
    """Return the probability that every measurement exceeds the limit.

    Each of ``measurements``, the first and its confirm passes, is ``change`` plus noise of its
    own; all are compared with one centre, whose error they share. Without a change it is the rate
    of false alarms, with one the rate at which it is caught. Correct to six digits down to 1e-12.

    Raises:
        ValueError: a number is not finite, a deviation is negative, nothing is measured.
    """
    _check(limit, session_sd, centre_sd, measurements, change)
    gap = limit - change
    if session_sd == 0 or centre_sd == 0:
        times = 1 if session_sd == 0 else measurements
        return _beyond(gap, session_sd or centre_sd) ** times
    # Two forms of one integral: over the centre's error, or, after integration by parts, over the
    # lowest measurement's noise. The factor beside the density changes over the ratio of the two
    # deviations: taking the larger one there keeps it as wide as the density.
    if centre_sd <= session_sd:
        shift, slope = gap / session_sd, centre_sd / session_sd
        parts = [
            weight * _upper(shift + slope * node) ** measurements
            for node, weight in zip(_NODES, _WEIGHTS, strict=True)
        ]
    else:
        shift, slope = gap / centre_sd, session_sd / centre_sd
        parts = [
            measurements
            * weight
            * _upper(node) ** (measurements - 1)
            * _upper(shift - slope * node)
            for node, weight in zip(_NODES, _WEIGHTS, strict=True)
        ]
    return min(1.0, sum(parts))  # of rounded parts


def smallest_caught(
    *,
    limit: float,
    session_sd: float,
    centre_sd: float,
    measurements: int,
    power: float = 0.8,
) -> float:
    """Return the smallest change that is caught with probability ``power``.

    Raises:
        ValueError: as for ``alarm_rate``, or ``power`` is not between 0 and 1.
    """
    if not 0 < power < 1:
        message = f"power is {power}, expected a probability between 0 and 1"
        raise ValueError(message)

    def rate(excess: float) -> float:
        return alarm_rate(
            limit=0.0,
            session_sd=session_sd,
            centre_sd=centre_sd,
            measurements=measurements,
            change=excess,
        )

    _check(limit, session_sd, centre_sd, measurements, 0.0)
    # By how much a change must exceed the limit does not depend on the limit.
    high = _FAR * (session_sd + centre_sd)
    low = -high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rate(middle) < power else (low, middle)
    return limit + high


def _check(
    limit: float, session_sd: float, centre_sd: float, measurements: int, change: float
) -> None:
    for name, value in (("limit", limit), ("change", change)):
        if not isfinite(value):
            message = f"{name} is {value}, expected a finite number"
            raise ValueError(message)
    for name, value in (("session_sd", session_sd), ("centre_sd", centre_sd)):
        if value < 0 or not isfinite(value):
            message = f"{name} is {value}, expected a standard deviation"
            raise ValueError(message)
    if measurements < 1:
        message = f"measurements is {measurements}, expected 1 or more"
        raise ValueError(message)


def _beyond(gap: float, sd: float) -> float:
    """Return the probability that noise exceeds ``gap``; without noise it must be negative."""
    if sd == 0:
        return 1.0 if gap < 0 else 0.0
    return _upper(gap / sd)


def _upper(deviations: float) -> float:
    """Return the probability of a normal variable above so many standard deviations."""
    return erfc(deviations / _ROOT_2) / 2
