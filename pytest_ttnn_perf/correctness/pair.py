"""Walks two tensors of one shape side by side, in chunks that fit the caches."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.correctness.tensors import Array, Index, Operand


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
