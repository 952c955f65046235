"""A sweep: which batch, and which format of the weights, is best? Each point has a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from accelerator import Accelerator

    from pytest_ttnn_perf.measure.observer import Observer


@pytest.mark.ttnn_perf(
    sweep={
        "batch": [1, 64, 1024, 2048, 4096],
        "weights": ["bfloat16", "bfloat8_b", "bfloat4_b"],
    },
    require={"pcc": 0.999},  # of the best; below 0.99 a point fails, as any test does
)
def test_classifier(ttnn_perf: Observer, device: Accelerator, batch: int, weights: str) -> None:
    random = np.random.default_rng(5)
    weight = random.standard_normal((16, 16))
    x: Any = np.resize(random.standard_normal((64, 16)), (batch, 16))
    output = ttnn_perf.measure(
        device.linear, x, weight, weights=weights, sync=device.synchronize, clock=device.clock_ns
    )
    ttnn_perf.check_pcc(np.maximum(x @ weight, 0), output)
