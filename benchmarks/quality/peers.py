"""The rules of other tools, each as a score and the threshold that the tool ships.

A rule fires where its score exceeds the threshold. Kept apart, so that the threshold can also be
set to any wanted false-alarm rate.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pytest_ttnn_perf.gate.paired import t_quantile

if TYPE_CHECKING:
    from benchmarks.quality import Array

#: Resamples of a bootstrap; Criterion takes 100,000, which changes the bound's last digit.
RESAMPLES = 600

#: (label, score, threshold). Thresholds: what the tool ships or its documentation shows.
Rule = tuple[str, str, float]


def rules(sessions: int) -> tuple[Rule, ...]:
    """Return the peers' rules as shipped, for a history of this many sessions."""
    t_boundary = t_quantile(0.99, sessions - 1) if sessions > 1 else math.inf
    return (
        ("pytest-benchmark, mean 5 %", "mean", 0.05),
        ("pytest-benchmark, mean 10 %", "mean", 0.10),
        ("pytest-benchmark, min 5 %", "min", 0.05),
        ("pytest-benchmark, min 10 %", "min", 0.10),
        ("pytest-benchmark, median 5 %", "median", 0.05),
        ("pytest-benchmark, median 10 %", "median", 0.10),
        ("asv, p < 0.002 and factor 1.1", "asv", 0.10),
        ("benchstat, p < 0.05", "benchstat", 0.95),
        ("Criterion, mean, noise 1 %", "criterion mean", 0.01),
        ("Criterion, median, noise 1 %", "criterion median", 0.01),
        ("Bencher, t-test 0.99", "bencher t", t_boundary),
        ("Bencher, IQR × 3", "bencher iqr", 3.0),
        ("tt-metal, ± 3 % of the mean", "tt-metal", 0.03),
    )


#: Families whose threshold is set anew for the comparison at equal false-alarm rate.
FAMILIES = {
    "mean": "pytest-benchmark, mean",
    "min": "pytest-benchmark, min",
    "median": "pytest-benchmark, median",
    "asv": "asv, p < 0.002 and a factor",
    "benchstat": "benchstat, by p",
    "benchstat factor": "benchstat, p < 0.05 and a factor",
    "criterion mean": "Criterion, mean, by noise threshold",
    "criterion median": "Criterion, median, by noise threshold",
    "bencher t": "Bencher, t boundary",
    "bencher iqr": "Bencher, IQR boundary",
    "tt-metal": "tt-metal, two-sided margin",
}


def scores(
    history: Array, now: Array, effects: tuple[float, ...], chance: np.random.Generator
) -> dict[str, Array]:
    """Return (effects, trials) of each family; ``now`` is (trials, n) without any effect."""
    factors = 1 + np.asarray(effects)[:, None]
    last, found = history[:, -1], {}
    for name, statistic in (("mean", np.mean), ("min", np.min), ("median", np.median)):
        found[name] = factors * (statistic(now, axis=1) / statistic(last, axis=1)) - 1
    p_values = np.stack([_mann_whitney(last, now * factor) for (factor,) in factors])
    ratio = found["median"]
    # Five samples a side cannot reach 0.002; asv then asks that intervals do not overlap.
    strictest = 2 / math.comb(2 * now.shape[1], now.shape[1])
    found["asv"] = np.where(p_values < max(0.002, 1.001 * strictest), ratio, -np.inf)
    found["benchstat"] = 1 - p_values
    found["benchstat factor"] = np.where(p_values < 0.05, ratio, -np.inf)
    for name, bound in _bootstrap(last, now, chance).items():
        found[f"criterion {name}"] = factors * bound - 1
    return found | _against_history(history.mean(axis=2), now.mean(axis=1) * factors)


def _against_history(means: Array, now: Array) -> dict[str, Array]:
    """Bencher's and tt-metal's scores: a session's mean against the means before it."""
    sessions = means.shape[1]
    centre = means.mean(axis=1)
    found = {"tt-metal": np.abs(now / centre - 1)}
    if sessions == 1:
        # One value has no spread: Bencher raises no alert.
        never = np.full(now.shape, -np.inf)
        return found | {"bencher t": never, "bencher iqr": never}
    low, middle, high = np.quantile(means, (0.25, 0.5, 0.75), axis=1)
    # Bencher divides by the number of values, not by one less.
    found["bencher t"] = (now - centre) / means.std(axis=1)
    found["bencher iqr"] = (now - middle) / (high - low)
    return found


def _mann_whitney(before: Array, now: Array) -> Array:
    """Return the two-sided p of each trial in which ``now`` is slower; 1 in the others.

    Times are continuous here and never tie, so p is exact and depends on U alone.
    """
    above = (now[:, :, None] > before[:, None, :]).sum(axis=(1, 2))
    return _p_of_u(now.shape[1])[above]


@lru_cache(maxsize=8)
def _p_of_u(n: int) -> Array:
    """Return p by U for two samples of n: the coefficients of the Gaussian binomial."""
    ways = np.zeros(n * n + 1)
    ways[0] = 1.0
    for i in range(1, n + 1):
        # Times (1 - q^(n+i)) / (1 - q^i).
        ways[n + i :] -= ways[: max(ways.size - n - i, 0)].copy()
        for start in range(i):
            ways[start::i] = ways[start::i].cumsum()
    beyond = ways[::-1].cumsum()[::-1] / ways.sum()
    return np.minimum(1.0, 2 * beyond)


def _bootstrap(before: Array, now: Array, chance: np.random.Generator) -> dict[str, Array]:
    """Return the lower 95 % bounds of the ratios of means and of medians.

    All trials of a call share their resamples, as index lists: those of sorted samples give the
    medians directly.
    """
    n = now.shape[1]
    picks = np.sort(chance.integers(0, n, (2, RESAMPLES, n)), axis=2)
    old, new = np.sort(before, axis=1), np.sort(now, axis=1)
    counts = [np.stack([np.bincount(row, minlength=n) for row in side]) / n for side in picks]
    means = (new @ counts[1].T) / (old @ counts[0].T)
    low, high = picks[:, :, (n - 1) // 2], picks[:, :, n // 2]
    medians = (new[:, low[1]] + new[:, high[1]]) / (old[:, low[0]] + old[:, high[0]])
    place = round(0.025 * RESAMPLES)
    return {
        "mean": np.partition(means, place, axis=1)[:, place],
        "median": np.partition(medians, place, axis=1)[:, place],
    }
