"""A simulated accelerator, so that the examples run on any machine.

Like a real device it takes ops without waiting for them, and ``synchronize`` waits until all are
done. It computes on the host, with numpy, in float16. The time is simulated: it follows from the
shapes and the cores, nobody sleeps, and ``clock_ns`` is the same on every machine.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

#: How long the host takes to start an op, which a device that is busy does not wait for.
LAUNCH_NS = 5_000
#: How long a core takes for a multiplication.
MULTIPLY_NS = 40
ALL_CORES = 64
#: What input, weights and output of an op may take together.
MEMORY_BYTES = 256 * 1024
#: Bits of a weight, and the smallest step between two of them.
FORMATS = {"bfloat16": (16, 0.0), "bfloat8_b": (8, 1 / 64), "bfloat4_b": (4, 1 / 4)}


@dataclass
class Accelerator:
    """Runs ops one after another on its cores, and remembers them as a profiler does."""

    cores: int = ALL_CORES
    _ops: list[dict[str, object]] = field(default_factory=list, repr=False)
    _now_ns: int = field(default=0, repr=False)
    _done_ns: int = field(default=0, repr=False)

    def linear(self, x: Any, weight: Any, *, weights: str = "bfloat16") -> Any:
        """Start ``relu(x @ weight)`` and return at once; fewer bits of a weight take less time."""
        rows, inner = x.shape
        columns = weight.shape[1]
        bits, step = FORMATS[weights]
        self._make_room(2 * rows * (inner + columns) + inner * columns * bits // 8)
        self._run("MatmulDeviceOperation", x.shape, work=rows * inner * columns * bits // 16)
        self._run("UnaryDeviceOperation", (rows, columns), work=rows * columns)
        stored = np.round(weight / step) * step if step else weight
        return np.maximum(x.astype(np.float16) @ stored.astype(np.float16), 0)

    def _make_room(self, needed: int) -> None:
        """Refuse what does not fit, in the words of TTNN."""
        if needed > MEMORY_BYTES:
            message = (
                "TT_FATAL @ bank_manager.cpp:462: false\ninfo:\n"
                f"Out of Memory: Not enough space to allocate {needed} B DRAM buffer across 1 "
                f"banks, where each bank needs to store {needed} B, but bank size is "
                f"{MEMORY_BYTES} B\nbacktrace:\n --- Accelerator::linear"
            )
            raise RuntimeError(message)

    def _run(self, code: str, shape: tuple[int, int], *, work: int) -> None:
        duration_ns = work * MULTIPLY_NS // self.cores
        self._done_ns = max(self._done_ns, self._now_ns + LAUNCH_NS) + duration_ns
        self._ops.append(
            {
                "OP CODE": code,
                "OP TYPE": "tt_dnn_device",
                "DEVICE ID": 0,
                "DEVICE ARCH": "wormhole_b0",
                "MATH FIDELITY": "HiFi2",
                "CORE COUNT": self.cores,
                "AVAILABLE WORKER CORE COUNT": ALL_CORES,
                "DEVICE KERNEL DURATION [ns]": duration_ns,
                "INPUT_0_W_PAD[LOGICAL]": "1[1]",
                "INPUT_0_Z_PAD[LOGICAL]": "1[1]",
                "INPUT_0_Y_PAD[LOGICAL]": f"{shape[0]}[{shape[0]}]",
                "INPUT_0_X_PAD[LOGICAL]": f"{shape[1]}[{shape[1]}]",
                "INPUT_0_LAYOUT": "TILE",
                "INPUT_0_DATATYPE": "BFLOAT16",
                "INPUT_0_MEMORY": "DEV_0_L1_HEIGHT_SHARDED",
            }
        )

    def synchronize(self) -> None:
        """Wait until all work is done: the clock goes on to then."""
        self._now_ns = max(self._now_ns, self._done_ns)

    def clock_ns(self) -> int:
        """Return the simulated time."""
        return self._now_ns

    def write_capture(self, path: Path) -> None:
        """Write what ran since the last capture, as TTNN's profiler writes its ops CSV."""
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(self._ops[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self._ops)
        self._ops.clear()
