"""The careful pass: exact special cases, and sums that neither cancel nor overflow.

It reads the tensors twice and takes several times as long as the fast pass, so it runs only when
that one gave up: a constant side, values that are not finite, a mean far larger than the spread,
sides of very different scale, or magnitudes whose squares leave the range of float64.
"""

from __future__ import annotations

from math import frexp, inf, ldexp, sqrt
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass

if TYPE_CHECKING:
    from pytest_ttnn_perf.measure.pcc import Array, Pair


# Elements per chunk: below the 10,000 at which OpenBLAS starts threads for a dot product.
CHUNK: Final = 8192
# Powers of two between which squares, and sums of squares, are safe: those are left unscaled.
_SAFE_EXPONENT: Final = 300
_HALF_OF_RANGE: Final = 2.0**1022


@dataclass(slots=True)
class Side:
    """What one side holds; ``first`` is the flat position of its first value that is not finite.

    ``lowest`` and ``highest`` are over the finite values.
    """

    nans: int = 0
    infinities: int = 0
    first: int | None = None
    first_value: float = 0.0
    lowest: float = inf
    highest: float = -inf

    @property
    def is_finite(self) -> bool:
        """Whether no value is NaN or infinite."""
        return self.first is None

    @property
    def is_constant(self) -> bool:
        """Whether all values are exactly the same one."""
        return self.lowest == self.highest

    @property
    def largest(self) -> float:
        """The largest magnitude."""
        return max(abs(self.lowest), abs(self.highest))

    def add(self, values: Array, *, start: int) -> None:
        """Take in one chunk, whose first element has flat position ``start``."""
        import numpy as np

        finite = np.isfinite(values)
        if not finite.all():
            nans = int(np.isnan(values).sum())
            self.nans += nans
            self.infinities += int(values.size - finite.sum()) - nans
            if self.first is None:
                place = int(finite.argmin())
                self.first, self.first_value = start + place, float(values[place])
            values = values[finite]
        if values.size:
            self.lowest = min(self.lowest, float(values.min()))
            self.highest = max(self.highest, float(values.max()))


@dataclass(slots=True)
class _Centred:
    """Means and centred sums of products, merged chunk by chunk.

    The merge is that of Chan, Golub and LeVeque: nothing is subtracted from the sums of squares,
    so nothing cancels, however far the means of the chunks lie apart.
    """

    count: int = 0
    mean_x: float = 0.0
    mean_y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0

    def add(self, x: Array, y: Array) -> None:
        """Take in one chunk, which is overwritten."""
        import numpy as np

        mean_x, mean_y = float(x.mean()), float(y.mean())
        x -= mean_x
        y -= mean_y
        step_x, step_y = mean_x - self.mean_x, mean_y - self.mean_y
        total = self.count + x.size
        share = x.size / total
        weight = self.count * share
        self.xx += float(np.dot(x, x)) + step_x * step_x * weight
        self.xy += float(np.dot(x, y)) + step_x * step_y * weight
        self.yy += float(np.dot(y, y)) + step_y * step_y * weight
        self.mean_x += step_x * share
        self.mean_y += step_y * share
        self.count = total

    def pcc(self) -> float:
        """Return the correlation; neither side may be constant."""
        return max(-1.0, min(1.0, self.xy / (sqrt(self.xx) * sqrt(self.yy))))


@dataclass(slots=True)
class _Norm:
    """An L2 norm as ``peak`` (the largest magnitude) times the root of ``total``.

    Dividing by the peak before squaring keeps tiny errors from vanishing.
    """

    peak: float = 0.0
    total: float = 0.0

    def add(self, values: Array) -> None:
        """Take in one chunk, which is overwritten."""
        import numpy as np

        peak = max(float(values.max()), -float(values.min()))
        if peak > self.peak:
            self.total *= (self.peak / peak) ** 2
            self.peak = peak
        if self.peak:
            np.divide(values, self.peak, out=values)
            self.total += float(np.dot(values, values))

    def over(self, other: _Norm) -> float | None:
        """Return the quotient of two norms: None by zero, but 0.0 if both are zero."""
        if not other.peak:
            return None if self.peak else 0.0
        return self.peak / other.peak * sqrt(self.total / other.total)


@dataclass(frozen=True, slots=True)
class Measured:
    """PCC is None if a side is constant; both sides are finite."""

    pcc: float | None
    max_abs_error: float
    relative_l2: float | None


def scan(pair: Pair, *, chunk: int) -> tuple[Side, Side]:
    """Find extremes and values that are not finite, on either side."""
    x, y = _buffers(2, min(chunk, CHUNK, pair.size))
    expected, actual = Side(), Side()
    start = 0
    for count in pair.fill(x, y):
        expected.add(x[:count], start=start)
        actual.add(y[:count], start=start)
        start += count
    return expected, actual


def measure(pair: Pair, expected: Side, actual: Side, *, chunk: int) -> Measured:
    """Measure two finite sides, of which ``scan`` has told the extremes."""
    import numpy as np

    x, y, difference, scratch = _buffers(4, min(chunk, CHUNK, pair.size))
    x_exponent, y_exponent = _exponent(expected), _exponent(actual)
    x_middle, y_middle = _middle(expected, x_exponent), _middle(actual, y_exponent)
    # Half of each has a difference even where the difference of the two overflows.
    factor = 2.0 if max(expected.largest, actual.largest) > _HALF_OF_RANGE else 1.0
    centred, error, norm = _Centred(), _Norm(), _Norm()
    for count in pair.fill(x, y):
        some_x, some_y, delta, spare = x[:count], y[:count], difference[:count], scratch[:count]
        np.multiply(some_x, 1.0 / factor, out=spare)
        np.multiply(some_y, 1.0 / factor, out=delta)
        np.subtract(delta, spare, out=delta)
        error.add(delta)
        norm.add(spare)
        # Moving the origin between the extremes costs no digit that the result has, and it gives
        # the means of the chunks, and so their differences, all of theirs.
        centred.add(
            _scale(some_x, x_exponent, origin=x_middle),
            _scale(some_y, y_exponent, origin=y_middle),
        )
    constant = expected.is_constant or actual.is_constant
    return Measured(
        None if constant else 1.0 if not error.peak else centred.pcc(),
        max_abs_error=error.peak * factor,
        relative_l2=error.over(norm),
    )


def _buffers(number: int, size: int) -> Array:
    import numpy as np

    return np.zeros((number, size))


def _exponent(side: Side) -> int:
    """Return the power of two to divide by so that squares are safe; 0 if they already are."""
    exponent = frexp(side.largest)[1]
    return 0 if abs(exponent) <= _SAFE_EXPONENT else exponent


def _middle(side: Side, exponent: int) -> float:
    return ldexp(side.lowest, -exponent) / 2.0 + ldexp(side.highest, -exponent) / 2.0


def _scale(values: Array, exponent: int, *, origin: float) -> Array:
    """Divide by a power of two, which rounds nothing, and move the origin; in place."""
    import numpy as np

    if exponent:
        np.ldexp(values, -exponent, out=values)
    values -= origin
    return values
