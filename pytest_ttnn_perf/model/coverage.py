"""Which tests there are, as far as the collection of a run told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def lies_in(test: str, place: str) -> bool:
    """Return whether a test is that of an id, or below a folder, file, class or function.

    >>> lies_in("models/test_a.py::test_x[8]", "models"), lies_in("test_ab.py::test_x", "test_a.py")
    (True, False)
    """
    return place in {"", ".", test} or test.startswith((f"{place}/", f"{place}::", f"{place}["))


def function_of(test: str) -> str:
    """Return a test's id without its parameters.

    >>> function_of("test_a.py::TestX::test_y[a/b[0]]")
    'test_a.py::TestX::test_y'
    """
    file, separator, name = test.partition("::")
    return file + separator + name.partition("[")[0]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a run has collected. ``places`` are the folders and files of which it collected all.

    ``others`` are tests that there are and that have no result in the run: deselected, skipped, not
    measured. A file among them could not be collected, so that nothing is known of its tests.
    ``unasked`` are those of them that nobody asked for: deselected.
    """

    places: tuple[str, ...]
    others: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()

    def covers(self, test: str) -> bool:
        """Return whether the run would have met a test, were it still there."""
        inside = any(lies_in(test, place) for place in self.places)
        return inside and not any(lies_in(test, other) for other in self._unknown())

    def without(self, results: Iterable[str]) -> Coverage:
        """Return this coverage for a run that has results of some of its tests."""
        known = frozenset(results)
        others = sorted({other for other in self.others if other not in known})
        unasked = sorted({other for other in self.unasked if other not in known})
        return Coverage(self.places, tuple(others), tuple(unasked))

    def asks_for(self, test: str) -> bool:
        """Return whether the run should have a result of a test."""
        return self.covers(test) and test not in self.unasked

    def joined(self, other: Coverage) -> Coverage:
        """Return what two shards have collected: a test is asked for if one of them does so."""
        ours = {test for test in self.unasked if not other.asks_for(test)}
        theirs = {test for test in other.unasked if not self.asks_for(test)}
        return Coverage(
            tuple(dict.fromkeys((*self.places, *other.places))),
            tuple(dict.fromkeys((*self.others, *other.others))),
            tuple(sorted(ours | theirs)),
        )

    def functions(self, results: Iterable[str]) -> frozenset[str]:
        """Return all test functions that there are; ``results`` are the tests with one."""
        return frozenset(function_of(test) for test in (*results, *self.others))

    def _unknown(self) -> tuple[str, ...]:
        return tuple(other for other in self.others if "::" not in other)
