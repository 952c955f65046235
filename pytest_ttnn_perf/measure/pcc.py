"""PCC layer by layer: which layer is the first to go wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from itertools import product
from math import frexp, inf, isfinite, isnan, ldexp, nan, prod, sqrt
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.text import counted, text_of, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# What a PCC that somebody else told has passed over: values that it masked, or never compared.
#
# Helpers replace NaN and infinity by zero, call two tensors of NaN alike, and let one element be
# compared with many. Shapes that differ and hold the same number of elements are compared in order:
# tests rely on that. So are masks: what is NaN, or the same infinity, on both sides is left out.

#: Helpers reckon in float32 and round what they return; a masked output differs by more.
_ROUNDING: Final = 0.005


def elements_of(value: object) -> int | None:
    """Return how many elements a tensor in the memory of the host has; None for anything else."""
    if hasattr(value, "to_torch") or isinstance(value, type):  # may lie on a device
        return None
    size: Any = getattr(value, "numel", None) or getattr(value, "size", None)
    count = size() if callable(size) else size
    return count if isinstance(count, int) else None


def passed_over(expected: object, actual: object, told: float | None) -> Agreement | None:
    """Return what the values say where it is not what was told; None where nothing speaks for it.

    ``told`` is the PCC of somebody who lets the comparison pass; None where no number is known.
    """
    try:
        left, right = operand(expected, "expected"), operand(actual, "actual")
    except UsageError:  # not for us to compare
        return None
    if left.is_complex or right.is_complex:
        return None
    sizes = prod(left.shape), prod(right.shape)
    if sizes[0] != sizes[1]:
        shapes = f"expected has shape {left.shape} and actual has shape {right.shape}"
        return Agreement(nan, f"{shapes}: one was stretched to the other")
    if not sizes[0]:
        return Agreement(nan, f"both sides have shape {left.shape}: nothing was compared")
    ours, theirs = left.data.reshape(-1), right.data.reshape(-1)
    agreement = compare(ours, theirs)
    if isnan(agreement.pcc):  # some value is not finite
        masked = _not_finite(_as_floats(ours), _as_floats(theirs), right.shape)
        if isinstance(masked, Agreement):
            return masked
        agreement = compare(*masked)
    if told is None or agreement.sentence is not None or told - agreement.pcc <= _ROUNDING:
        return None
    return Agreement(agreement.pcc, "the values do not correlate as was told")


def _as_floats(flat: Array) -> Array:
    import numpy as np

    return np.asarray(flat if isinstance(flat, np.ndarray) else flat.double(), dtype=np.float64)


def _not_finite(
    expected: Array, actual: Array, shape: tuple[int, ...]
) -> Agreement | tuple[Array, Array]:
    """Say where values are not finite; where they are the same on both sides, return the others."""
    import numpy as np

    finite, computed = np.isfinite(expected), np.isfinite(actual)
    if not (finite.any() or computed.any()):
        none = f"none of the {counted(expected.size, 'value')} of either side is finite"
        return Agreement(nan, f"{none}: nothing was compared")
    # NaN is not itself: two of them count as the same mask.
    same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    masked = ~computed & ~same
    missing = ~finite & ~same & computed
    if not (masked.any() or missing.any()):
        return expected[finite], actual[finite]
    where, values, side = (
        (masked, actual, "actual") if masked.any() else (missing, expected, "expected")
    )
    nans = int(np.isnan(values[where]).sum())
    sentence = (
        f"{side} holds {nans} NaN and {int(where.sum()) - nans} infinite of {values.size} values "
        f"where the other side does not, the first at {position(int(where.argmax()), shape)}"
    )
    return Agreement(nan, sentence)


# The careful pass: exact special cases, and sums that neither cancel nor overflow.
#
# It reads the tensors twice and takes several times as long as the fast pass, so it runs only when
# that one gave up: a constant side, values that are not finite, a mean far larger than the spread,
# sides of very different scale, or magnitudes whose squares leave the range of float64.

# Elements per chunk: below the 10,000 at which OpenBLAS starts threads for a dot product.
CHUNK: Final = 8192
# Powers of two between which squares, and sums of squares, are safe: those are left unscaled.
_SAFE_EXPONENT: Final = 300
_HALF_OF_RANGE: Final = 2.0**1022


class Side(Struct):
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


class _Centred(Struct):
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


class _Norm(Struct):
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


class Measured(Struct, frozen=True):
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


# Pearson correlation of two tensors, read block by block, and the errors it does not see.

# numpy is imported where it is used: a run that compares nothing does not pay for it.
Array: TypeAlias = Any
Index: TypeAlias = tuple[int | slice, ...]
_ACCEPTED: Final = "a numpy array, a torch tensor, a ttnn tensor or an object with __array__"
# More elements than this torch converts in several threads, and the next step, in this thread, then
# waits for the caches of other cores: twice as slow in all.
_TORCH_GRAIN: Final = 32_768


class Operand(Struct, frozen=True):
    """One side of a comparison.

    ``data`` is a numpy array, or a torch tensor of a type numpy lacks (bfloat16, float8).
    """

    data: Any
    shape: tuple[int, ...]
    dtype: str
    is_complex: bool
    is_contiguous: bool

    def flattened(self) -> Operand:
        """Return the same elements in one dimension; they must be contiguous: nothing is copied."""
        flat = self.data.reshape(-1)
        return Operand(flat, (len(flat),), self.dtype, self.is_complex, is_contiguous=True)

    def read(self, index: Index, out: Array) -> int:
        """Convert one block to float64 at the start of ``out``; return its number of elements."""
        import numpy as np

        block = self.data[index]
        if isinstance(block, np.ndarray):
            np.copyto(out[: block.size].reshape(block.shape), block, casting="unsafe")
            return int(block.size)
        flat = block.reshape(-1)
        for start in range(0, len(flat), _TORCH_GRAIN):
            piece = flat[start : start + _TORCH_GRAIN].double().numpy()
            np.copyto(out[start : start + piece.size], piece)
        return len(flat)


def operand(value: object, side: str) -> Operand:
    """Make ``value`` readable; ``side`` is its name in messages.

    Raises:
        UsageError: not a tensor, or not one of numbers.
    """
    import numpy as np

    masked = sys.modules.get("numpy.ma")  # who has none of them has not imported it
    if masked is not None and isinstance(value, masked.MaskedArray):
        raise UsageError(
            f"{side} is a masked array, and every element counts in a comparison: "
            "pass .filled(...) or .compressed()"
        )
    if isinstance(value, type):  # a class has the methods its instances have
        raise _unreadable(value, side)
    if isinstance(value, np.ndarray):
        return _from_numpy(np.asarray(value), side)
    if hasattr(value, "to_torch"):
        return _from_torch(_from_ttnn(value, side), side)
    if all(hasattr(value, name) for name in ("detach", "cpu", "numpy")):
        return _from_torch(value, side)
    if hasattr(value, "__array__"):
        return _from_numpy(np.asarray(value), side)
    raise _unreadable(value, side)


def _unreadable(value: object, side: str) -> UsageError:
    return UsageError(f"{side} must be {_ACCEPTED}, not {_name(value)}")


def _from_numpy(array: Array, side: str) -> Operand:
    import numpy as np

    kind = array.dtype.kind
    # The second test lets in what other packages register with numpy, such as jax's bfloat16.
    if kind not in "biufc" and not np.can_cast(array.dtype, np.float64):
        raise UsageError(f"{side} must hold numbers, not elements of dtype {array.dtype}")
    return Operand(
        array,
        tuple(array.shape),
        str(array.dtype),
        is_complex=kind == "c",
        is_contiguous=bool(array.flags.c_contiguous),
    )


def _from_ttnn(value: Any, side: str) -> Any:
    """Bring a ttnn tensor to the host; only there can it become a torch tensor."""
    try:
        host = value.cpu() if hasattr(value, "cpu") else value
        return host.to_torch()
    except RuntimeError as cause:
        raise UsageError(
            f"{side}: {_name(value)} cannot become a torch tensor ({_first_line(cause)}); if it "
            "lies on several devices, pass ttnn.to_torch(tensor, mesh_composer=...)"
        ) from cause


def _from_torch(value: Any, side: str) -> Operand:
    """Share memory with numpy if numpy has the type; else keep the tensor and convert by block."""
    import numpy as np

    try:
        tensor = value.detach().cpu()
        is_complex = bool(tensor.is_complex())
        if not is_complex:
            tensor = tensor.resolve_neg()  # numpy cannot see a negation torch has put off
        data = tensor if is_complex else _shared_or_probed(tensor)
    except (AttributeError, TypeError, RuntimeError) as cause:
        reason = _first_line(cause)
        raise UsageError(f"{side}: {_name(value)} cannot be read as numbers: {reason}") from cause
    if isinstance(data, np.ndarray):
        return _from_numpy(data, side)
    return Operand(
        data,
        tuple(int(length) for length in data.shape),
        str(data.dtype).removeprefix("torch."),
        is_complex=is_complex,
        is_contiguous=bool(data.is_contiguous()),
    )


def _shared_or_probed(tensor: Any) -> Any:
    """Return a numpy array on the same memory, or a tensor of which blocks convert to float64."""
    try:
        return tensor.numpy()
    except TypeError as unsupported:
        # bfloat16 gets here, and so do sparse tensors, which have no blocks: one element tells.
        try:
            tensor[(slice(0, 1),) * tensor.dim()].double().numpy()
        except RuntimeError:
            raise unsupported from None
        return tensor


def _name(value: object) -> str:
    kind = type(value)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _first_line(error: Exception) -> str:
    return text_of(error).partition("\n")[0]


class Agreement(Struct, frozen=True):
    """Pearson correlation and errors of ``actual`` against ``expected``.

    ``pcc`` is NaN where it does not exist. ``sentence`` says why that is so, or that a side is
    constant; None where nothing is special. ``max_abs_error`` and ``relative_l2`` are None where
    they do not exist.
    """

    pcc: float
    sentence: str | None = None
    max_abs_error: float | None = None
    relative_l2: float | None = None


def without_values(expected: Operand, actual: Operand) -> Agreement | None:
    """Return the agreement if it follows from types and shapes alone, else None."""
    if expected.is_complex or actual.is_complex:
        sides = [
            f"{name} ({side.dtype})"
            for name, side in (("expected", expected), ("actual", actual))
            if side.is_complex
        ]
        return _undefined(
            f"{' and '.join(sides)}: complex values have no PCC; compare real and imaginary "
            "parts on their own",
        )
    if expected.shape != actual.shape:
        return _undefined(
            f"expected has shape {expected.shape} and actual has shape {actual.shape}: "
            "PCC does not exist",
        )
    if 0 in expected.shape:
        return _undefined(
            f"both sides have shape {expected.shape} and no element: PCC does not exist",
        )
    return None


def non_finite(pair: Pair, expected: Side, actual: Side) -> Agreement:
    """Say which side holds how many values that are not finite, and where the first one is."""
    sides = [
        f"{name} holds {side.nans} NaN and {side.infinities} infinite of {pair.size} values, "
        f"the first ({_named(side.first_value)}) at {position(side.first, pair.shape)}"
        for name, side in (("expected", expected), ("actual", actual))
        if side.first is not None
    ]
    return _undefined(f"{'; '.join(sides)}: PCC does not exist")


def constant(expected: Side, actual: Side, *, measured: Measured) -> Agreement:
    """Say which side is constant, and at what."""
    spans = f"{_span('expected', expected)} and {_span('actual', actual)}"
    if expected.is_constant and actual.is_constant and expected.lowest == actual.lowest:
        sentence = f"both sides are constant at {expected.lowest}: PCC is 0/0 and 1.0 by definition"
        pcc = 1.0
    else:
        sentence = f"{spans}: PCC is 0/0 and counts as 0.0"
        pcc = 0.0
    return Agreement(pcc, sentence, measured.max_abs_error, measured.relative_l2)


def _undefined(sentence: str) -> Agreement:
    return Agreement(nan, sentence)


def _named(value: float) -> str:
    return "NaN" if isnan(value) else str(value)


def position(flat: int, shape: tuple[int, ...]) -> str:
    """Return the indices of an element as text.

    >>> position(5, (2, 3))
    '[1, 2]'
    """
    indices: list[int] = []
    for length in reversed(shape):
        flat, index = divmod(flat, length)
        indices.insert(0, index)
    return str(indices)


def _span(name: str, side: Side) -> str:
    if side.is_constant:
        return f"{name} is constant at {side.lowest}"
    return f"{name} runs from {side.lowest} to {side.highest}"


class Pair:
    """Two non-empty operands of one shape; ``size`` is the number of elements of each."""

    def __init__(self, expected: Operand, actual: Operand) -> None:
        self.shape = expected.shape
        self.size = prod(expected.shape)
        if expected.is_contiguous and actual.is_contiguous:
            # In one dimension all chunks are full ones.
            expected, actual = expected.flattened(), actual.flattened()
        self._expected = expected
        self._actual = actual

    def fill(self, x: Array, y: Array) -> Iterator[int]:
        """Fill two equally long float64 buffers again and again until all elements were there.

        Yields:
            How many elements are new; the rest of both buffers is zero. Elements come in C order.
        """
        for index in blocks(self._expected.shape, x.size):
            count = self._expected.read(index, x)
            self._actual.read(index, y)
            x[count:] = 0.0
            y[count:] = 0.0
            yield count


def blocks(shape: tuple[int, ...], limit: int) -> Iterator[Index]:
    """Cut ``shape`` (one dimension or more) into blocks of at most ``limit`` elements, in C order.

    >>> list(blocks((2, 3), 2))  # doctest: +NORMALIZE_WHITESPACE
    [(0, slice(0, 2, None)), (0, slice(2, 4, None)),
     (1, slice(0, 2, None)), (1, slice(2, 4, None))]
    """
    axis = len(shape) - 1
    inner = 1
    while axis > 0 and inner * shape[axis] <= limit:
        inner *= shape[axis]
        axis -= 1
    step = limit // inner
    for prefix in product(*map(range, shape[:axis])):
        for start in range(0, shape[axis], step):
            yield (*prefix, slice(start, start + step))


# Elements per dot product. OpenBLAS starts its threads at 10,000, and waking them for data that
# lies in this core's cache costs three times what they save. Shorter ones also round less.
_LANE: Final = 2048
# A variance is the difference of a raw second moment and the squared mean, and the second
# operand's is a difference again. Where less than this share of what was added up remains, more
# than four of float64's sixteen digits are gone, and the careful pass takes over.
_SHARE_LEFT: Final = 1e-4
# Squares near float64's smallest numbers lose digits; sums above this cannot contain many.
_TINY: Final = 1e-280


class Moments(Struct, frozen=True):
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


# Elements per chunk: its two float64 buffers take 2 MiB, which stay in the second-level cache or
# just beyond it. Half as many cost 10 % more time (reading starts over more often), twice as many
# gain nothing.
_CHUNK: Final = 131_072


def compare(expected: object, actual: object) -> Agreement:
    """Compare two tensors element by element, in float64.

    PCC says whether the values rise and fall together; it is blind to a common factor or offset,
    which the two errors show. Values that are not finite are never left out. Integers beyond
    2**53 are rounded, as float64 has no room for them.

    Raises:
        UsageError: an argument is not a tensor of numbers.
    """
    return compare_in_chunks(expected, actual, chunk=_CHUNK)


def compare_in_chunks(expected: object, actual: object, *, chunk: int) -> Agreement:
    """Do what ``compare`` does, with at most ``chunk`` elements of each side at a time."""
    import numpy as np

    left, right = operand(expected, "expected"), operand(actual, "actual")
    known = without_values(left, right)
    if known is not None:
        return known
    pair = Pair(left, right)
    # Overflow and NaN show in the sums and are then told in words; numpy need not warn as well.
    with np.errstate(all="ignore"):
        agreement = agreement_of(collect(pair, chunk=chunk))
        return agreement or _carefully(pair, chunk=chunk)


def _carefully(pair: Pair, *, chunk: int) -> Agreement:
    expected, actual = scan(pair, chunk=chunk)
    if not (expected.is_finite and actual.is_finite):
        return non_finite(pair, expected, actual)
    measured = measure(pair, expected, actual, chunk=chunk)
    if measured.pcc is None:
        return constant(expected, actual, measured=measured)
    return Agreement(
        measured.pcc, max_abs_error=measured.max_abs_error, relative_l2=measured.relative_l2
    )


#: A line of a terminal.
_WIDTH: Final = 80
_FORMS: Final = "a mapping from names to (expected, actual), or (name, expected, actual) each"


class Layer(Struct, frozen=True):
    """A layer, how its output agrees with what was expected, and how much it has to."""

    name: str
    agreement: Agreement
    at_least: float

    @property
    def pcc(self) -> float:
        """The correlation; NaN where there is none."""
        return self.agreement.pcc

    @property
    def is_below(self) -> bool:
        """Whether it is below its limit, or does not exist."""
        return not self.pcc >= self.at_least

    def __str__(self) -> str:
        value = f"{self.pcc:.5g}"
        if self.is_below and float(value) >= self.at_least:  # rounded up to the limit
            value = repr(self.pcc)
        return f"{visible(self.name)} {value}"


def compare_layers(
    layers: object, at_least: Mapping[str, float], otherwise: float
) -> Sequence[Layer]:
    """Compare layers in their order, one at a time; ``otherwise`` limits those without a limit.

    Raises:
        UsageError: there are none, they are not what is expected, or a limit is of none of them.
    """
    __tracebackhide__ = True  # a failure points at the line of the test
    found: dict[str, Layer] = {}
    for name, expected, actual in _named_pairs(layers):
        if name in found:
            message = f"check_layers was given {name} twice; each layer has a name of its own"
            raise UsageError(message)
        found[name] = Layer(name, compare(expected, actual), at_least.get(name, otherwise))
    if not found:
        message = "check_layers was given no layer: nothing was compared"
        raise UsageError(message)
    unknown = [name for name in at_least if name not in found]
    if unknown:
        message = f"at_least names {', '.join(unknown)}, which is not one of the layers"
        raise UsageError(f"{message} ({', '.join(found)})")
    return tuple(found.values())


def _named_pairs(layers: object) -> Iterator[tuple[str, object, object]]:
    __tracebackhide__ = True
    if isinstance(layers, Mapping):
        layers = ((name, *_parts(pair)) for name, pair in layers.items())
    if not isinstance(layers, Iterable):
        message = f"check_layers takes {_FORMS}: found {type(layers).__name__}"
        raise UsageError(message)
    for number, layer in enumerate(layers):
        parts = _parts(layer)
        if len(parts) != 3 or not isinstance(parts[0], str) or not parts[0].strip():
            message = f"check_layers takes {_FORMS}: layer {number} is not"
            raise UsageError(message)
        yield parts[0], parts[1], parts[2]


def _parts(layer: object) -> tuple[object, ...]:
    """Return the parts of a tuple or list; a tensor is none, whatever its length."""
    return tuple(layer) if isinstance(layer, (tuple, list)) else ()


def worst_layer(layers: Sequence[Layer]) -> Layer:
    """Return the layer to judge all by: the worst of those below their limits, else of all."""
    below = [layer for layer in layers if layer.is_below]
    return min(below or layers, key=lambda layer: -inf if isnan(layer.pcc) else layer.pcc)


def first_below(layers: Sequence[Layer]) -> str | None:
    """Name the first layer below its limit, between its neighbours; None where all are above.

    Left out where they do not fit into a line: the count, the layer after it, the layer before it.
    """
    below = [number for number, layer in enumerate(layers) if layer.is_below]
    if not below:
        return None
    first = below[0]
    marked = f"{layers[first]} <- first below {layers[first].at_least:g}"
    count = f"; {len(below)} of {counted(len(layers), 'layer')} below"
    before = [str(layer) for layer in layers[max(first - 1, 0) : first]]
    after = [str(layer) for layer in layers[first + 1 : first + 2]]
    for around in ((before, after, count), (before, after, ""), (before, [], ""), ([], [], "")):
        sentence = ", ".join((*around[0], marked, *around[1])) + around[2]
        if len(sentence) <= _WIDTH:
            break
    return sentence
