"""The common subsequence: the longest where that is affordable, and affordable always."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.ops.match import common_subsequence

if TYPE_CHECKING:
    from collections.abc import Callable


def longest(a: list[int], b: list[int]) -> int:
    """Return the length of the longest common subsequence, by the textbook."""
    row = [0] * (len(b) + 1)
    for item in a:
        last = row
        row = [0]
        for j, other in enumerate(b):
            row.append(last[j] + 1 if item == other else max(last[j + 1], row[j]))
    return row[-1]


def model(layers: int, layer: list[int]) -> list[int]:
    return layer * layers


def test_an_edit_in_every_layer_costs_that_edit_only() -> None:
    layer = [3, 1, 4, 1, 5, 9, 2, 6]
    edited = [3, 1, 4, 5, 1, 5, 9, 6]
    pairs = common_subsequence(model(300, layer), model(300, edited))
    assert len(pairs) == 300 * 7  # 600 edits


def test_a_long_stretch_far_away_is_found() -> None:
    first, second = list(range(1000)), list(range(1000, 2500))
    pairs = common_subsequence(first + second, second + first)
    assert len(pairs) == 1500


def test_edits_of_more_layers_than_one_search_takes() -> None:
    chance = Random(1)
    layer = [chance.randrange(12) for _ in range(20)]
    edited = [*layer[:9], layer[3], *layer[9:15], *layer[16:]]
    before, after = model(700, layer), model(700, edited)
    # An item of each layer is lost, and all others are found, however far the sides drift apart.
    assert len(common_subsequence(before, after)) >= 700 * 19
    assert len(common_subsequence(before, [each for each in after if each != 5])) >= 700 * 15


@pytest.mark.parametrize("kinds", [2, 40], ids=["much alike", "little alike"])
def test_long_sequences_are_searched_as_well_as_short_ones(kinds: int) -> None:
    chance = Random(kinds)
    a, b = ([chance.randrange(kinds) for _ in range(12_000)] for _ in range(2))
    pairs = common_subsequence(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
    assert len(pairs) >= 6 * 0.98 * longest(a[:2000], b[:2000])


class Counted(int):
    """A number that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


def _random(kinds: int) -> Callable[[Random, int], list[int]]:
    return lambda chance, length: [chance.randrange(kinds) for _ in range(length)]


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(_random(2), id="two kinds"),
        pytest.param(_random(40), id="forty kinds"),
        pytest.param(lambda chance, length: chance.sample(range(length), length), id="shuffled"),
        pytest.param(lambda _, length: [7] * length, id="all equal"),
        pytest.param(
            lambda chance, length: [each % 40 for each in range(length + chance.randrange(40))],
            id="layers",
        ),
    ],
)
def test_time_grows_with_the_length_and_no_faster(draw: Any) -> None:
    def comparisons(length: int) -> int:
        chance = Random(length)
        a, b = (list(map(Counted, draw(chance, length))) for _ in range(2))
        Counted.compared = 0
        common_subsequence(a, b)
        return Counted.compared

    few, many = comparisons(500), comparisons(4000)
    assert many <= 8 * few * 1.5
    assert many <= 4000 * 400
