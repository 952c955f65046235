"""What the methods of the fixture take, read with care: a mistake is told by its name."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.model.metric import LARGEST


def whole_number(name: str, value: object, *, least: int) -> int:
    """Return a whole number of at least ``least``; anything else is a mistake."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        message = f"{name}: expected a whole number of at least {least}, found {value!r}"
        raise UsageError(message)
    return value


def finite_number(name: str, value: object) -> float:
    """Return a finite number; anything else is a mistake."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(value, (int, float)) and is_number and -LARGEST <= value <= LARGEST:
        return value
    message = f"{name}: expected a finite number, found {value!r}"
    raise UsageError(message)


def bounds_of(
    option: str, bound: float | Mapping[str, float] | None, values: Mapping[str, float]
) -> Mapping[str, float]:
    """Return the bound of each value: one for all, or one by name."""
    if bound is None:
        return {}
    if not isinstance(bound, Mapping):
        return dict.fromkeys(values, finite_number(option, bound))
    unknown = sorted(set(bound) - set(values))
    if unknown:
        known = ", ".join(values)
        message = f"{option} names {', '.join(unknown)}, which is not among the values ({known})"
        raise UsageError(message)
    return {name: finite_number(option, value) for name, value in bound.items()}
