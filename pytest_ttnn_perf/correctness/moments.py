"""The fast pass: everything from one sweep, or nothing if rounding could show."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.agreement import Agreement

if TYPE_CHECKING:
    from pytest_ttnn_perf.correctness.pair import Pair

# Elements per dot product. OpenBLAS starts its threads at 10,000, and waking them for data that
# lies in this core's cache costs three times what they save. Shorter ones also round less.
_LANE: Final = 2048

# A variance is the difference of a raw second moment and the squared mean, and the second
# operand's is a difference again. Where less than this share of what was added up remains, more
# than four of float64's sixteen digits are gone, and the careful pass takes over.
_SHARE_LEFT: Final = 1e-4

# Squares near float64's smallest numbers lose digits; sums above this cannot contain many.
_TINY: Final = 1e-280


@dataclass(frozen=True, slots=True)
class Moments:
    """Raw sums over x and d = y - x, x being expected and y actual.

    The difference is summed in place of y because the errors need it anyway; y's moments follow.
    """

    size: int
    x: float
    d: float
    xx: float
    dd: float
    xd: float
    max_abs_d: float


class _Workspace:
    """Buffers for one chunk of x and d, and each seen as a stack of short vectors."""

    def __init__(self, size: int, chunk: int) -> None:
        import numpy as np

        lane = min(_LANE, chunk, size)
        lanes = -(-min(chunk, size) // lane)
        self.both = np.zeros((2, lanes * lane))
        self.x, self.d = self.both
        self.rows = self.both.reshape(2 * lanes, 1, lane)
        self.columns = self.both.reshape(2 * lanes, lane, 1)
        self.ones = np.ones((lane, 1))
        self.partial = np.zeros((5 * lanes, 1, 1))
        self.total = np.zeros_like(self.partial)
        self.sums = self.partial[: 2 * lanes]
        self.squares = self.partial[2 * lanes : 4 * lanes]
        self.products = self.partial[4 * lanes :]
        self.x_rows, self.d_columns = self.rows[:lanes], self.columns[lanes:]

    def totals(self) -> list[float]:
        """Return the sums of x, d, xx, dd and xd."""
        totals: list[float] = self.total.reshape(5, -1).sum(axis=1).tolist()
        return totals


def collect(pair: Pair, *, chunk: int) -> Moments:
    """Sum over all elements; what is not finite, or overflows, makes a sum not finite."""
    import numpy as np

    space = _Workspace(pair.size, chunk)
    d = space.d
    highest = lowest = 0.0
    for _ in pair.fill(space.x, d):  # zeros after the last element change no sum and no extreme
        np.subtract(d, space.x, out=d)
        np.matmul(space.rows, space.ones, out=space.sums)
        np.matmul(space.rows, space.columns, out=space.squares)
        np.matmul(space.x_rows, space.d_columns, out=space.products)
        np.add(space.total, space.partial, out=space.total)
        highest = max(highest, np.maximum.reduce(d))
        lowest = min(lowest, np.minimum.reduce(d))
    x, diff, xx, dd, xd = space.totals()
    return Moments(pair.size, x, diff, xx, dd, xd, max_abs_d=float(max(highest, -lowest)))


def agreement_of(sums: Moments) -> Agreement | None:
    """Return PCC and errors, or None if these sums cannot give them to about eleven digits."""
    x_variance = sums.xx - sums.x * sums.x / sums.size
    d_variance = sums.dd - sums.d * sums.d / sums.size
    x_d = sums.xd - sums.x * sums.d / sums.size
    y_variance = x_variance + 2.0 * x_d + d_variance
    if not isfinite(sums.xx + sums.dd + x_variance + y_variance):
        return None
    if min(x_variance, y_variance) <= max(_TINY, _SHARE_LEFT * (sums.xx + sums.dd)):
        return None
    if sums.max_abs_d == 0.0:
        return Agreement(1.0, max_abs_error=0.0, relative_l2=0.0)
    if sums.dd < _TINY:
        return None
    pcc = (x_variance + x_d) / (sqrt(x_variance) * sqrt(y_variance))
    return Agreement(
        max(-1.0, min(1.0, pcc)),
        max_abs_error=sums.max_abs_d,
        relative_l2=sqrt(sums.dd) / sqrt(sums.xx),
    )
