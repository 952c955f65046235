"""Figures that add up as they are shown, and causes in a few words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ttnn_perf.model.attribution import Cause

#: Display units, longest first, with their nanoseconds.
_UNITS: Final = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))


class Sum(NamedTuple):
    """Figures in one unit, each with its sign; the terms add up to the total as they stand."""

    total: str
    terms: tuple[str, ...]


def shown_sum(terms_ns: Sequence[float], *, digits: int = 3) -> Sum:
    """Round a sum to so many digits of its largest figure, so that it still adds up.

    >>> shown_sum([61_440.0, 18_430.0, 12_430.0])
    Sum(total='+92.3 us', terms=('+61.5 us', '+18.4 us', '+12.4 us'))
    """
    total = math.fsum(terms_ns)
    largest = max([abs(total), *map(abs, terms_ns)])
    unit, factor = next((u for u in _UNITS if largest >= u[1]), _UNITS[-1])
    whole_digits = math.floor(math.log10(largest / factor)) + 1 if largest else 1
    decimals = max(0, digits - max(1, whole_digits))
    step = factor / 10**decimals
    steps = _rounded([term / step for term in terms_ns], round(total / step))

    def shown(count: int) -> str:
        return f"{count / 10**decimals:+.{decimals}f} {unit}" if count else f"0 {unit}"

    return Sum(shown(sum(steps)), tuple(map(shown, steps)))


def _rounded(values: Sequence[float], total: int) -> list[int]:
    """Round to whole numbers of this sum: those that are furthest from theirs take the rest."""
    rounded = [round(value) for value in values]
    left = total - sum(rounded)
    towards = 1 if left > 0 else -1
    # What is exactly zero stays so: nothing must not read as something.
    able = [place for place, value in enumerate(values) if value]
    able.sort(key=lambda place: towards * (rounded[place] - values[place]))
    for place in able[: abs(left)]:
        rounded[place] += towards
    return rounded


def causes_text(causes: Iterable[Cause], *, most: int) -> str:
    """Tell the first causes; what several operands have in common is told once.

    >>> from pytest_ttnn_perf.model.attribution import Cause
    >>> causes_text([Cause("cores", "64", "32"), Cause("in0_block_w", "2", "1")], most=2)
    '64→32 cores, in0_block_w 2→1'
    """
    operands: dict[tuple[str, str, str], list[str]] = {}
    for cause in causes:
        operand, _, what = cause.what.rpartition(" ")
        operands.setdefault((what, cause.before, cause.after), []).append(operand)
    told = [_told(*change, "/".join(filter(None, names))) for change, names in operands.items()]
    more = [f"{len(told) - most} more"] if len(told) > most else []
    return ", ".join(told[:most] + more)


def _told(what: str, before: str, after: str, operands: str) -> str:
    step = f"{before.removesuffix('ProgramConfig')}→{after.removesuffix('ProgramConfig')}"
    if what == "cores":
        return f"{step} cores"
    if what == "fidelity":
        return step
    # A dtype, a memory or a shape says by itself what it is.
    return f"{operands} {step}" if operands else f"{what} {step}"
