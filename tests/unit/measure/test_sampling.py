"""What happens around a timed call, and in which order."""

from __future__ import annotations

import weakref

from pytest_ttnn_perf.measure.timing import Timings, Workload, measure


def test_one_result_is_alive_at_a_time() -> None:
    class Tensor:
        """Something large."""

    alive: weakref.WeakSet[Tensor] = weakref.WeakSet()
    counts = []

    def call() -> Tensor:
        counts.append(len(alive))
        tensor = Tensor()
        alive.add(tensor)
        return tensor

    measure(Workload(call), Timings(), warmup=2, iterations=3)
    assert counts == [0] * 5
