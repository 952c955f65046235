"""The gate before this one, over many tests at once: what the new rule is held against.

Its unit was the session. The limit was Student's t at 0.95, the furthest session counted up to 4 %;
a test failed if all three measurements were beyond the limit. It had no controls. Of five tests or
more, 60 % that moved together by their furthest timing were a shift.
"""

from __future__ import annotations

from functools import lru_cache
from math import log1p
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.quality.history import SINCE, Histories, middle
from benchmarks.quality.ours import Band
from benchmarks.quality.suite import PASSES, Night
from pytest_ttnn_perf.gate.paired import t_quantile

if TYPE_CHECKING:
    from benchmarks.quality import Array

LEVEL, PRIOR, PRIOR_WEIGHT, LEAST_NOISE, FLOOR = 0.95, 0.015, 3, 0.003, 0.02
GUARD, GUARD_OF_ONE, TOO_NOISY = 1.1, 0.04, 0.20
SHIFT_TESTS, SHIFT_SHARE = 5, 0.6


@lru_cache(maxsize=64)
def _quantile(degrees: int) -> float:
    return t_quantile(LEVEL, degrees)


def band(stored: Histories) -> Band:
    """Return the bands of baselines of wall times, whose runs are single sessions."""
    centre, residuals = stored.residuals()
    count = stored.runs.sum(axis=0)
    within = stored.within()
    prior = np.maximum(PRIOR, within)
    known = np.where(np.isfinite(residuals), residuals, 0.0)
    shown = np.sqrt(np.maximum((known**2).sum(axis=1) - known.sum(axis=1) ** 2 / count, 0.0))
    typical = 1.4826 * middle(np.sort(np.abs(residuals), axis=1), count) * np.sqrt(count - 1)
    shown = np.where(count >= 5, np.maximum(shown, typical), shown)
    spread = np.hypot(shown, prior * np.sqrt(PRIOR_WEIGHT)) / np.sqrt(count + PRIOR_WEIGHT - 1)
    spread = np.maximum(np.where(count == 1, prior, spread), np.maximum(within, LEAST_NOISE))
    quantiles = np.array([_quantile(degrees) for degrees in range(1, 64)])
    noise = quantiles[count + 1] * spread * np.sqrt(1 + 1 / stored.runs[SINCE])
    least = np.maximum(noise, log1p(FLOOR))
    rows, second = np.arange(len(count)), np.minimum(count, 2)
    high = residuals[rows, count - 1], residuals[rows, count - second]
    low = -residuals[:, 0], -residuals[rows, second - 1]
    return Band(centre, _clear_of(*high, least), _clear_of(*low, least), noise)


def _clear_of(furthest: Array, second: Array, least: Array) -> Array:
    limit = np.maximum(least, np.minimum(GUARD * furthest, log1p(GUARD_OF_ONE)))
    return np.maximum(limit, np.minimum(GUARD * second, log1p(TOO_NOISY)))


def judge(of: Band, changes: list[Array], *, updates: bool) -> Night:
    """Judge one run of suites; arrays are (suites, tests, timings), changes one per pass."""
    first = changes[0]
    limit = np.where(first < -of.gain, of.gain, of.limit)
    furthest = np.abs(first / limit).argmax(axis=-1)[..., None]
    vote = np.take_along_axis(first, furthest, -1)[..., 0]
    vote_limit = np.take_along_axis(limit, furthest, -1)[..., 0]
    suites, tests = vote.shape
    enough = SHIFT_SHARE * tests if tests >= SHIFT_TESTS else np.inf
    slower = (vote > vote_limit / 2).sum(axis=1) >= enough
    faster = (-vote > vote_limit / 2).sum(axis=1) >= enough
    middle_change = np.median(vote, axis=1)
    shift = np.where(slower | faster, np.maximum(middle_change, 0.0), 0.0)[:, None, None]
    worse = first - shift > of.limit
    better = (first < -of.gain) & updates & ~(slower | faster)[:, None, None]
    again = np.zeros(suites, dtype=int)
    for number in range(1, 1 + PASSES):
        again += (worse | better).any(axis=2).sum(axis=1)
        worse &= changes[number] - shift > of.limit
        better &= changes[number] < -of.gain
    noisy = (of.noise > log1p(TOO_NOISY)) & ~worse & ~better
    red = (worse | noisy).any(axis=2)
    writes = ~red[..., None] & ~(slower | faster)[:, None, None]
    far = np.abs(first) > log1p(TOO_NOISY)
    return Night(
        red,
        red & ~worse.any(axis=2),
        (slower | faster) & (middle_change > 0),
        writes & ~better & ~far,
        writes & better,
        again,
    )
