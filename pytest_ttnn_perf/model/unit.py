"""Units of time: one table, used where text becomes a number and where a number becomes text."""

from __future__ import annotations

import re
from typing import Final

#: Nanoseconds in one of each unit of time.
NANOSECONDS_IN: Final = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

#: Bytes in one of each unit of size.
BYTES_IN: Final = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


_QUANTITY: Final = re.compile(r"([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(.*)")


def quantity(text: str, *, unit: str) -> float | None:
    """Read ``"10 ms"`` as a number of ``unit``; None where it cannot be read as one.

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
