"""The few lines a model test needs; each parameter has a baseline of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from accelerator import Accelerator

    from pytest_ttnn_perf.measure.observer import Observer


@pytest.mark.ttnn_perf(warmup=3, iterations=10, pcc=0.99)
@pytest.mark.parametrize("width", [64, 128])
def test_mlp(ttnn_perf: Observer, device: Accelerator, width: int) -> None:
    random = np.random.default_rng(7)
    x = random.standard_normal((32, width))
    weight = random.standard_normal((width, width)) / 8
    output = ttnn_perf.measure(  # on real hardware without `sync` and `clock`
        device.linear, x, weight, sync=device.synchronize, clock=device.clock_ns
    )
    ttnn_perf.check_pcc(np.maximum(x @ weight, 0), output)
