"""Counts, shares and sizes in words, the same wherever a sentence is made."""

from __future__ import annotations

import math
import re
from typing import Final

#: Display units of sizes, largest first, with their bytes.
BYTE_UNITS: Final = (("GiB", 1024.0**3), ("MiB", 1024.0**2), ("KiB", 1024.0), ("B", 1.0))
#: How the plural of a noun ends that is long enough to be one: "fps" is not.
_PLURAL: Final = re.compile(r"(?:(?<=ss)es|(?<=\bop)s|(?<=[a-z]{4})s)(?= per |$)")


def percent(fraction: float) -> str:
    """Return a fraction as a percentage.

    >>> percent(0.0731)
    '7.3 %'
    """
    return f"{fraction * 100:.1f} %"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "test"), counted(2, "test")
    ('1 test', '2 tests')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def unit_for(value: float, unit: str) -> str:
    """Return a unit, the noun of one that counts something in the number that goes with a value.

    >>> unit_for(1, "transfers per barrier"), unit_for(2, "losses"), unit_for(1, "losses")
    ('transfer per barrier', 'losses', 'loss')
    """
    return _PLURAL.sub("", unit) if value == 1 else unit


def size(count: float) -> str:
    """Return a number of bytes in the unit that suits it.

    >>> size(4_976_640), size(64)
    ('4.746 MiB', '64 B')
    """
    is_small = abs(count) < 1024 and float(count).is_integer()
    return f"{int(count)} B" if is_small else scaled(count, BYTE_UNITS)


def scaled(
    value: float, units: tuple[tuple[str, float], ...], *, beside: float | None = None
) -> str:
    """Return a value in the first unit that it fills, or that ``beside`` does."""
    deciding = abs(value if beside is None else beside)
    # Half a unit of the last digit below the boundary: 999.96 ms would print as "1000 ms".
    unit, factor = next((u for u in units if deciding >= u[1] * 0.99995), units[-1])
    return f"{digits(value / factor)} {unit}"


def digits(value: float) -> str:
    """Return four significant digits, without an exponent where that can be read."""
    if not math.isfinite(value):
        return f"{value}"
    rounded = float(f"{value:.3e}")  # first: 9.9999 has one digit more than it seems
    magnitude = math.floor(math.log10(abs(rounded))) if rounded else 0
    if -5 <= magnitude < 15:
        return f"{rounded:.{max(0, 3 - magnitude)}f}"
    return f"{rounded:.3e}"
