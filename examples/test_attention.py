"""A model with a goal, a stated fact, and two ways to run it: one call, and calls that overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from accelerator import Accelerator

    from pytest_ttnn_perf.observe.observer import Observer


@pytest.mark.ttnn_perf(warmup=1, iterations=7, tolerance=0.15, target={"wall_time": "80 ms"})
def test_attention(ttnn_perf: Observer, attention_device: Accelerator) -> None:
    random = np.random.default_rng(11)
    x, weight = random.standard_normal((8, 96)), random.standard_normal((96, 96)) / 10
    ttnn_perf.facts(optimization_level=2)
    output = ttnn_perf.measure(
        attention_device.linear, x, weight, device_ms=100, sync=attention_device.synchronize
    )
    ttnn_perf.check_pcc(np.maximum(x @ weight, 0), output)


@pytest.mark.ttnn_perf(warmup=1, iterations=6, tolerance=0.15)
def test_decode(ttnn_perf: Observer, device: Accelerator) -> None:
    weight = np.eye(64)
    for _ in range(3):
        with ttnn_perf.region("load_weights"):
            device.linear(weight, weight, device_ms=100)
            device.synchronize()
    ttnn_perf.measure(
        device.linear, weight, weight, device_ms=25, sync=device.synchronize, pipelined=4
    )
    ttnn_perf.record("dram_bytes", 64 * 64 * 2, unit="B")
