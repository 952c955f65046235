"""The devices of the examples, and the hardware that their baselines are filed under."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from accelerator import ALL_CORES, Accelerator

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Hardware


@pytest.fixture
def device() -> Accelerator:
    """Return a device."""
    return Accelerator()


@pytest.fixture
def attention_device() -> Accelerator:
    """Return the device of one example; TTNN_PERF_DEMO_CORES is how many cores it may use."""
    return Accelerator(cores=int(os.environ.get("TTNN_PERF_DEMO_CORES", ALL_CORES)))


def pytest_ttnn_perf_hardware(item: pytest.Item) -> Hardware | None:
    """File what the examples measure under the simulated device: no host has a part in it."""
    from pytest_ttnn_perf.hooks import Hardware

    if not item.path.is_relative_to(Path(__file__).parent):
        return None
    return Hardware("example", "accelerator", simulated=True)
