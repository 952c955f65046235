"""Shift of the whole machine, and drift within a run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from enum import Enum
from itertools import pairwise
from math import comb, expm1, inf, log, log1p, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import LARGEST
from pytest_ttnn_perf.core.metric import Better, median, median_of_sorted
from pytest_ttnn_perf.core.observation import Outcome, Reason, Shift, Verdict
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY, Policy
from pytest_ttnn_perf.gate.ratios import MEDIAN_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ttnn_perf.core.metric import Source


class DriftKind(Enum):
    """The shape of a drift."""

    TREND = "trend"
    STEP = "step"


class Drift(Struct, frozen=True):
    """Samples that do not belong to one level.

    ``change`` is a fraction: how much larger the end is than the start, negative for smaller
    (0.1 = 10 % larger). ``position`` is the number of samples before a step; 0 for a trend.
    """

    kind: DriftKind
    change: float
    position: int = 0


class DriftReport(Struct, frozen=True):
    """A drift of a metric, or, without one, of the run."""

    test: str | None
    metric: str | None
    count: int
    drift: Drift


#: The greatest gain that has a logarithm: what is better beyond any measure is told as -1.
_GREATEST_GAIN: Final = -1 + 2**-53


class Move(NamedTuple):
    """A change and its limit as natural logarithms; positive is worse."""

    change: float
    limit: float


def shift_of(
    tests: Iterable[Sequence[Verdict]], *, policy: Policy = DEFAULT_POLICY
) -> Shift | None:
    """Return the shift of the machine by votes of its tests.

    One vote per test, that of its timing in the middle: a test with many metrics has no more to
    say about the machine than one with few, and the furthest of many is far out by chance.
    """
    votes = [vote for verdicts in tests if (vote := vote_of(verdicts)) is not None]
    if len(votes) < policy.least_shift_tests:
        return None
    share = policy.shift_share if len(votes) >= policy.shift_tests else 1.0
    for sign in (1, -1):
        moved = sum(1 for vote in votes if sign * vote.change > vote.limit / 2)
        if moved >= share * len(votes):
            change = median(vote.change for vote in votes)
            return Shift(expm1(change), moved, len(votes))
    return None


def bears_out(shift: Shift, move: float) -> bool:
    """Return whether the ``move`` of controls confirms a shift.

    Half of it is enough: where the code is to blame, tests that do not share it have not moved.
    """
    return log1p(move) >= log1p(shift.change) / 2


def machine_move(controls: Sequence[Move], *, policy: Policy = DEFAULT_POLICY) -> float | None:
    """Return the change of the machine, as a fraction, by controls.

    The median of their changes, as far as it stands out from its own error: what is within that is
    no news of the machine, and what is far beyond is believed whole. None without controls.
    """
    if not controls:
        return None
    move = median([control.change for control in controls])
    deviation = median([control.limit for control in controls]) / policy.deviations
    error = MEDIAN_ERROR * deviation / sqrt(len(controls))
    # By James and Stein: no estimate of several such moves is nearer to them on the whole.
    return _fraction(move - error * error / move) if abs(move) > error else 0.0


def explain_by_shift(verdicts: Iterable[Verdict], shift: Shift) -> tuple[Verdict, ...]:
    """Mark verdicts that are only as slow as the machine.

    A first measurement that is worse than that stays a suspect. Once measured again, it is judged
    beside controls on the same machine, and that verdict stands: what it cleared and is beyond its
    limit all the same is as slow as they are.
    """
    return tuple(_explain_by_shift(verdict, log1p(shift.change)) for verdict in verdicts)


def _explain_by_shift(verdict: Verdict, shift: float) -> Verdict:
    move = _move_of(verdict)
    if move is None or shift <= 0 or verdict.reason is not None:
        return verdict
    if verdict.confirmed:
        machine = log1p(verdict.machine or 0.0)
        explained = verdict.outcome is Outcome.WITHIN and move.change + machine > move.limit
    else:
        beyond = verdict.outcome is Outcome.REGRESSED
        explained = beyond and move.change - shift <= move.limit
    if not explained:
        return verdict
    return replace(verdict, outcome=Outcome.SHIFTED, reason=Reason.SHIFTED)


def vote_of(verdicts: Iterable[Verdict], source: Source | None = None) -> Move | None:
    """Return the median move of a test, of all or one source."""
    own = (v for v in verdicts if source is None or v.metric.source is source)
    return middle_of(move for verdict in own if (move := _move_of(verdict)) is not None)


def middle_of(moves: Iterable[Move]) -> Move | None:
    """Return the median move relative to its limit; of two the smaller."""
    ordered = sorted(moves, key=_against_limit)
    middles = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    return min(middles, key=lambda move: abs(_against_limit(move)), default=None)


def _against_limit(move: Move) -> float:
    return move.change / move.limit


def _move_of(verdict: Verdict) -> Move | None:
    if not verdict.metric.compared_by_ratio or verdict.change is None or not verdict.limit:
        return None
    return Move(log1p(max(verdict.change, _GREATEST_GAIN)), log1p(verdict.limit))


def moved_again(verdict: Verdict, samples: Sequence[float]) -> Move | None:
    """Return the move of a metric that was measured again."""
    if not verdict.metric.compared_by_ratio or not verdict.limit or not verdict.centre:
        return None
    if not samples or not all(0 < sample <= LARGEST for sample in samples):
        return None
    sign = -1.0 if verdict.metric.better is Better.HIGHER else 1.0
    return Move(sign * log(median(samples) / verdict.centre), log1p(verdict.limit))


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
    """A fit: its change (a logarithm) and mean absolute residual."""

    change: float
    left_over: float
    position: int = 0


def drift_of(samples: Sequence[float]) -> Drift | None:
    """Return the drift of samples in their order, if it is plain.

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
    """Fit a Theil-Sen line, if the Mann-Kendall test finds a trend."""
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
    """Fit a step: two medians with the least residual."""
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
    """Return the least step (a logarithm) that is not by chance.

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
    """Return running sums of absolute deviations from the median."""
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
