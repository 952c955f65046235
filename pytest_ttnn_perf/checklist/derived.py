"""What follows from an op table, worked out once for all rules that ask for it."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ttnn_perf.model.ops import OpTable

_Derived = TypeVar("_Derived")


def once_per_table(derive: Callable[[OpTable], _Derived]) -> Callable[[OpTable], _Derived]:
    """Keep what a function makes of a table with that table, so that it goes when the table goes.

    Whoever asks gets the same object: it must be one that nobody changes.
    """

    @wraps(derive)
    def kept(table: OpTable) -> _Derived:
        if derive not in table.derived:
            table.derived[derive] = derive(table)
        known: _Derived = table.derived[derive]
        return known

    return kept
