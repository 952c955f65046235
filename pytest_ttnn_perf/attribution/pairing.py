"""Devices of two captures, paired; those that ran the same ops are one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Strand(NamedTuple):
    """The ops of a device: the number of each one's variant, and its time in whole units."""

    variants: tuple[int, ...]
    units: Sequence[int]


class Pairing(NamedTuple):
    """Devices that ran alike, before and after; their units are sums, each device by its weight."""

    before: Strand
    after: Strand
    weight: int


def paired(before: Sequence[Strand], after: Sequence[Strand]) -> tuple[list[Pairing], int]:
    """Pair devices by their order; return the pairings and the sum of their weights.

    As many after as before are paired one to one. Otherwise each side is cut into equal shares of
    one whole, and a device is paired with those whose shares lie over its own, by how much they
    do: so that both sides keep the mean over their devices.
    """
    whole = math.lcm(len(before), len(after))
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Pairing]] = {}
    for i, j, weight in _shares(len(before), len(after)):
        pairing = Pairing(before[i], after[j], weight)
        key = (pairing.before.variants, pairing.after.variants)
        alike.setdefault(key, []).append(pairing)
    return [_merged(pairings) for pairings in alike.values()], whole


def _shares(n: int, m: int) -> Iterator[tuple[int, int, int]]:
    """Yield which of n shares of a whole lies over which of m shares, and by how much.

    >>> list(_shares(2, 3))
    [(0, 0, 2), (0, 1, 1), (1, 1, 1), (1, 2, 2)]
    """
    whole = math.lcm(n, m)
    start = 0
    while start < whole:
        i, j = start * n // whole, start * m // whole
        end = min((i + 1) * whole // n, (j + 1) * whole // m)
        yield i, j, end - start
        start = end


def _merged(pairings: Sequence[Pairing]) -> Pairing:
    first = pairings[0]
    weights = [pairing.weight for pairing in pairings]
    return Pairing(
        Strand(first.before.variants, _summed([p.before.units for p in pairings], weights)),
        Strand(first.after.variants, _summed([p.after.units for p in pairings], weights)),
        sum(weights),
    )


def _summed(columns: Sequence[Sequence[int]], weights: Sequence[int]) -> Sequence[int]:
    if weights == [1]:
        return columns[0]
    return [
        sum(weight * units for weight, units in zip(weights, place, strict=True))
        for place in zip(*columns, strict=True)
    ]
