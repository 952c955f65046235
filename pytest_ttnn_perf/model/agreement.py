"""How well two tensors agree."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class AgreementCase(Enum):
    """The cases in which correlation alone would mislead; each has its own sentence."""

    SHAPE_MISMATCH = "shape mismatch"
    EMPTY = "empty"
    NON_FINITE = "non-finite values"
    BOTH_CONSTANT_EQUAL = "both constant and equal"
    BOTH_CONSTANT_DIFFERENT = "both constant and different"
    ONE_CONSTANT = "one side constant"
    COMPLEX = "complex values"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Pearson correlation and errors of ``actual`` against ``expected``.

    ``pcc`` is NaN where it does not exist; ``case`` then says why and ``sentence`` says it with
    its numbers. ``max_abs_error`` and ``relative_l2`` are None where they do not exist.
    """

    pcc: float
    case: AgreementCase | None = None
    sentence: str | None = None
    max_abs_error: float | None = None
    relative_l2: float | None = None
