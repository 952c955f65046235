"""Drift within the samples of one process: a clock that ramps up, a chip that throttles.

Two explanations are tried on the logarithms of the samples, each with two conditions: the order
of the samples must be hard to get by chance, whatever their distribution, and the change must
stand out from what the explanation leaves over. The first alone would call correlated noise
drift; the second alone would do so with a few outliers. The thresholds were chosen by simulation,
and a test holds the rates that they were chosen for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from itertools import pairwise
from math import comb, expm1, inf, log, log1p, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.gate.statistics import median, median_of_sorted
from pytest_ttnn_perf.model.drift import Drift, DriftKind
from pytest_ttnn_perf.model.metric import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

#: In fewer samples chance makes any order too often.
_FEWEST: Final = 8
#: More samples than this are thinned to medians of as many blocks: pairs grow by the square.
_MOST: Final = 100
#: No change below 2 %, up or down, is reported; a logarithm.
_FLOOR: Final = -log1p(-0.02)
#: Changes beyond this logarithm have no exponential.
_LARGEST_LOG: Final = 700.0

#: Mann-Kendall's statistic of a trend, in its standard deviations: 1 in 400 by chance.
_TREND_SIGNIFICANCE: Final = 3.0
#: Least change in mean absolute deviations from the fit. Noise that is correlated from sample to
#: sample (coefficient 0.5) passes in up to 4 % of cases.
_TREND_STANDS_OUT: Final = 4.5
_STEP_STANDS_OUT: Final = 5.5

#: Chance that some position divides the samples of two modes as well as a step does.
_STEP_CHANCE: Final = 0.003
#: Ten samples cannot be that unlikely. A step that divides them without exception is believed
#: all the same if it is large: the more probable its order is by chance, up to this, ...
_CHANCE_OF_ANY_STEP: Final = 0.025
#: ... the larger. From 1 in 900 on the floor does; 1 in 252, 5 of 10 samples, asks for 5 %;
#: 1 in 45, the first 2 of 10, for 16 %. What is larger and has two modes passes as a step in up
#: to 1.4 % of cases of ten samples, which then are what a step's would be; of twenty, in 0.2 %.
_CHANCE_AT_FLOOR: Final = 1 / 900
_CHANCE_POWER: Final = 2 / 3
#: Fewest samples on either side of a step, ...
_LEAST_SIDE: Final = 3
#: ... but the first two of fewer samples than this may be a clock that ramps up. Two at the end,
#: or of more, are a pair of outliers more often.
_SAMPLES_FOR_PAIR: Final = 25


class _Fit(NamedTuple):
    """One explanation: the change (a logarithm) and the mean absolute deviation it leaves."""

    change: float
    left_over: float
    position: int = 0


def drift_of(samples: Sequence[float]) -> Drift | None:
    """Return the drift of samples, given in the order they were taken; None where none is plain.

    None is no proof of steadiness: fewer than 8 samples, or one that is not above zero, say
    nothing, and drift can hide in noise. More than 100 samples are looked at in hundredths: so
    coarse is the position of a step, and at an end it must last for three.
    """
    if len(samples) < _FEWEST or not all(0 < sample <= LARGEST for sample in samples):
        return None
    levels = [log(sample) for sample in samples]
    starts: Sequence[int] = range(len(levels))
    if len(levels) > _MOST:
        starts = [block * len(levels) // _MOST for block in range(_MOST + 1)]
        levels = [median(levels[start:end]) for start, end in pairwise(starts)]
    if max(levels) - min(levels) < _FLOOR:
        return None
    trend = _trend(levels)
    # Where there is a trend there is drift beyond doubt: a step need only explain it better.
    step = _step(levels, _TREND_STANDS_OUT if trend else _STEP_STANDS_OUT)
    if trend and (step is None or trend.left_over <= step.left_over):
        return Drift(DriftKind.TREND, _fraction(trend.change))
    return Drift(DriftKind.STEP, _fraction(step.change), starts[step.position]) if step else None


def _fraction(change: float) -> float:
    return expm1(min(change, _LARGEST_LOG))


def _trend(levels: Sequence[float]) -> _Fit | None:
    """Fit the line of Theil and Sen, if the test of Mann and Kendall finds a direction."""
    count = len(levels)
    slopes = [
        (late - early) / (j - i)
        for j, late in enumerate(levels)
        for i, early in enumerate(levels[:j])
    ]
    slopes.sort()
    rising = len(slopes) - bisect_right(slopes, 0.0) - bisect_left(slopes, 0.0)
    # Without the correction for ties, which would make the deviation smaller: with ties the test
    # is the stricter one. The 1 is for continuity.
    deviation = sqrt(count * (count - 1) * (2 * count + 5) / 18)
    slope = median_of_sorted(slopes)
    change = slope * (count - 1)
    if abs(rising) - 1 < _TREND_SIGNIFICANCE * deviation or abs(change) < _FLOOR:
        return None
    flat = [level - slope * i for i, level in enumerate(levels)]
    left_over = _left_over(flat, median(flat))
    return _Fit(change, left_over) if abs(change) >= _TREND_STANDS_OUT * left_over else None


def _step(levels: Sequence[float], stands_out: float) -> _Fit | None:
    """Divide the samples where two medians leave the least, if that is plainly a step."""
    count = len(levels)
    first = 2 if count < _SAMPLES_FOR_PAIR else _LEAST_SIDE
    before = _deviations(levels)
    after = _deviations(levels[::-1])
    _, position = min(
        (before[k - 1] + after[count - k - 1], k) for k in range(first, count - _LEAST_SIDE + 1)
    )
    start, end = median(levels[:position]), median(levels[position:])
    change = end - start
    if abs(change) < _FLOOR:
        return None
    residuals = [level - start for level in levels[:position]]
    residuals += [level - end for level in levels[position:]]
    left_over = _left_over(residuals, 0.0)
    plain = abs(change) >= stands_out * left_over
    if plain and abs(change) >= _least_step(levels, position, (start + end) / 2):
        return _Fit(change, left_over, position)
    return None


def _least_step(levels: Sequence[float], position: int, middle: float) -> float:
    """Return how large a step must be for its order to be no chance; a logarithm.

    Samples of two modes that alternate at random look like a step once in a while. How often is
    a matter of counting: Fisher's exact test of "before or after" against "above or below".
    """
    count = len(levels)
    above_before = sum(level > middle for level in levels[:position])
    above = above_before + sum(level > middle for level in levels[position:])
    # Count what goes with "before", whichever it is.
    falls = above_before * count > above * position
    matching, fitting = (above, above_before) if falls else (count - above, position - above_before)
    orders = sum(
        comb(matching, k) * comb(count - matching, position - k)
        for k in range(fitting, min(matching, position) + 1)
    )
    chance = orders / comb(count, position)
    if chance * 2 * count <= _STEP_CHANCE:
        return _FLOOR
    if orders > 1 or chance > _CHANCE_OF_ANY_STEP:
        return inf
    return float(_FLOOR * max(1.0, chance / _CHANCE_AT_FLOOR) ** _CHANCE_POWER)


def _deviations(levels: Sequence[float]) -> list[float]:
    """Return the sums of absolute deviations from the median of the first 1, 2, ... levels."""
    ordered: list[float] = []
    sums = [0.0]
    for size, level in enumerate(levels, start=1):
        insort(ordered, level)
        half = size // 2
        if half:
            sums.append(sum(ordered[-half:]) - sum(ordered[:half]))
    return sums


def _left_over(values: Sequence[float], centre: float) -> float:
    """Return the mean absolute deviation, without the largest tenth.

    Of ten samples all count: an outlier in so few makes anything doubtful.
    """
    ordered = sorted([abs(value - centre) for value in values])
    kept = len(ordered) - (len(ordered) - 1) // 10
    return sum(ordered[:kept]) / kept
