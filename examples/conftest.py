"""The devices of the examples."""

from __future__ import annotations

import os

import pytest
from accelerator import Accelerator


@pytest.fixture
def device() -> Accelerator:
    """Return a device."""
    return Accelerator()


@pytest.fixture
def attention_device() -> Accelerator:
    """Return the device of one example; TTNN_PERF_DEMO_SLOWDOWN stretches all it does."""
    return Accelerator(slowdown=float(os.environ.get("TTNN_PERF_DEMO_SLOWDOWN", "1")))
