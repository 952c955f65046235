from __future__ import annotations

from math import prod

import numpy as np
import pytest

from pytest_ttnn_perf.measure.pcc import Pair, blocks
from pytest_ttnn_perf.measure.tensors import operand


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 7, 24, 100])
@pytest.mark.parametrize("shape", [(7,), (2, 3, 4), (4, 1, 6), (1, 1, 1), (3, 8)])
def test_blocks_cover_all_elements_in_order(shape: tuple[int, ...], limit: int) -> None:
    numbers = np.arange(prod(shape)).reshape(shape)
    parts = [numbers[index].ravel() for index in blocks(shape, limit)]
    assert max(part.size for part in parts) <= limit
    assert np.concatenate(parts).tolist() == list(range(prod(shape)))


def test_what_follows_the_last_element_is_zero() -> None:
    pair = Pair(operand(np.arange(1, 6), "expected"), operand(np.arange(11, 16), "actual"))
    x, y = np.full(3, 9.0), np.full(3, 9.0)
    seen = [(count, x.tolist(), y.tolist()) for count in pair.fill(x, y)]
    assert seen == [(3, [1, 2, 3], [11, 12, 13]), (2, [4, 5, 0], [14, 15, 0])]
