"""Timed calls after warm-up: one by one, in blocks, or in pipelines."""

from __future__ import annotations

import gc
import os
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from math import ceil, log
from threading import Lock
from time import perf_counter_ns, process_time_ns, thread_time_ns
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


#: The largest of ``least_count`` values exceeds the quantile with this probability.
CONFIDENCE: Final = 0.95


def least_count(fraction: float) -> int:
    """Return how many values a quantile needs, whatever their distribution.

    >>> least_count(0.5), least_count(0.9), least_count(0.99)
    (5, 29, 299)
    """
    return ceil(log(1 - CONFIDENCE) / log(fraction))


def quantile(values: Sequence[float], fraction: float) -> float | None:
    """Return a quantile, if there are enough values.

    >>> quantile(range(1, 101), 0.9), quantile(range(1, 101), 0.99)
    (90, None)
    """
    if len(values) < least_count(fraction):
        return None
    return sorted(values)[ceil(fraction * len(values) - 1e-9) - 1]


class Workload(Struct, frozen=True):
    """A call, and its surroundings.

    ``setup`` runs untimed before each call and may return the arguments: None keeps those given,
    a tuple replaces them, anything else is the single argument. ``sync`` runs inside the timed
    section, after the call: a device that is still working is not done. ``clock`` tells the time
    in nanoseconds. A call may serve several ``inputs``; ``part`` is then one that serves fewer, for
    profilers, whose result is not used.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    setup: Callable[[], Any] | None = None
    sync: Callable[[], object] | None = None
    clock: Callable[[], float] = perf_counter_ns
    inputs: int = 1
    part: Workload | None = None

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


def input_shapes(workload: Workload) -> tuple[str, ...]:
    """Return the shapes of a model's tensors among its inputs, in order."""

    def shapes(value: object) -> Iterator[str]:
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            yield "x".join(map(str, value.shape))
        elif isinstance(value, (dict, tuple, list)):
            for part in value.values() if isinstance(value, dict) else value:
                yield from shapes(part)

    return tuple(shapes((workload.args, workload.kwargs)))


class Timings:
    """Nanoseconds per call; a sample is the mean of ``calls_per_sample``.

    Filled while measuring: a call that raises leaves those before it.
    """

    def __init__(self) -> None:
        self.warmup_ns: list[float] = []
        self.samples_ns: list[float] = []
        self.calls_per_sample = 1


#: How long the thread that reads it has run and has waited for a processor, in nanoseconds.
_SCHEDULER: Final = "/proc/thread-self/schedstat"


class Stopwatch(AbstractContextManager["Stopwatch"]):
    """Elapsed time without the waits of this thread for a processor.

    While it waits, others have the processors: that is no property of the test. What the other
    threads of this process computed meanwhile counts, because too many threads are one. So does
    all of a test with a ``sync``: it may poll a device, which goes on while the thread waits.
    Where the system does not count the waits, the time is that of the clock. ``recorder`` notes the
    calls of sections, in a pass whose times are not used; each section has ``calls`` of the model.
    """

    recorder: ClassVar[Any] = None

    def __init__(self, sync: Callable[[], object] | None, clock: Callable[[], float]) -> None:
        self._file, self.calls = -1, 1
        if self.recorder is not None:
            self.recorder.begin_series()
        self._ran_ns = self._process_ns = self._begin_ns = self._waited_ns = 0
        alone = sync is None and clock is perf_counter_ns
        if alone:
            with suppress(OSError):
                self._file = os.open(_SCHEDULER, os.O_RDONLY)

    def __exit__(self, *_: object) -> bool | None:
        if self._file >= 0:
            os.close(self._file)
        return None

    def prepare(self) -> None:
        """Note the waits before a section; its clock is read afterwards."""
        if self._file >= 0:
            # First: asked for processor time, the kernel gives the processor to whoever is next.
            self._ran_ns, self._process_ns = thread_time_ns(), process_time_ns()
            self._begin_ns, self._waited_ns = perf_counter_ns(), self._read_waited_ns()
        if self.recorder is not None:
            self.recorder.begin()

    def active(self, elapsed_ns: float) -> float:
        """Return what was timed since, without the waits.

        A wait between the section and a reading is not subtracted from it: the time around both
        readings is longer by that wait as well. What the thread ran is the least: the clock of the
        waits is another one, and a short call beside a long wait would take no time.
        """
        if self.recorder is not None:
            self.recorder.end(self.calls)
        if self._file < 0:
            return elapsed_ns
        waited_ns = self._read_waited_ns() - self._waited_ns
        around_ns = perf_counter_ns() - self._begin_ns
        ran_ns = thread_time_ns() - self._ran_ns
        others_ns = process_time_ns() - self._process_ns - ran_ns
        return min(elapsed_ns, max(around_ns - waited_ns + others_ns, ran_ns))

    def _read_waited_ns(self) -> int:
        return int(os.pread(self._file, 64, 0).split()[1])


def warm_up(workload: Workload, timings: Timings, *, count: int) -> None:
    recorder, Stopwatch.recorder = Stopwatch.recorder, None
    try:
        _time_calls(workload, timings.warmup_ns, count=count)
    finally:
        Stopwatch.recorder = recorder


def measure(
    workload: Workload, timings: Timings, *, warmup: int, iterations: int, depth: int | None = None
) -> Any:
    """Time ``warmup`` and then ``iterations`` calls; return the last result.

    With ``depth`` a sample is the mean of that many calls with one synchronisation.
    """
    warm_up(workload, timings, count=warmup)
    with garbage_collection_off():
        if depth is not None:
            return _time_blocks(workload, timings.samples_ns, count=iterations, depth=depth)
        calls = timings.calls_per_sample = _calls_per_sample(workload, timings.warmup_ns)
        if calls == 1:
            return _time_calls(workload, timings.samples_ns, count=iterations)
        return _time_loops(workload, timings.samples_ns, count=iterations, calls=calls)


#: What takes less is hardly longer than reading the clock: then a sample is of many calls.
_SHORTEST_CALL_NS: Final = 1_000.0
#: As long as a sample takes then at least: reading the clock is less than a hundredth of it.
_SHORTEST_SAMPLE_NS: Final = 20_000.0


def _calls_per_sample(workload: Workload, warmup_ns: list[float]) -> int:
    """Return the number of calls per sample, by the warm-up.

    One, where something is to be done around each call, or another clock is used.
    """
    alone = workload.setup is None and workload.sync is None and workload.clock is perf_counter_ns
    fastest_ns = min(warmup_ns, default=_SHORTEST_CALL_NS)
    if not alone or fastest_ns >= _SHORTEST_CALL_NS:
        return 1
    # A power of two: the same in most runs. Some more: reading the clock is part of what was seen.
    return 1 << int(3 * _SHORTEST_SAMPLE_NS / max(fastest_ns, 1.0)).bit_length()


def _time_calls(workload: Workload, into: list[float], *, count: int) -> Any:
    if workload.setup is not None or workload.sync is not None:
        return _time_blocks(workload, into, count=count, depth=1)
    call, clock = workload.ready(), workload.clock
    keep = into.append
    result: Any = None
    with Stopwatch(workload.sync, clock) as watch:
        for _ in range(count):
            # Freed here, untimed: otherwise two results, often the largest tensors of a model,
            # would be alive at once and the older one's release would be timed.
            result = None
            watch.prepare()
            start = clock()
            result = call()
            stop = clock()
            keep(watch.active(stop - start))
    return result


def _time_blocks(workload: Workload, into: list[float], *, count: int, depth: int) -> Any:
    sync, clock = workload.sync or _nothing, workload.clock
    result: Any = None
    with Stopwatch(workload.sync, clock) as watch:
        watch.calls = depth
        for _ in range(count):
            calls = [workload.ready() for _ in range(depth)]
            result = None
            sync()  # nothing of the set-up may still be running when the clock starts
            watch.prepare()
            start = clock()
            for call in calls:
                result = call()
            sync()
            stop = clock()
            into.append(watch.active(stop - start) / depth)
    return result


def _time_loops(workload: Workload, into: list[float], *, count: int, calls: int) -> Any:
    call, clock = workload.ready(), workload.clock
    result: Any = None
    with Stopwatch(workload.sync, clock) as watch:
        watch.calls = calls
        for _ in range(count):
            watch.prepare()
            start = clock()
            for _ in range(calls):
                result = call()
            stop = clock()
            into.append(watch.active(stop - start) / calls)
    return result


async def measure_awaited(
    workload: Workload, timings: Timings, *, warmup: int, iterations: int
) -> Any:
    """Time awaited calls in the running event loop; return the last result."""
    sync, clock = workload.sync or _nothing, workload.clock
    result: Any = None

    async def time_calls(into: list[float], count: int) -> None:
        nonlocal result
        with Stopwatch(workload.sync, clock) as watch:
            for _ in range(count):
                call = workload.ready()
                result = None
                sync()
                watch.prepare()
                start = clock()
                result = await call()
                sync()
                stop = clock()
                into.append(watch.active(stop - start))

    await time_calls(timings.warmup_ns, warmup)
    with garbage_collection_off():
        await time_calls(timings.samples_ns, iterations)
    return result


def _nothing() -> None: ...


@contextmanager
def garbage_collection_off() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def timed_region(
    keep: Callable[[float], None],
    sync: Callable[[], object] | None = None,
    clock: Callable[[], float] = perf_counter_ns,
) -> Iterator[None]:
    """Hand the nanoseconds of a block to ``keep``, unless it raises."""
    if sync is not None:
        sync()
    with Stopwatch(sync, clock) as watch:
        watch.prepare()
        start = clock()
        yield
        if sync is not None:
            sync()
        stop = clock()
        keep(watch.active(stop - start))


Turn = AbstractContextManager[object]


def turn_in(folder: Path) -> Turn:
    """Return the turn that the processes which share ``folder`` wait for."""
    return _Turn(folder / "turn.lock")


class _Turn(AbstractContextManager[object]):
    """A lock between processes. Who waits sleeps, and disturbs no timed section.

    A process that has it may take it again, in any thread, and one that dies gives it back.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._mutex = Lock()
        self._depth = 0
        self._held: IO[bytes] | None = None

    def __enter__(self) -> None:
        from fcntl import LOCK_EX, flock

        with self._mutex:  # kept while waiting: the other threads of this process wait as well
            if not self._depth:
                self._held = self._file.open("ab")
                flock(self._held, LOCK_EX)
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        from fcntl import LOCK_UN, flock

        with self._mutex:
            self._depth -= 1
            if not self._depth and self._held is not None:
                with self._held:
                    flock(self._held, LOCK_UN)  # closing is not enough: a fork may have the file
