"""Numbers as people read them."""

from __future__ import annotations

import math
from typing import Final

from pytest_ttnn_perf.model.metric import Better, Kind, Metric
from pytest_ttnn_perf.model.unit import NANOSECONDS_IN

#: Display units of time, longest first, with their nanoseconds.
_TIME_UNITS: Final = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
_COUNTED: Final = frozenset({Kind.COUNT, Kind.BYTES})
_BYTE_UNITS: Final = (("GiB", 1024.0**3), ("MiB", 1024.0**2), ("KiB", 1024.0), ("B", 1.0))


def format_value(metric: Metric, value: float | None, *, beside: float | None = None) -> str:
    """Return a value with its unit.

    ``beside`` is the value it stands next to: both are shown in one unit, chosen for that one, so
    that a reader never compares milliseconds with microseconds.

    >>> format_value(Metric("wall_time", "ns"), 12_410_000)
    '12.41 ms'
    """
    if value is None:
        return "-"
    if metric.kind is Kind.ACCURACY:
        return _with_unit(_accuracy(value), metric.unit)
    if metric.unit in NANOSECONDS_IN:
        factor = NANOSECONDS_IN[metric.unit]
        return _scaled(value * factor, _TIME_UNITS, None if beside is None else beside * factor)
    if metric.unit == "B":
        return _scaled(value, _BYTE_UNITS, beside)
    if value == int(value) and (metric.kind in _COUNTED or metric.better is Better.EQUAL):
        return _with_unit(str(int(value)), metric.unit)
    return _with_unit(_digits(value), metric.unit)


def format_ns(nanoseconds: float) -> str:
    """Return a time in the unit that suits it.

    >>> format_ns(61_300)
    '61.30 us'
    """
    return _scaled(nanoseconds, _TIME_UNITS, None)


def format_change(change: float | None) -> str:
    """Return a signed percentage; plus is worse.

    >>> format_change(0.218), format_change(-0.0001)
    ('+21.8 %', '0.0 %')
    """
    if change is None:
        return "-"
    text = f"{change * 100:+.1f} %"
    return text[1:] if text[1:] == "0.0 %" else text


def format_fraction(fraction: float | None) -> str:
    """Return a percentage without a sign.

    >>> format_fraction(0.0499)
    '5.0 %'
    """
    return "-" if fraction is None else f"{abs(fraction) * 100:.1f} %"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "test"), counted(2, "test")
    ('1 test', '2 tests')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _scaled(value: float, units: tuple[tuple[str, float], ...], beside: float | None) -> str:
    deciding = abs(value if beside is None else beside)
    # Half a unit of the last digit below the boundary: 999.96 ms would print as "1000 ms".
    unit, factor = next((u for u in units if deciding >= u[1] * 0.99995), units[-1])
    return f"{_digits(value / factor)} {unit}"


def _digits(value: float) -> str:
    """Return four significant digits, without an exponent where that can be read."""
    if not math.isfinite(value):
        return f"{value}"
    rounded = float(f"{value:.3e}")  # first: 9.9999 has one digit more than it seems
    magnitude = math.floor(math.log10(abs(rounded))) if rounded else 0
    if -5 <= magnitude < 15:
        return f"{rounded:.{max(0, 3 - magnitude)}f}"
    return f"{rounded:.3e}"


def _accuracy(value: float) -> str:
    """Return six significant digits; what is short of 1 never reads as 1.

    >>> _accuracy(0.99123456), _accuracy(0.99999998), _accuracy(1.0)
    ('0.991235', '>0.999999', '1')
    """
    text = f"{value:.6g}"
    return ">0.999999" if text == "1" and value < 1 else text


def _with_unit(digits: str, unit: str) -> str:
    return f"{digits} {unit}" if unit else digits
