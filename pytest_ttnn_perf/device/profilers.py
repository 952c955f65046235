"""Device times from inside the process that runs the model.

One small protocol: ``begin`` after the warm-up, ``take`` after each iteration. Both synchronise
first. What cannot be trusted is a problem, never a number.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from pytest_ttnn_perf._support.visible import text_of
from pytest_ttnn_perf.device.errors import cause_of
from pytest_ttnn_perf.model.profile import Iteration, ProgramRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ttnn_perf.device.opened import OpenDevices

_KERNEL: Final = "DEVICE KERNEL DURATION [ns]"
#: Records come from another thread; so long none must have come before they are all there ...
_SETTLED_S: Final = 0.1
#: ... and so long is waited for them at most.
_PATIENCE_S: Final = 1.0
_POLL_S: Final = 0.01


class ProfilerError(Exception):
    """A profiler has nothing that could be trusted; its text says why."""


class Profiler(Protocol):
    """Tells what devices ran."""

    def begin(self) -> None:
        """Leave out all that ran until now."""

    def take(self) -> Iteration:
        """Return what ran since the last call.

        Raises:
            ProfilerError: that is not known, or not wholly.
        """

    def end(self) -> None:
        """Stop listening."""


@dataclass(slots=True)
class ProgramProfiler:
    """The device profiler of Tracy-enabled builds, read out after each iteration."""

    devices: OpenDevices

    def begin(self) -> None:
        """Read out what the warm-up left."""
        self._read()

    def take(self) -> Iteration:
        """Read out what one iteration ran."""
        self._read()
        assert self.devices.runtime is not None
        latest = _asked(self.devices.runtime.ttnn.get_latest_programs_perf_data)
        iteration = Iteration(tuple(_runs(latest)))
        if not iteration.programs:
            message = "the device profiler recorded nothing"
            raise ProfilerError(message)
        _check_chips(iteration, self.devices.chips)
        return iteration

    def end(self) -> None:
        """Nothing is left open."""

    def _read(self) -> None:
        runtime = self.devices.runtime
        assert runtime is not None
        if runtime.is_capturing_trace(self.devices.handles):
            message = "a trace is being captured, during which the profiler cannot be read"
            raise ProfilerError(message)
        self.devices.synchronize()
        for handle in self.devices.handles:
            _asked(runtime.ttnn.ReadDeviceProfiler, handle)


def _runs(latest: dict[int, list[Any]]) -> Iterator[ProgramRun]:
    for chip, programs in sorted(latest.items()):
        for program in programs:
            results = program.program_analyses_results
            if _KERNEL not in results:
                message = f"a program of chip {chip} has no {_KERNEL}"
                raise ProfilerError(message)
            duration = float(results[_KERNEL].duration)
            if not 0 < duration < math.inf:
                message = f"a program of chip {chip} has a {_KERNEL} of {duration:g}"
                raise ProfilerError(message)
            yield ProgramRun(int(chip), duration, program.core_count)


@dataclass(slots=True)
class RealtimeProfiler:
    """The real-time profiler of any build, on hardware with fast dispatch.

    To ask for it before a device is open ends the process: it is made when one is.
    """

    devices: OpenDevices
    _records: list[Any] = field(default_factory=list)
    _dropped: int = 0
    _heard_s: float = 0.0
    _handle: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def unavailable(self) -> str | None:
        """Why there are no records; None where there should be some."""
        runtime = self.devices.runtime
        if runtime is None or not self.devices.handles:
            return "no device is open"
        active = getattr(runtime.ttnn.device, "IsProgramRealtimeProfilerActive", None)
        if active is None:
            return "this ttnn has no real-time profiler"
        if not _asked(active):
            return "the real-time profiler is not active on this system"
        return None

    def begin(self) -> None:
        """Listen; what comes of the warm-up is left out."""
        why = self.unavailable
        if why is not None:
            raise ProfilerError(why)
        assert self.devices.runtime is not None
        if self._handle is None:  # the first handle there is is 0
            register = self.devices.runtime.ttnn.device.RegisterProgramRealtimeProfilerCallback
            self._handle = _asked(register, self._hear)
        self._settle(needed=False)
        with self._lock:
            self._records.clear()
            self._dropped = 0

    def take(self) -> Iteration:
        """Wait until the records of one iteration are there, and return them."""
        self._settle(needed=True)
        with self._lock:
            records, dropped = list(self._records), self._dropped
            self._records.clear()
        if dropped:
            message = f"the real-time profiler dropped {dropped} records"
            raise ProfilerError(message)
        if not records:
            message = "the real-time profiler recorded nothing"
            raise ProfilerError(message)
        iteration = Iteration(tuple(map(_run, records)))
        _check_chips(iteration, self.devices.chips)
        return iteration

    def end(self) -> None:
        """Stop listening."""
        if self._handle is not None:
            assert self.devices.runtime is not None
            self.devices.runtime.ttnn.device.UnregisterProgramRealtimeProfilerCallback(self._handle)
            self._handle = None

    def _hear(self, batch: Any) -> None:
        with self._lock:
            self._records += batch.records
            self._dropped += batch.dropped
            self._heard_s = time.monotonic()

    def _settle(self, *, needed: bool) -> None:
        """Wait until nothing has come for a while; not for ever.

        If something is ``needed``, the silence before the first record does not count.
        """
        self.devices.synchronize()
        start = time.monotonic()
        while True:
            now = time.monotonic()
            quiet_s = now - max(self._heard_s, start)
            heard = bool(self._records or self._dropped) or not needed
            if (heard and quiet_s >= _SETTLED_S) or now - start >= _PATIENCE_S:
                return
            time.sleep(max(_SETTLED_S - quiet_s, _POLL_S))


def _run(record: Any) -> ProgramRun:
    cycles = record.end_timestamp - record.start_timestamp
    if cycles < 0 or record.frequency <= 0:
        told = f"{cycles} cycles at {record.frequency} per ns"
        message = f"the real-time profiler told a time that is none: {told}"
        raise ProfilerError(message)
    return ProgramRun(int(record.chip_id), cycles / record.frequency)


def _asked(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of ttnn's profilers; one that fails costs the times, not the test."""
    try:
        return function(*arguments)
    except RuntimeError as error:
        raise ProfilerError(cause_of(text_of(error))) from error


def _check_chips(iteration: Iteration, expected: frozenset[int]) -> None:
    """Refuse to take some chips for all: the slowest may be the one that is missing."""
    missing = sorted(expected - set(iteration.by_chip))
    if missing:
        chips = ", ".join(map(str, missing))
        message = f"nothing was recorded of chip {chips} of {len(expected)}"
        raise ProfilerError(message)
