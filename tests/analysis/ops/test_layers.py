"""Blocks of ops that run several times in a row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.ops.regions import Layers, find_layers
from tests.properties.strategies import SOME

LAYER = [1, 2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("ops", "found"),
    [
        ([], []),
        (LAYER, []),
        ([50, 51, *LAYER * 32, 52], [Layers(2, 9, 32)]),
        ([*LAYER * 2, 50], [Layers(0, 9, 2)]),
        ([1, 2, 3] * 3, []),
        ([1, 2, 3] * 4, [Layers(0, 3, 4)]),
        ([9, 7, 7, 7, 7, 8], [Layers(1, 1, 4)]),
        ([7, 7, 7], []),
        # Two kinds of layers, one after the other.
        ([*LAYER * 3, *range(20, 30), *range(20, 30)], [Layers(0, 9, 3), Layers(27, 10, 2)]),
        # Layers with equal ops inside are layers all the same.
        ([*LAYER, 1, 1, 1, *LAYER, 1, 1, 1, *LAYER, 1, 1, 1], [Layers(0, 12, 3)]),
    ],
)
def test_layers(ops: list[int], found: list[Layers]) -> None:
    assert find_layers(ops) == found


@SOME
@given(st.lists(st.integers(0, 3), max_size=60))
def test_layers_are_equal_blocks_that_do_not_overlap(ops: list[int]) -> None:
    stop = 0
    for layers in find_layers(ops):
        assert layers.start >= stop
        stop = layers.stop
        block = ops[layers.start : layers.start + layers.length]
        assert ops[layers.start : stop] == block * layers.times
    assert stop <= len(ops)
