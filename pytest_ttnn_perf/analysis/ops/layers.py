"""Layers: blocks of ops that a model runs several times, one right after the other."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from operator import eq
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


#: So many ops in a row tell where a block begins anew.
_CONTEXT: Final = 4
#: How many distances between equal contexts are tried as the length of a block.
_LENGTHS: Final = 12
#: A block of so many ops is a layer where it runs twice. Shorter ones must run more often: two
#: equal reshapes follow each other by chance.
_LONG: Final = 8
_OFTEN: Final = 4


class Layers(NamedTuple):
    """A block of ``length`` ops that runs ``times`` times from ``start`` on."""

    start: int
    length: int
    times: int

    @property
    def is_long(self) -> bool:
        """Whether it has so many ops as a layer of a model has."""
        return self.length >= _LONG

    @property
    def stop(self) -> int:
        """The place behind the last of them."""
        return self.start + self.length * self.times


def find_layers(ops: Sequence[int]) -> list[Layers]:
    """Return the blocks that repeat, in their order; equal numbers are equal ops.

    What repeats most is found first, then what repeats before and after it. A block is as short as
    it can be.

    >>> find_layers([7, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 8])
    [Layers(start=1, length=3, times=4)]
    """
    found: list[Layers] = []
    waiting = [(0, len(ops))]
    while waiting:
        start, stop = waiting.pop()
        best = _best(ops[start:stop])
        if best is not None:
            layers = best._replace(start=start + best.start)
            found.append(layers)
            waiting += [(start, layers.start), (layers.stop, stop)]
    return sorted(found)


def _best(ops: Sequence[int]) -> Layers | None:
    best, covered = None, 0
    for length in _lengths(ops):
        for layers in _repeats(ops, length):
            if layers.is_long or layers.times >= _OFTEN:
                ops_in_all = layers.length * layers.times
                if ops_in_all > covered:
                    best, covered = layers, ops_in_all
    return best


def _lengths(ops: Sequence[int]) -> list[int]:
    """Return the likely lengths of blocks, ascending."""
    distances: Counter[int] = Counter()
    for context in (1, _CONTEXT):
        last: dict[tuple[int, ...], int] = {}
        for at in range(len(ops) - context + 1):
            seen = tuple(ops[at : at + context])
            if seen in last:
                distances[at - last[seen]] += context
            last[seen] = at
    return sorted(length for length, _ in distances.most_common(_LENGTHS))


def _repeats(ops: Sequence[int], length: int) -> Iterator[Layers]:
    """Yield where ops are equal to those a block further on, for a block at least."""
    at = 0
    for same, run in groupby(map(eq, ops, ops[length:])):
        count = sum(1 for _ in run)
        if same and count >= length:
            yield Layers(at, length, count // length + 1)
        at += count
