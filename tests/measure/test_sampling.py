"""What counts as the time of a call."""

from __future__ import annotations

import gc
import os
import time
import weakref
from types import SimpleNamespace

import pytest

from pytest_ttnn_perf.measure import timing
from pytest_ttnn_perf.measure.timing import Timings, Workload, measure, timed_region


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


class Machine:
    """A machine by its counters, in nanoseconds: one thread, and what keeps it from running."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, counts_waits: bool = True) -> None:
        self.now_ns = self.waited_ns = self.others_ns = self.ran_ns = 0
        #: Waits before and after each reading of the waits.
        self.around_ns: list[tuple[int, int]] = []
        self.counts_waits = counts_waits
        self.clock = lambda: self.now_ns  # one object: who times asks whether it is the usual clock
        system = SimpleNamespace(
            open=self.open, pread=self.pread, close=lambda _: None, O_RDONLY=os.O_RDONLY
        )
        monkeypatch.setattr(timing, "os", system)
        monkeypatch.setattr(timing, "perf_counter_ns", self.clock)
        monkeypatch.setattr(timing, "thread_time_ns", lambda: self.ran_ns)
        monkeypatch.setattr(timing, "process_time_ns", lambda: self.ran_ns + self.others_ns)

    def open(self, _: str, __: int) -> int:
        if self.counts_waits:
            return 3
        raise FileNotFoundError

    def pread(self, *_: int) -> bytes:
        before, after = (0, 0) if not self.around_ns else self.around_ns.pop(0)
        self.wait(before)
        read = b"%d %d 7\n" % (self.ran_ns, self.waited_ns)
        self.wait(after)
        return read

    def run(self, length_ns: int) -> None:
        self.now_ns += length_ns
        self.ran_ns += length_ns

    def wait(self, length_ns: int) -> None:
        self.now_ns += length_ns
        self.waited_ns += length_ns


@pytest.mark.parametrize(
    ("waits_ns", "around_ns", "others_ns", "counted_ns"),
    [
        (0, [], 0, 50_000),
        (80_000, [], 0, 50_000),
        (80_000, [(0, 9_000)], 0, 50_000),
        (80_000, [(0, 0), (9_000, 0)], 0, 50_000),
        (80_000, [], 30_000, 80_000),
        (80_000, [], 500_000, 130_000),
    ],
    ids=["idle", "busy", "busy before", "busy after", "own threads", "only own threads"],
)
def test_waits_for_a_processor_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
    waits_ns: int,
    around_ns: list[tuple[int, int]],
    others_ns: int,
    counted_ns: int,
) -> None:
    machine = Machine(monkeypatch)
    machine.around_ns = around_ns

    samples: list[float] = []
    with timed_region(samples.append, None, machine.clock):
        machine.run(20_000)
        machine.now_ns += 30_000  # asleep: no wait for a processor
        machine.wait(waits_ns)
        machine.others_ns += others_ns
    assert samples == [counted_ns]


def test_a_wait_by_another_clock_leaves_what_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, samples = Machine(monkeypatch), list[float]()
    with timed_region(samples.append, None, machine.clock):
        machine.run(300)
        machine.wait(80_000_000)
        machine.waited_ns += 40_000
    assert samples == [300]


@pytest.mark.parametrize("counts_waits", [True, False], ids=["a sync", "another system"])
def test_the_clock_counts_where_waits_say_nothing(
    monkeypatch: pytest.MonkeyPatch, *, counts_waits: bool
) -> None:
    machine = Machine(monkeypatch, counts_waits=counts_waits)
    samples: list[float] = []
    with timed_region(samples.append, (lambda: None) if counts_waits else None, machine.clock):
        machine.run(20_000)
        machine.wait(80_000)
    assert samples == [100_000]
