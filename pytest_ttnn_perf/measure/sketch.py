"""Outputs in short: enough of them to tell how far two versions of a model agree.

Each value is added to one of a few sums, with a sign; which, follows from its place alone. The
correlation of two such sketches is that of the outputs, but for about ``(1 - r^2) / sqrt(SUMS)``,
however the values are distributed: a few large ones weigh as much as they do in a PCC. That is not
so of a sample of the values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Sequence

SUMS: Final = 128
#: Of larger tensors every second, third, ... value counts; of many tensors the first ones.
_MOST_VALUES: Final = 1 << 20
MOST_TENSORS: Final = 4


def every_nth(array: Any) -> Any:
    """Return the values of a tensor that count: the tensor as it is, unless it is large."""
    nth = math.ceil(math.prod(array.shape) / _MOST_VALUES)
    return array if nth <= 1 else array.reshape(-1)[::nth]


def sketch_of(arrays: Sequence[Any]) -> tuple[float, ...]:
    """Return the sketch of a model's outputs: empty if they are no numbers, or there are none.

    It begins with a number for their shapes. Each tensor counts the same, whatever its unit.
    """
    import numpy as np

    sums: list[float] = []
    for array in arrays[:MOST_TENSORS]:
        values = every_nth(array).reshape(-1).astype(np.float64)
        if not values.size or not np.isfinite(values).all():
            return ()
        with np.errstate(all="ignore"):  # numbers may be as large as can be
            values = values - values[0]  # so that what is all alike is nothing
            values -= values.mean()
            mixed = _mixed(np.arange(values.size, dtype=np.uint64))
            signed = np.where(mixed >> np.uint64(63), values, -values)
            places = (mixed % np.uint64(SUMS)).astype(np.intp)
            found = np.bincount(places, weights=signed, minlength=SUMS)
            norm = float(np.linalg.norm(found)) or 1.0
        if not math.isfinite(norm):
            return ()
        sums += [float(f"{each / norm:.6g}") for each in found]
    shapes = [tuple(array.shape) for array in arrays[:MOST_TENSORS]]
    return (float(crc32(repr(shapes).encode())), *sums) if sums else ()


def _mixed(places: Any) -> Any:
    """Return numbers that look random, one for each place: splitmix64, without numpy's generators.

    Importing these would take longer than most sketches.
    """
    import numpy as np

    mixed = (places + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def agreement(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return how far two sketches correlate; None where that means nothing.

    Of outputs of other shapes nothing is known, nor where both are no numbers or all alike.
    """
    if not one or not other:
        return None if not one else 0.0
    (shapes, *ours), (others, *theirs) = one, other
    norms = math.hypot(*ours), math.hypot(*theirs)
    if shapes != others or not norms[0]:
        return None
    return sum(a * b for a, b in zip(ours, theirs, strict=True)) / (norms[0] * norms[1] or 1.0)
