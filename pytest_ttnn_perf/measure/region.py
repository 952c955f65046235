"""Timing of a block of code."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def timed_region(
    keep: Callable[[float], None], sync: Callable[[], object] | None = None
) -> Iterator[None]:
    """Hand the block's nanoseconds to ``keep``; a block that raises has no time."""
    if sync is not None:
        sync()
    start = perf_counter_ns()
    yield
    if sync is not None:
        sync()
    keep(perf_counter_ns() - start)
