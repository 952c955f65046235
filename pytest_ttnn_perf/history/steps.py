"""Where the level of a series changes: steps in numbers that are noisy, and have outliers.

Pure: a series is a list of logarithms in order.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.gate.paired import t_quantile
from pytest_ttnn_perf.records.metric import median

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: A level is told after so many runs on it.
LEAST_RUNS: Final = 3
#: A level that was left again has more: a few runs apart from the others are outliers.
_LEAST_RUNS_BEFORE: Final = 6
#: Shorter series cannot have a step.
LEAST_SERIES: Final = _LEAST_RUNS_BEFORE + LEAST_RUNS
#: Smaller changes are not told: 2 %.
LEAST_CHANGE: Final = math.log(1.02)
#: How probable the largest of all splits of a series without a step may be.
_CHANCE: Final = 1e-6
#: Numbers further than this many MADs from their neighbours' median are moved there.
_FURTHEST_MADS: Final = 3.0
_TO_SD: Final = 1.4826
#: Neighbours on each side. Three runs on a new level are most of five, and so no outliers.
_NEIGHBOURS: Final = 2
#: No series is believed to have less noise than this: a standard deviation of 0.1 %.
LEAST_NOISE: Final = 0.001
#: No window is narrower.
_SHORTEST: Final = 8
#: Odds of e**3, that is 20 to 1, tell two positions of a step apart.
_CLEAR_ODDS: Final = 3.0
#: Neighbours are not believed to be more alike than this: there would be nothing left to find.
_MOST_ALIKE: Final = 0.7


class Step(NamedTuple):
    """A step of ``size`` (of logarithms) at a ``position``, seen from ``start`` up to ``end``.

    It may as well be at any position from ``first`` to ``last``. ``strength`` is how far it is
    above what chance makes: above 1.
    """

    start: int
    first: int
    position: int
    last: int
    end: int
    size: float
    strength: float


def winsorised(values: Sequence[float]) -> list[float]:
    """Return values with outliers moved to where they would be no longer."""
    if not values:
        return []
    # At the ends there are more neighbours on one side, and never fewer in all: two of the last
    # three values would make a level of outliers.
    width = 2 * _NEIGHBOURS + 1
    starts = (max(0, min(n - _NEIGHBOURS, len(values) - width)) for n in range(len(values)))
    level = [median(values[start : start + width]) for start in starts]
    away = median(abs(value - middle) for value, middle in zip(values, level, strict=True))
    # The median of few neighbours follows each of them: the value itself is one.
    most = max(_FURTHEST_MADS * _TO_SD * away, _FURTHEST_MADS * LEAST_NOISE)
    return [
        min(max(value, middle - most), middle + most)
        for value, middle in zip(values, level, strict=True)
    ]


def find_steps(values: Sequence[float]) -> list[Step]:
    """Return the steps of a series without outliers, in order.

    Windows of many lengths are looked at, so that a step is found beside another one. Each step
    that is found is then measured between its neighbours, and is dropped if it is none there.
    """
    sums = _Sums(values)
    positions = sorted(_split(sums, 0, len(values)))
    while positions:
        bounds = [0, *positions, len(values)]
        steps = [sums.best(*outer) for outer in zip(bounds, bounds[2:], strict=False)]
        strengths = [step.strength if step else 0.0 for step in steps]
        doubtful = [place for place, strength in enumerate(strengths) if not strength]
        for place, (before, position) in enumerate(zip(bounds, positions, strict=False)):
            if position - before < _LEAST_RUNS_BEFORE:
                doubtful += (max(place - 1, 0), place)
        if not doubtful:
            return [step for step in steps if step is not None]
        del positions[min(doubtful, key=strengths.__getitem__)]
    return []


def _split(sums: _Sums, start: int, end: int) -> Iterator[int]:
    """Yield the positions of steps between two places, the clearest first."""
    windows = [(start, end), *_windows(start, end)]
    steps = [step for window in windows if (step := sums.best(*window)) is not None]
    if steps:
        clearest = max(steps, key=lambda step: step.strength)
        yield clearest.position
        yield from _split(sums, start, clearest.position)
        yield from _split(sums, clearest.position, end)


def _windows(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield windows of half the length, of a quarter and so on, each half over the next."""
    length = (end - start) // 2
    while length >= _SHORTEST:
        for begin in range(start, end - length + 1, max(1, length // 2)):
            yield begin, begin + length
        length //= 2


class _Sums:
    """Sums over any part of a series."""

    __slots__ = ("squares", "sums", "values")

    def __init__(self, values: Sequence[float]) -> None:
        # About their median: sums of large logarithms lose digits.
        middle = median(values) if values else 0.0
        self.values = [value - middle for value in values]
        self.sums = [0.0, *accumulate(self.values)]
        self.squares = [0.0, *accumulate(value * value for value in self.values)]

    def explained(self, start: int, end: int) -> list[float]:
        """Return the sum of squares that each position between two places explains."""
        sums, before = self.sums, self.sums[start]
        total, n = sums[end] - before, end - start
        whole = total * total / n
        parts = [value - before for value in sums[start + 1 : end]]
        return [
            part * part / left + (total - part) ** 2 / (n - left) - whole
            for left, part in enumerate(parts, start=1)
        ]

    def best(self, start: int, end: int) -> Step | None:
        """Return the step between two places; None where the best split may be chance."""
        n = end - start
        if n < 2 * LEAST_RUNS:
            return None
        every = self.explained(start, end)  # of start + 1, and so on
        position = max(range(LEAST_RUNS, n - LEAST_RUNS + 1), key=lambda left: every[left - 1])
        position, explained = start + position, every[position - 1]
        left, right = position - start, end - position
        sums, squares = self.sums, self.squares
        size = (sums[end] - sums[position]) / right - (sums[position] - sums[start]) / left
        if abs(size) < LEAST_CHANGE:
            return None
        total = sums[end] - sums[start]
        about = squares[end] - squares[start] - total * total / n - explained
        variance = max(about / (n - 2), LEAST_NOISE**2)
        strength = math.sqrt(explained / variance) / _threshold(n)
        if strength > 1:
            alike = self._likeness(start, position, end)
            strength *= math.sqrt((1 - alike) / (1 + alike))
        if strength <= 1:
            return None
        # Positions beside it that leave hardly more.
        least = explained - (about + n * LEAST_NOISE**2) * math.expm1(2 * _CLEAR_ODDS / n)
        first = last = position
        while first - 1 > start and every[first - start - 2] >= least:
            first -= 1
        while last + 1 < end and every[last - start] >= least:
            last += 1
        return Step(start, first, position, last, end, size, strength)

    def _likeness(self, start: int, position: int, end: int) -> float:
        """Return how alike neighbours are about the two levels: their correlation, from 0 on."""
        together = alone = 0.0
        for begin, stop in ((start, position), (position, end)):
            level = (self.sums[stop] - self.sums[begin]) / (stop - begin)
            away = [value - level for value in self.values[begin:stop]]
            alone += sum(value * value for value in away)
            together += sum(one * next_ for one, next_ in pairwise(away))
        return min(max(together / alone, 0.0), _MOST_ALIKE) if alone > 0 else 0.0


@cache
def _threshold(n: int) -> float:
    """Return the t that the best of all splits of ``n`` values exceeds by chance this rarely."""
    return t_quantile(1 - _CHANCE / (2 * n), n - 2)
