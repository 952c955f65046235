"""Pearson correlation in float64: of outputs, of layers, of helpers' comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf, isnan, nan, prod, sqrt
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from msgspec import Struct

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.text import counted, text_of, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Array: TypeAlias = Any
_ACCEPTED: Final = "a numpy array, a torch tensor, a ttnn tensor or an object with __array__"
#: Elements that are converted at a time: they stay in the cache, and BLAS starts no threads.
_CHUNK: Final = 8_192


class Agreement(Struct, frozen=True):
    """Pearson correlation and errors of ``actual`` against ``expected``.

    ``pcc`` is NaN where it does not exist. ``sentence`` says why that is so, or that a side is
    constant. ``max_abs_error`` and ``relative_l2`` are None where they do not exist.
    """

    pcc: float
    sentence: str | None = None
    max_abs_error: float | None = None
    relative_l2: float | None = None


def compare(expected: object, actual: object, *, chunk: int = _CHUNK) -> Agreement:
    """Compare two tensors in float64, ``chunk`` elements at a time.

    PCC says whether the values rise and fall together; it is blind to a common factor or offset,
    which the two errors show. Values that are not finite are never left out. Integers beyond
    2**53 are rounded, as float64 has no room for them.

    Raises:
        UsageError: an argument is not a tensor of numbers.
    """
    left, right = _readable(expected, "expected"), _readable(actual, "actual")
    shape, other = tuple(left.shape), tuple(right.shape)
    complexes = [
        f"{name} ({_dtype(side)})"
        for name, side in (("expected", left), ("actual", right))
        if _dtype(side).startswith("complex")
    ]
    if complexes:
        why = "complex values have no PCC; compare real and imaginary parts on their own"
        return Agreement(nan, f"{' and '.join(complexes)}: {why}")
    if shape != other:
        shapes = f"expected has shape {shape} and actual has shape {other}"
        return Agreement(nan, f"{shapes}: PCC does not exist")
    if 0 in shape:
        return Agreement(nan, f"both sides have shape {shape} and no element: PCC does not exist")
    x, y = left.reshape(-1), right.reshape(-1)  # a copy only of what is not contiguous
    sides = {"expected": _scan(x, chunk), "actual": _scan(y, chunk)}
    broken = [
        f"{name} holds {side.nans} NaN and {side.infinities} infinite of {len(x)} values, the "
        f"first ({'NaN' if isnan(side.first[1]) else side.first[1]}) at "
        f"{_position(side.first[0], shape)}"
        for name, side in sides.items()
        if side.first is not None
    ]
    if broken:
        return Agreement(nan, f"{'; '.join(broken)}: PCC does not exist")
    with np.errstate(all="ignore"):  # numpy need not warn of what the result says
        return _correlate(x, y, sides["expected"], sides["actual"], chunk)


class _Side(Struct):
    """Non-finite values of one side, and the extremes of the others."""

    nans: int = 0
    infinities: int = 0
    first: tuple[int, float] | None = None
    lowest: float = inf
    highest: float = -inf

    @property
    def is_constant(self) -> bool:
        return self.lowest == self.highest

    @property
    def middle(self) -> float:
        return self.lowest / 2 + self.highest / 2

    def span(self, name: str) -> str:
        if self.is_constant:
            return f"{name} is constant at {self.lowest}"
        return f"{name} runs from {self.lowest} to {self.highest}"


def _scan(flat: Array, chunk: int) -> _Side:
    side = _Side()
    for start in range(0, len(flat), chunk):
        values = _floats(flat, start, chunk)
        finite = np.isfinite(values)
        if not finite.all():
            nans = int(np.isnan(values).sum())
            side.nans += nans
            side.infinities += int(values.size - finite.sum()) - nans
            place = int(finite.argmin())
            side.first = side.first or (start + place, float(values[place]))
            values = values[finite]
        if values.size:
            side.lowest = min(side.lowest, float(values.min()))
            side.highest = max(side.highest, float(values.max()))
    return side


def _correlate(x: Array, y: Array, expected: _Side, actual: _Side, chunk: int) -> Agreement:
    """Sum products of finite values, counted from the middle of their range.

    That keeps the digits of values that lie far from zero; the means correct the sums.
    """
    totals, largest = np.zeros(7), 0.0
    for start in range(0, len(x), chunk):
        x_values, y_values = _floats(x, start, chunk), _floats(y, start, chunk)
        a, b, d = x_values - expected.middle, y_values - actual.middle, y_values - x_values
        totals += [a.sum(), b.sum(), a @ a, b @ b, a @ b, d @ d, x_values @ x_values]
        largest = max(largest, float(abs(d).max()))
    sum_a, sum_b, aa, bb, ab, dd, xx = totals.tolist()
    sentence = None
    if not largest:
        pcc = 1.0
        if expected.is_constant:
            constant = f"both sides are constant at {expected.lowest}"
            sentence = f"{constant}: PCC is 0/0 and 1.0 by definition"
    elif expected.is_constant or actual.is_constant:
        pcc = 0.0
        spans = f"{expected.span('expected')} and {actual.span('actual')}"
        sentence = f"{spans}: PCC is 0/0 and counts as 0.0"
    else:
        a_variance, b_variance = aa - sum_a * sum_a / len(x), bb - sum_b * sum_b / len(x)
        # Neither is 0, but for numbers whose squares float64 cannot hold.
        scale = sqrt(a_variance * b_variance)
        pcc = (ab - sum_a * sum_b / len(x)) / scale if scale else nan
    relative_l2 = sqrt(dd / xx) if xx else None if largest else 0.0
    # NaN stays NaN in this order.
    return Agreement(max(min(pcc, 1.0), -1.0), sentence, largest, relative_l2)


def _position(flat: int, shape: tuple[int, ...]) -> str:
    return str([int(index) for index in np.unravel_index(flat, shape)])


# Tensors of any library, read as numbers.


def _readable(value: object, side: str) -> Any:
    """Return a numpy array, or a torch tensor such as bfloat16.

    Raises:
        UsageError: it is not a tensor, or not one of numbers.
    """
    data: Any = None
    if isinstance(value, type):  # a class has the methods its instances have
        pass
    elif hasattr(value, "to_torch"):
        data = _from_torch(_from_ttnn(value, side), side)
    elif all(hasattr(value, name) for name in ("detach", "cpu", "numpy")):
        data = _from_torch(value, side)
    elif hasattr(value, "__array__"):
        data = np.asarray(value)
    if data is None:
        raise UsageError(f"{side} must be {_ACCEPTED}, not {_type_name(value)}")
    # The last test lets in what other packages register with numpy, such as jax's bfloat16.
    if (
        isinstance(data, np.ndarray)
        and data.dtype.kind not in "biufc"
        and not np.can_cast(data.dtype, np.float64)
    ):
        raise UsageError(f"{side} must hold numbers, not elements of dtype {data.dtype}")
    return data


def _from_ttnn(value: Any, side: str) -> Any:
    try:
        host = value.cpu() if hasattr(value, "cpu") else value
        return host.to_torch()
    except RuntimeError as cause:
        raise UsageError(
            f"{side}: {_type_name(value)} cannot become a torch tensor ({_first_line(cause)}); if "
            "it lies on several devices, pass ttnn.to_torch(tensor, mesh_composer=...)"
        ) from cause


def _from_torch(value: Any, side: str) -> Any:
    try:
        tensor = value.detach().cpu()
        if tensor.is_complex():
            return tensor
        tensor = tensor.resolve_neg()  # numpy cannot see a negation torch has put off
        try:
            return tensor.numpy()
        except TypeError:  # bfloat16: it is converted piece by piece
            return tensor
    except (AttributeError, TypeError, RuntimeError) as cause:
        name = _type_name(value)
        message = f"{side}: {name} cannot be read as numbers: {_first_line(cause)}"
        raise UsageError(message) from cause


def _floats(flat: Array, start: int, count: int) -> Array:
    piece = flat[start : start + count]
    piece = piece if isinstance(piece, np.ndarray) else piece.double().numpy()
    return np.asarray(piece, dtype=np.float64)


def _dtype(data: Any) -> str:
    return str(data.dtype).removeprefix("torch.")


def _type_name(value: object) -> str:
    kind = type(value)
    own = kind.__module__ == "builtins"
    return kind.__qualname__ if own else f"{kind.__module__}.{kind.__qualname__}"


def _first_line(error: Exception) -> str:
    return text_of(error).partition("\n")[0]


# Comparisons of helpers, whose PCC may pass over values that they masked, or never compared.
#
# Helpers replace NaN and infinity by zero, call two tensors of NaN alike, and let one element be
# compared with many. Shapes that differ and hold the same number of elements are compared in order:
# tests rely on that. So are masks: what is NaN, or the same infinity, on both sides is left out.

#: Helpers reckon in float32 and round what they return; a masked output differs by more.
_ROUNDING: Final = 0.005


def elements_of(value: object) -> int | None:
    if hasattr(value, "to_torch") or isinstance(value, type):  # may lie on a device
        return None
    size: Any = getattr(value, "numel", None) or getattr(value, "size", None)
    count = size() if callable(size) else size
    return count if isinstance(count, int) else None


def passed_over(expected: object, actual: object, claimed: float | None) -> Agreement | None:
    """Return our own result if it contradicts a helper's.

    ``claimed`` is the PCC of a helper that lets the comparison pass; None if it is not known.
    """
    try:
        left, right = _readable(expected, "expected"), _readable(actual, "actual")
    except UsageError:  # not for us to compare
        return None
    if any(_dtype(side).startswith("complex") for side in (left, right)):
        return None
    shape, sizes = tuple(right.shape), (prod(left.shape), prod(right.shape))
    if sizes[0] != sizes[1]:
        shapes = f"expected has shape {tuple(left.shape)} and actual has shape {shape}"
        return Agreement(nan, f"{shapes}: one was stretched to the other")
    if not sizes[0]:
        return Agreement(nan, f"both sides have shape {tuple(left.shape)}: nothing was compared")
    x, y = left.reshape(-1), right.reshape(-1)
    agreement = compare(x, y)
    if isnan(agreement.pcc):  # some value is not finite
        x, y = _floats(x, 0, len(x)), _floats(y, 0, len(y))
        problem = _masked(x, y, shape)
        if problem is not None:
            return Agreement(nan, problem)
        agreement = compare(x[np.isfinite(x)], y[np.isfinite(y)])
    if claimed is None or agreement.sentence is not None or claimed - agreement.pcc <= _ROUNDING:
        return None
    return Agreement(agreement.pcc, "the values do not correlate as stated")


def _masked(expected: Array, actual: Array, shape: tuple[int, ...]) -> str | None:
    """Say where values are not finite on one side only."""
    finite, computed = np.isfinite(expected), np.isfinite(actual)
    if not (finite.any() or computed.any()):
        none = f"none of the {counted(expected.size, 'value')} of either side is finite"
        return f"{none}: nothing was compared"
    # NaN is not itself: two of them count as the same mask.
    same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    for side, values, where in (
        ("actual", actual, ~computed & ~same),
        ("expected", expected, ~finite & ~same & computed),
    ):
        if where.any():
            nans = int(np.isnan(values[where]).sum())
            return (
                f"{side} holds {nans} NaN and {int(where.sum()) - nans} infinite of {values.size} "
                f"values where the other side does not, the first at "
                f"{_position(int(where.argmax()), shape)}"
            )
    return None


# Layers: the first to go wrong.

#: A line of a terminal.
_WIDTH: Final = 80
_FORMS: Final = "a mapping from names to (expected, actual), or (name, expected, actual) each"


class Layer(Struct, frozen=True):
    """The agreement of a layer's output, and its limit."""

    name: str
    agreement: Agreement
    at_least: float

    @property
    def pcc(self) -> float:
        return self.agreement.pcc

    @property
    def is_below(self) -> bool:
        return not self.pcc >= self.at_least

    def __str__(self) -> str:
        value = f"{self.pcc:.5g}"
        if self.is_below and float(value) >= self.at_least:  # rounded up to the limit
            value = repr(self.pcc)
        return f"{visible(self.name)} {value}"


def compare_layers(
    layers: object, at_least: Mapping[str, float], otherwise: float
) -> Sequence[Layer]:
    """Compare layers in their order; ``otherwise`` is the limit of the others.

    Raises:
        UsageError: there are none, they are not what is expected, or a limit is of none of them.
    """
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
    # A tensor has no parts, whatever its length.
    return tuple(layer) if isinstance(layer, (tuple, list)) else ()


def worst_layer(layers: Sequence[Layer]) -> Layer:
    """Return the worst layer below its limit, or the worst of all."""
    below = [layer for layer in layers if layer.is_below]
    return min(below or layers, key=lambda layer: -inf if isnan(layer.pcc) else layer.pcc)


def first_below(layers: Sequence[Layer]) -> str | None:
    """Name the first layer below its limit, between its neighbours.

    Its neighbours are left out where they do not fit into a line.
    """
    below = [number for number, layer in enumerate(layers) if layer.is_below]
    if not below:
        return None
    first = below[0]
    marked = f"{layers[first]} <- first below {layers[first].at_least:g}"
    count = f"; {len(below)} of {counted(len(layers), 'layer')} below"
    before = [str(layer) for layer in layers[max(first - 1, 0) : first]]
    after = [str(layer) for layer in layers[first + 1 : first + 2]]
    sentence = ", ".join((*before, marked, *after)) + count
    return sentence if len(sentence) <= _WIDTH else marked + count
