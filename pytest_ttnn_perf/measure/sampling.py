"""Warm-up calls, then timed calls, with nothing else inside the timed section."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class Workload:
    """What is called, and what surrounds each call.

    ``setup`` runs untimed before each call and may return the arguments: None keeps those given,
    a tuple replaces them, anything else is the single argument. ``sync`` runs inside the timed
    section, after the call: a device that is still working is not done.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    setup: Callable[[], Any] | None = None
    sync: Callable[[], object] | None = None

    def ready(self) -> Callable[[], Any]:
        """Run the set-up and return the call with its arguments bound."""
        args = self.args
        if self.setup is not None:
            supplied = self.setup()
            if supplied is not None:
                args = supplied if isinstance(supplied, tuple) else (supplied,)
        if not args and not self.kwargs:
            return self.call
        return partial(self.call, *args, **self.kwargs)


@dataclass(slots=True)
class Timings:
    """Nanoseconds per call, filled while measuring: a call that raises leaves those before it."""

    warmup_ns: list[float] = field(default_factory=list)
    samples_ns: list[float] = field(default_factory=list)

    @property
    def calls_ns(self) -> list[float]:
        """All calls in order, warm-up first."""
        return self.warmup_ns + self.samples_ns


def warm_up(workload: Workload, timings: Timings, *, count: int) -> None:
    """Call a model without taking samples."""
    _time_calls(workload, timings.warmup_ns, count=count)


def measure(workload: Workload, timings: Timings, *, warmup: int, iterations: int) -> Any:
    """Time ``warmup`` and then ``iterations`` calls; return the last result."""
    warm_up(workload, timings, count=warmup)
    with collection_held_off():
        return _time_calls(workload, timings.samples_ns, count=iterations)


def measure_pipelined(
    workload: Workload, timings: Timings, *, warmup: int, iterations: int, depth: int
) -> Any:
    """Time blocks of ``depth`` calls with one synchronisation; a sample is a block over depth."""
    warm_up(workload, timings, count=warmup)
    result: Any = None
    with collection_held_off():
        for _ in range(iterations):
            calls = [workload.ready() for _ in range(depth)]
            result = None
            if workload.sync is not None:
                workload.sync()
            start = perf_counter_ns()
            for call in calls:
                result = call()
            if workload.sync is not None:
                workload.sync()
            timings.samples_ns.append((perf_counter_ns() - start) / depth)
    return result


def _time_calls(workload: Workload, into: list[float], *, count: int) -> Any:
    if workload.setup is not None or workload.sync is not None:
        return _time_surrounded(workload, into, count=count)
    call = workload.ready()
    keep = into.append
    result: Any = None
    for _ in range(count):
        # Freed here, untimed: otherwise two results, often the largest tensors of a model, would
        # be alive at once and the older one's release would be timed.
        result = None
        start = perf_counter_ns()
        result = call()
        stop = perf_counter_ns()
        keep(stop - start)
    return result


def _time_surrounded(workload: Workload, into: list[float], *, count: int) -> Any:
    sync = workload.sync or _nothing
    result: Any = None
    for _ in range(count):
        call = workload.ready()
        result = None
        sync()  # nothing of the set-up may still be running when the clock starts
        start = perf_counter_ns()
        result = call()
        sync()
        stop = perf_counter_ns()
        into.append(stop - start)
    return result


def _nothing() -> None:
    """Stand in for a synchronisation that nobody asked for."""


@contextmanager
def collection_held_off() -> Iterator[None]:
    """Keep the garbage collector out of the timed section; leave it as it was found."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
