"""A model with a goal and a stated fact, profiled op by op; and calls that overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from accelerator import Accelerator

    from pytest_ttnn_perf.measure.observer import Observer


@pytest.mark.ttnn_perf(target={"sim_time": "1.2 ms"})
def test_attention(ttnn_perf: Observer, attention_device: Accelerator, tmp_path: Path) -> None:
    device = attention_device
    random = np.random.default_rng(11)
    x, weight = random.standard_normal((128, 128)), random.standard_normal((128, 128)) / 10
    ttnn_perf.facts(optimization_level=2)
    output = ttnn_perf.measure(
        device.linear, x, weight, sync=device.synchronize, clock=device.clock_ns
    )
    ttnn_perf.check_pcc(np.maximum(x @ weight, 0), output)

    # Which ops did it? A capture of one call tells, as a profiler of a real device writes it.
    device.write_capture(tmp_path / "warm_up_and_samples.csv")
    device.linear(x, weight)
    device.write_capture(tmp_path / "ops_perf_results.csv")
    ttnn_perf.attach(tmp_path / "ops_perf_results.csv")


@pytest.mark.ttnn_perf
def test_decode(ttnn_perf: Observer, device: Accelerator) -> None:
    weight = np.eye(64)
    for _ in range(3):
        with ttnn_perf.region("load_weights", clock=device.clock_ns):
            device.linear(weight, weight)
            device.synchronize()
    output = ttnn_perf.measure(
        device.linear,
        weight,
        weight,
        sync=device.synchronize,
        clock=device.clock_ns,
        pipelined=4,
    )
    ttnn_perf.check_pcc(weight, output)
    ttnn_perf.record("dram_bytes", 64 * 64 * 2, unit="B")
