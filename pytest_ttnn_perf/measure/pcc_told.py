"""What a PCC that somebody else told has passed over: values that it masked, or never compared.

Helpers replace NaN and infinity by zero, call two tensors of NaN alike, and let one element be
compared with many. Shapes that differ and hold the same number of elements are compared in order:
tests rely on that. So are masks: what is NaN, or the same infinity, on both sides is left out.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.measure.pcc import Agreement, compare, operand, position

if TYPE_CHECKING:
    from pytest_ttnn_perf.measure.pcc import Array, Operand


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
    ours, theirs = _flat(left), _flat(right)
    if ours.size != theirs.size:
        shapes = f"expected has shape {left.shape} and actual has shape {right.shape}"
        return Agreement(nan, f"{shapes}: one was stretched to the other")
    if not ours.size:
        return Agreement(nan, f"both sides have shape {left.shape}: nothing was compared")
    return _of_values(ours, theirs, right.shape, told)


def _flat(side: Operand) -> Array:
    import numpy as np

    flat = side.data.reshape(-1)
    return np.asarray(flat if isinstance(flat, np.ndarray) else flat.double(), dtype=np.float64)


def _of_values(
    expected: Array, actual: Array, shape: tuple[int, ...], told: float | None
) -> Agreement | None:
    import numpy as np

    finite, computed = np.isfinite(expected), np.isfinite(actual)
    if not (finite.any() or computed.any()):
        values = counted(expected.size, "value")
        return Agreement(
            nan, f"none of the {values} of either side is finite: nothing was compared"
        )
    # NaN is not itself: two of them count as the same mask.
    same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    masked = ~computed & ~same
    missing = ~finite & ~same & computed
    if masked.any() or missing.any():
        where, side = (masked, "actual") if masked.any() else (missing, "expected")
        values = actual if masked.any() else expected
        nans = int(np.isnan(values[where]).sum())
        first = int(where.argmax())
        sentence = (
            f"{side} holds {nans} NaN and {int(where.sum()) - nans} infinite of "
            f"{values.size} values where the other side does not, the first at "
            f"{position(first, shape)}"
        )
        return Agreement(nan, sentence)
    agreement = compare(expected[finite], actual[finite])
    if told is None or agreement.sentence is not None or told - agreement.pcc <= _ROUNDING:
        return None
    return Agreement(agreement.pcc, "the values do not correlate as was told")
