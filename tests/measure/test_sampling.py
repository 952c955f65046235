"""What counts as the time of a call."""

from __future__ import annotations

import gc
import time
import weakref

import pytest

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

    one_by_one = Workload(call, clock=time.monotonic_ns)  # by the usual clock, fast ones are looped
    measure(one_by_one, Timings(), warmup=2, iterations=3)
    assert counts == [0] * 5


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("depth", [None, 2])
def test_the_garbage_collector_is_held_off_and_left_as_found(
    depth: int | None, *, enabled: bool
) -> None:
    found: list[bool] = []

    def call() -> None:
        found.append(gc.isenabled())
        if len(found) == 4:
            raise ValueError

    was_enabled = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ValueError, match=r"^$"):
            measure(Workload(call), Timings(), warmup=1, iterations=9, depth=depth)
        assert (found, gc.isenabled()) == ([enabled, False, False, False], enabled)
    finally:
        (gc.enable if was_enabled else gc.disable)()
