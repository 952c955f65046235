"""A JSON value that knows its place in the document."""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeVar

from pytest_ttnn_perf._base.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.records.hardware import Scalar


E = TypeVar("E", bound=Enum)
#: No measurement is larger, in any unit: what is counts as not finite, and arithmetic stays so.
LARGEST: Final = 1e100
#: Nothing here is counted further; floats hold every whole number up to it.
LARGEST_COUNT: Final = 10**15


class Value:
    """Reads one JSON value as the type the schema asks for, or raises DecodeError with its path."""

    __slots__ = ("_parent", "_step", "raw")

    def __init__(
        self, raw: object, parent: Value | None = None, step: str | int | None = None
    ) -> None:
        self.raw = raw
        # The path is walked only when something is wrong: most values are right.
        self._parent = parent
        self._step = step

    @property
    def path(self) -> tuple[str | int, ...]:
        """The keys and indices that lead here from the document's root."""
        if self._parent is None or self._step is None:
            return ()
        return (*self._parent.path, self._step)

    def refusal(self, expected: str) -> DecodeError:
        """Return the error that says what was expected here."""
        return DecodeError(self.path, expected, describe(self.raw))

    def field(self, name: str) -> Value:
        """Return a member that must be there."""
        members = self.members()
        if name not in members:
            raise DecodeError((*self.path, name), "a value", "nothing: the field is missing")
        return Value(members[name], self, name)

    def optional(self, name: str) -> Value | None:
        """Return a member, or None where it is absent or null."""
        raw = self.members().get(name)
        return None if raw is None else Value(raw, self, name)

    def members(self) -> dict[str, object]:
        """Return the members of an object, undecoded."""
        if not isinstance(self.raw, dict):
            raise self.refusal("an object")
        return self.raw

    def items(self) -> Iterator[tuple[str, Value]]:
        """Iterate over the members of an object."""
        for name, raw in self.members().items():
            yield name, Value(raw, self, name)

    def array(self) -> Iterator[Value]:
        """Iterate over the elements of an array."""
        if not isinstance(self.raw, list):
            raise self.refusal("a list")
        for index, raw in enumerate(self.raw):
            yield Value(raw, self, index)

    def string(self) -> str:
        """Read a string."""
        if not isinstance(self.raw, str):
            raise self.refusal("a string")
        return self.raw

    def strings(self) -> tuple[str, ...]:
        """Read an array of strings."""
        if isinstance(self.raw, list) and all(isinstance(raw, str) for raw in self.raw):
            return tuple(self.raw)
        return tuple(item.string() for item in self.array())  # which says what is wrong

    def boolean(self) -> bool:
        """Read true or false."""
        if not isinstance(self.raw, bool):
            raise self.refusal("true or false")
        return self.raw

    def number(self) -> float:
        """Read a finite number."""
        # JSON's true is Python's 1: a boolean among samples is a mistake, not a measurement.
        if isinstance(self.raw, bool) or not isinstance(self.raw, (int, float)):
            raise self.refusal("a number")
        if not -LARGEST <= self.raw <= LARGEST:
            raise self.refusal("a finite number")
        return self.raw

    def integer(self, *, at_least: int = 0) -> int:
        """Read a whole number."""
        raw = self.raw
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise self.refusal(f"a whole number of at least {at_least}")
        if not at_least <= raw <= LARGEST_COUNT:
            raise self.refusal(f"a whole number of at least {at_least}")
        return raw

    def sample(self) -> float:
        """Read a number, or what stands for "not finite": null here, NaN by other producers."""
        raw = self.raw
        if raw is None:
            return math.nan
        if isinstance(raw, (int, float)) and not -LARGEST <= raw <= LARGEST:
            return math.nan
        return self.number()

    def scalar(self) -> Scalar:
        """Read a string, number, boolean or null."""
        if isinstance(self.raw, (int, float)) and not isinstance(self.raw, bool):
            return self.number()
        if self.raw is not None and not isinstance(self.raw, (str, bool)):
            raise self.refusal("a string, a number, true, false or null")
        return self.raw

    def one_of(self, choices: type[E]) -> E:
        """Read a member of a closed enum by its value."""
        try:
            return choices(self.raw)
        except ValueError:
            known = ", ".join(repr(choice.value) for choice in choices)
            raise self.refusal(f"one of {known}") from None


def describe(raw: object) -> str:
    """Name a JSON value briefly, for an error message."""
    if isinstance(raw, dict):
        return "an object"
    if isinstance(raw, list):
        return f"a list of {len(raw)}"
    if raw is None:
        return "null"
    text = repr(raw)
    return text if len(text) <= 60 else text[:57] + "..."


def decode_format(document: Value, *, current: int, what: str) -> int:
    """Read the schema's version; refuse files of a newer one."""
    version = document.field("format").integer(at_least=1)
    if version > current:
        raise DecodeError(
            (*document.path, "format"),
            f"{what} of format {current} or older",
            f"format {version}: it was written by a newer pytest-ttnn-perf; upgrade this one",
        )
    return version
