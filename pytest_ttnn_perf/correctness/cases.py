"""The cases in which correlation alone would mislead, each in its own sentence."""

from __future__ import annotations

from math import isnan, nan
from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.agreement import Agreement, AgreementCase

if TYPE_CHECKING:
    from pytest_ttnn_perf.correctness.careful import Measured, Side
    from pytest_ttnn_perf.correctness.pair import Pair
    from pytest_ttnn_perf.correctness.tensors import Operand


def without_values(expected: Operand, actual: Operand) -> Agreement | None:
    """Return the agreement if it follows from types and shapes alone, else None."""
    if expected.is_complex or actual.is_complex:
        sides = [
            f"{name} ({side.dtype})"
            for name, side in (("expected", expected), ("actual", actual))
            if side.is_complex
        ]
        return _undefined(
            AgreementCase.COMPLEX,
            f"{' and '.join(sides)}: complex values have no PCC; compare real and imaginary "
            "parts on their own",
        )
    if expected.shape != actual.shape:
        return _undefined(
            AgreementCase.SHAPE_MISMATCH,
            f"expected has shape {expected.shape} and actual has shape {actual.shape}: "
            "PCC does not exist",
        )
    if 0 in expected.shape:
        return _undefined(
            AgreementCase.EMPTY,
            f"both sides have shape {expected.shape} and no element: PCC does not exist",
        )
    return None


def non_finite(pair: Pair, expected: Side, actual: Side) -> Agreement:
    """Say which side holds how many values that are not finite, and where the first one is."""
    sides = [
        f"{name} holds {side.nans} NaN and {side.infinities} infinite of {pair.size} values, "
        f"the first ({_named(side.first_value)}) at {_position(side.first, pair.shape)}"
        for name, side in (("expected", expected), ("actual", actual))
        if side.first is not None
    ]
    return _undefined(AgreementCase.NON_FINITE, f"{'; '.join(sides)}: PCC does not exist")


def constant(expected: Side, actual: Side, *, measured: Measured) -> Agreement:
    """Say which side is constant, and at what."""
    spans = f"{_span('expected', expected)} and {_span('actual', actual)}"
    if not (expected.is_constant and actual.is_constant):
        case, pcc = AgreementCase.ONE_CONSTANT, 0.0
        sentence = f"{spans}: PCC is 0/0 and counts as 0.0"
    elif expected.lowest != actual.lowest:
        case, pcc = AgreementCase.BOTH_CONSTANT_DIFFERENT, 0.0
        sentence = f"{spans}: PCC is 0/0 and counts as 0.0"
    else:
        case, pcc = AgreementCase.BOTH_CONSTANT_EQUAL, 1.0
        sentence = f"both sides are constant at {expected.lowest}: PCC is 0/0 and 1.0 by definition"
    return Agreement(pcc, case, sentence, measured.max_abs_error, measured.relative_l2)


def _undefined(case: AgreementCase, sentence: str) -> Agreement:
    return Agreement(nan, case, sentence)


def _named(value: float) -> str:
    return "NaN" if isnan(value) else str(value)


def _position(flat: int, shape: tuple[int, ...]) -> str:
    """Return the indices of an element as text.

    >>> _position(5, (2, 3))
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
