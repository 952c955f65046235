"""What happens around a timed call, and in which order."""

from __future__ import annotations

import gc
import weakref

import pytest

from pytest_ttnn_perf.measure.timing import Timings, Workload, measure, measure_pipelined


class Log:
    """Keeps the order of events."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def call(self, *args: object, **kwargs: object) -> str:
        self.events.append(f"call{args or ''}{kwargs or ''}")
        return f"result {len(self.events)}"

    def sync(self) -> None:
        self.events.append("sync")


def test_warm_up_and_samples_are_kept_apart() -> None:
    log, timings = Log(), Timings()
    result = measure(Workload(log.call, (1,), {"k": 2}), timings, warmup=2, iterations=3)
    assert log.events == ["call(1,){'k': 2}"] * 5
    assert result == "result 5"
    assert (len(timings.warmup_ns), len(timings.samples_ns)) == (2, 3)
    assert timings.calls_ns == timings.warmup_ns + timings.samples_ns
    assert all(elapsed > 0 for elapsed in timings.calls_ns)


def test_every_call_is_synchronised_before_the_clock_starts_and_before_it_stops() -> None:
    log = Log()
    measure(Workload(log.call, sync=log.sync), Timings(), warmup=0, iterations=2)
    assert log.events == ["sync", "call", "sync"] * 2


@pytest.mark.parametrize(
    ("supplied", "call"),
    [(None, "call(1,)"), ((2, 3), "call(2, 3)"), ([4], "call([4],)"), ((), "call")],
)
def test_set_up_may_supply_the_arguments(supplied: object, call: str) -> None:
    log = Log()
    measure(Workload(log.call, (1,), setup=lambda: supplied), Timings(), warmup=1, iterations=1)
    assert log.events == [call, call]


def test_pipelined_calls_share_one_synchronisation() -> None:
    log, timings = Log(), Timings()
    workload = Workload(log.call, sync=log.sync)
    measure_pipelined(workload, timings, warmup=0, iterations=2, depth=3)
    assert log.events == ["sync", "call", "call", "call", "sync"] * 2
    assert len(timings.samples_ns) == 2


def test_a_call_that_raises_leaves_what_was_measured() -> None:
    timings, calls = Timings(), iter([1, 1, 0])

    def call() -> float:
        return 1 / next(calls)

    with pytest.raises(ZeroDivisionError):
        measure(Workload(call), timings, warmup=1, iterations=5)
    assert (len(timings.warmup_ns), len(timings.samples_ns)) == (1, 1)
    assert gc.isenabled()


@pytest.mark.parametrize("enabled", [True, False])
def test_collection_is_held_off_and_left_as_it_was(enabled: bool) -> None:
    seen = []
    try:
        if not enabled:
            gc.disable()
        measure(Workload(lambda: seen.append(gc.isenabled())), Timings(), warmup=1, iterations=2)
        assert seen == [enabled, False, False]
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


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
