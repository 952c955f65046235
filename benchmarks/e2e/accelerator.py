"""A stand-in for an accelerator, whose work takes real time on any machine.

Like a real device it takes work without waiting for it and is done after the time the work takes;
``synchronize`` waits. Unlike a real one it computes on the host, with numpy, in float16.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Accelerator:
    """Runs operations one after another. ``slowdown`` stretches all of them."""

    slowdown: float = 1.0
    _done_at: float = field(default=0.0, repr=False)

    def linear(self, x: Any, weight: Any, *, device_ms: float) -> Any:
        """Start ``relu(x @ weight)`` and return at once."""
        start = max(self._done_at, time.perf_counter())
        self._done_at = start + device_ms * self.slowdown / 1000
        return np.maximum(x.astype(np.float16) @ weight.astype(np.float16), 0)

    def synchronize(self) -> None:
        """Wait until all work is done."""
        time.sleep(max(0.0, self._done_at - time.perf_counter()))
