"""Pearson correlation of two tensors, with the errors that correlation does not see."""

from __future__ import annotations

from typing import Final

from pytest_ttnn_perf.correctness import careful
from pytest_ttnn_perf.correctness.cases import constant, non_finite, without_values
from pytest_ttnn_perf.correctness.moments import agreement_of, collect
from pytest_ttnn_perf.correctness.pair import Pair
from pytest_ttnn_perf.correctness.tensors import operand
from pytest_ttnn_perf.model.agreement import Agreement

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
    expected, actual = careful.scan(pair, chunk=chunk)
    if not (expected.is_finite and actual.is_finite):
        return non_finite(pair, expected, actual)
    measured = careful.measure(pair, expected, actual, chunk=chunk)
    if measured.pcc is None:
        return constant(expected, actual, measured=measured)
    return Agreement(
        measured.pcc, max_abs_error=measured.max_abs_error, relative_l2=measured.relative_l2
    )
