"""Outputs in short: enough of them to tell how far two versions of a model agree.

Each value is added to one of a few sums, with a sign; which, follows from its place alone. The
correlation of two such sketches is that of the outputs, but for about ``(1 - r^2) / sqrt(SUMS)``,
however the values are distributed: a few large ones weigh as much as they do in a PCC. That is not
so of a sample of the values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

SUMS: Final = 128
#: Of larger tensors every second, third, ... value counts; of many tensors the first ones.
_MOST_VALUES: Final = 1 << 20
_MOST_TENSORS: Final = 4


def sketch_of(arrays: Sequence[Any]) -> tuple[float, ...]:
    """Return the sketch of a model's outputs: empty if they are no numbers, or there are none.

    Each tensor counts the same, whatever its unit.
    """
    import numpy as np

    sums: list[float] = []
    for array in arrays[:_MOST_TENSORS]:
        flat = array.reshape(-1)
        values = flat[:: max(1, math.ceil(flat.size / _MOST_VALUES))].astype(np.float64)
        if not values.size or not np.isfinite(values).all():
            return ()
        values = values - values.mean()
        places = np.random.default_rng(values.size).integers(0, 2 * SUMS, size=values.size)
        signed = np.where(places < SUMS, values, -values)
        found = np.bincount(places % SUMS, weights=signed, minlength=SUMS)
        norm = float(np.linalg.norm(found)) or 1.0
        sums += [float(f"{each / norm:.6g}") for each in found]
    return tuple(sums)


def agreement(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return how far two sketches correlate; None where that means nothing.

    Of outputs of other sizes nothing is known, nor where both are no numbers or all alike.
    """
    if not one or not other:
        return None if not one else 0.0
    norms = math.hypot(*one), math.hypot(*other)
    if len(one) != len(other) or not norms[0]:
        return None
    return sum(a * b for a, b in zip(one, other, strict=True)) / (norms[0] * norms[1] or 1.0)
