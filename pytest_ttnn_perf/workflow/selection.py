"""Tests that a user names: by id, file, folder, function, or with * and ?."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.model.coverage import lies_in

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def selected(tests: Collection[str], selectors: Sequence[str], *, where: str) -> tuple[str, ...]:
    """Return the tests that any selector names, in their order; all without a selector.

    Raises:
        UsageError: a selector names none; with the nearest names there are.
    """
    if not selectors:
        return tuple(tests)
    for selector in selectors:
        if not any(matches(test, selector) for test in tests):
            raise UsageError(_nothing(selector, tests, where=where))
    return tuple(test for test in tests if any(matches(test, each) for each in selectors))


def matches(test: str, selector: str) -> bool:
    """Return whether a selector names a test. Brackets are those of parameters.

    >>> matches("models/test_a.py::test_x[8]", "models/test_*::test_x[?]")
    True
    """
    place = selector.removeprefix("./").rstrip("/")
    if lies_in(test, place):
        return True
    if not set(place) & set("*?"):
        return False
    pattern = re.escape(place).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(pattern, test) is not None


def near(name: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the names that may have been meant, the nearest first."""
    return tuple(difflib.get_close_matches(name, names, n=3, cutoff=0.5))


def _nothing(selector: str, tests: Collection[str], *, where: str) -> str:
    close = near(selector, tests)
    said = f"{selector} names no test in {where}"
    if close:
        return f"{said}; near to it: {', '.join(close)}"
    return f"{said}, which has {len(tests)} tests" if tests else f"{said}, which has none"
