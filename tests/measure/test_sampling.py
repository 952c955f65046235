"""What counts as the time of a call."""

from __future__ import annotations

import weakref

from pytest_ttnn_perf.measure.timing import Timings, Workload, measure


def test_a_sample_of_pipelined_calls_is_one_of_them_and_their_share_of_waiting() -> None:
    now_ns = [0]

    def take(ns: int) -> None:
        now_ns[0] += ns

    timings = Timings()
    workload = Workload(take, (10,), sync=lambda: take(60), clock=lambda: now_ns[0])
    measure(workload, timings, warmup=0, iterations=2, depth=3)
    assert timings.samples_ns == [30, 30]


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
