"""Percentiles of a sample, and how far the true ones may be above them.

The bound is distribution-free. Of n independent values, the number below the q-quantile is
binomial whatever their distribution is, so that an order statistic bounds it with a known
confidence. A high percentile needs many values: below ``least_count`` not even the largest
bounds it.
"""

from __future__ import annotations

from math import ceil, exp, lgamma, log
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How sure a bound is.
CONFIDENCE: Final = 0.95


class Quantile(NamedTuple):
    """A percentile of a sample, and what the true one is at most, with ``CONFIDENCE``."""

    value: float
    at_most: float


def least_count(fraction: float) -> int:
    """Return how many values bound a quantile: the largest exceeds it with ``CONFIDENCE``.

    >>> least_count(0.5), least_count(0.9), least_count(0.99)
    (5, 29, 299)
    """
    return ceil(log(1 - CONFIDENCE) / log(fraction))


def quantile(values: Sequence[float], fraction: float) -> Quantile | None:
    """Return a quantile with its bound; None where there are too few values to bound it.

    >>> quantile(range(1, 101), 0.9)
    Quantile(value=90, at_most=96)
    >>> quantile(range(1, 101), 0.99) is None
    True
    """
    ordered, count = sorted(values), len(values)
    if count < least_count(fraction):
        return None
    at_most = ordered[_bounding_rank(count, fraction) - 1]
    return Quantile(ordered[ceil(fraction * count - 1e-9) - 1], at_most)


def _bounding_rank(count: int, fraction: float) -> int:
    """Return the lowest rank whose value is below the quantile in few cases only.

    The value of rank k is below it if k or more of the values are. That is a tail of the binomial
    distribution, which is summed from its end.
    """
    below, rank = 0.0, count + 1
    while rank > 1:
        below += exp(_log_binomial(count, rank - 1, fraction))
        if below > 1 - CONFIDENCE:
            break
        rank -= 1
    return rank


def _log_binomial(count: int, hits: int, fraction: float) -> float:
    choices = lgamma(count + 1) - lgamma(hits + 1) - lgamma(count - hits + 1)
    return choices + hits * log(fraction) + (count - hits) * log(1 - fraction)
