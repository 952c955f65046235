"""What a PCC that somebody else told has passed over: values that it masked, or never compared.

Helpers replace NaN and infinity by zero, call two tensors of NaN alike, and let one element be
compared with many. Shapes that differ and hold the same number of elements are compared in order:
tests rely on that. So are masks: what is NaN, or the same infinity, on both sides is left out.
"""

from __future__ import annotations

from math import isnan, nan, prod
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.measure.pcc import Agreement, compare, operand, position

if TYPE_CHECKING:
    from pytest_ttnn_perf.measure.pcc import Array


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
