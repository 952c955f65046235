"""Text for people: counts, sizes, units, and harmless ids."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Display units of sizes, largest first, with their bytes.
BYTE_UNITS: Final = (("GiB", 1024.0**3), ("MiB", 1024.0**2), ("KiB", 1024.0), ("B", 1.0))
#: Display units of time, longest first, with their nanoseconds.
TIME_UNITS: Final = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
#: How the plural of a noun ends that is long enough to be one: "fps" is not.
_PLURAL: Final = re.compile(r"(?:(?<=ss)es|(?<=\bop)s|(?<=[a-z]{4})s)(?= per |$)")


def percent(fraction: float) -> str:
    """Return a fraction as a percentage."""
    return f"{fraction * 100:.1f} %"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def unit_for(value: float, unit: str) -> str:
    """Return a unit in singular or plural, as its value asks.

    >>> unit_for(1, "transfers per barrier"), unit_for(2, "losses"), unit_for(1, "losses")
    ('transfer per barrier', 'losses', 'loss')
    """
    return _PLURAL.sub("", unit) if value == 1 else unit


def duration(nanoseconds: float, *, beside: float | None = None) -> str:
    """Return a time in its best unit, or in that of another."""
    return scaled(nanoseconds, TIME_UNITS, beside=beside)


def size(count: float) -> str:
    """Return a number of bytes in the unit that suits it."""
    is_small = abs(count) < 1024 and float(count).is_integer()
    return f"{int(count)} B" if is_small else scaled(count, BYTE_UNITS)


def scaled(
    value: float, units: tuple[tuple[str, float], ...], *, beside: float | None = None
) -> str:
    """Return a value in the first unit that it fills."""
    unit, factor = unit_filled_by(value if beside is None else beside, units)
    return f"{digits(value / factor)} {unit}"


def unit_filled_by(value: float, units: tuple[tuple[str, float], ...]) -> tuple[str, float]:
    """Return the first unit that a value fills, with its size."""
    # Half a unit of the last digit below the boundary: 999.96 ms would print as "1000 ms".
    return next((u for u in units if abs(value) >= u[1] * 0.99995), units[-1])


def digits(value: float) -> str:
    """Return four significant digits, without an exponent where that can be read."""
    if not math.isfinite(value):
        return f"{value}"
    rounded = float(f"{value:.3e}")  # first: 9.9999 has one digit more than it seems
    magnitude = math.floor(math.log10(abs(rounded))) if rounded else 0
    if -5 <= magnitude < 15:
        return f"{rounded:.{max(0, 3 - magnitude)}f}"
    return f"{rounded:.3e}"


def text_of(value: object) -> str:
    """Return ``str()`` of any object, even if its class fails."""
    return repr_of(value, str)


def repr_of(value: object, make: Callable[[object], str] = repr) -> str:
    try:
        return make(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (a text is asked for: nothing else may come of it)
        kind, why = type(value).__name__, type(error).__name__
        return f"<{kind} whose text cannot be made: {why}>"


def plain(value: Any) -> Any:
    """Return an instance of a derived string or number as Python's own."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__pos__(value)
    return float.__pos__(value) if isinstance(value, float) else value


def visible(text: str) -> str:
    """Return one line with everything unprintable spelt out.

    Line breaks, colours of a terminal, marks that turn the direction of writing, half a surrogate
    pair: all lose their effect.
    """
    if text.isprintable():
        return text
    spelt = (c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return "".join(spelt)


#: What CI systems obey wherever it stands in a line: ##[error], ##vso[...], ##teamcity[...].
_ORDER: Final = re.compile(r"##(?=[a-z]*\[)", re.IGNORECASE)


def inert(text: str) -> str:
    r"""Return one line that moves no cursor and commands no CI system.

    >>> inert("::error::one\ntwo"), inert("a ##[group]")
    ('\\x3a:error::one\\ntwo', 'a #\\x23[group]')
    """
    shown = visible(text)
    if "##" in shown:
        shown = _ORDER.sub(r"#\\x23", shown)
    if shown.lstrip().startswith("::"):
        shown = shown.replace(":", r"\x3a", 1)
    return shown


def inert_lines(text: str) -> str:
    return "\n".join(inert(line) for line in text.split("\n"))


def shortened(text: str, most: int) -> str:
    """Return beginning and end of a text that is too long."""
    if len(text) <= most:
        return text
    end = (most - 3) // 2
    return f"{text[: most - 3 - end]}...{text[len(text) - end :]}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a hint at the nearest known name, or an empty text."""
    near = nearest(name, names)
    return f"; did you mean {near}?" if near is not None else ""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that was probably meant; None if none is near."""
    from difflib import get_close_matches  # only for mistakes

    near = get_close_matches(name, list(names), n=1, cutoff=0.8)
    return near[0] if near else None


#: Nanoseconds in one of each unit of time.
NANOSECONDS_IN: Final = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
#: Bytes in one of each unit of size.
BYTES_IN: Final = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_QUANTITY: Final = re.compile(r"([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(.*)")


def quantity(text: str, *, unit: str) -> float | None:
    """Read ``"10 ms"`` as a number of ``unit``; None if that fails.

    >>> quantity("10 ms", unit="ns")
    10000000.0
    >>> quantity("21.4 tok/s", unit="tok/s")
    21.4
    """
    parts = _QUANTITY.fullmatch(text.strip())
    if parts is None:
        return None
    value, given = float(parts[1]), parts[2]
    if given in {"", unit}:
        return value
    for table in (NANOSECONDS_IN, BYTES_IN):
        if given in table and unit in table:
            return value * table[given] / table[unit]
    return None
