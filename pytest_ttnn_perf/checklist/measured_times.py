"""Times that a test measured, for rules that compare two of them."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.model.metric import KERNEL_TIME, Source
from pytest_ttnn_perf.model.unit import NANOSECONDS_IN

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_ttnn_perf.model.subject import Subject

WALL_TIME: Final = "wall_time"
COMPUTE, TRANSFER, BOTH = "io_compute_time", "io_transfer_time", "io_both_time"
NO_IO_TIMES: Final = (
    "no profiler sees transfers: measure them with "
    "ttnn_perf.measure_io_overlap(compute=, transfer=, both=)"
)
_WALL: Final = frozenset({Source.WALL})
_DEVICE: Final = frozenset({Source.DEVICE, Source.REALTIME, Source.TRACY})


class CallTimes(NamedTuple):
    """What a call takes without a profiler, and how long its slowest device works in it."""

    wall_ns: float
    device_ns: float

    @property
    def waiting(self) -> float:
        """The part of the wall time in which no kernel runs; 0 where a profiler slowed kernels."""
        return max(0.0, 1 - self.device_ns / self.wall_ns)


class IoTimes(NamedTuple):
    """What computing and transferring take, each alone and both at once."""

    compute_ns: float
    transfer_ns: float
    both_ns: float

    @property
    def overlap(self) -> float:
        """The part of the shorter one that is hidden behind the longer one, from 0 to 1."""
        hidden = self.compute_ns + self.transfer_ns - self.both_ns
        return min(1.0, max(0.0, hidden / min(self.compute_ns, self.transfer_ns)))

    @property
    def transfer_share(self) -> float:
        """The part of transfers, one after the other."""
        return self.transfer_ns / (self.compute_ns + self.transfer_ns)


def call_times(subject: Subject) -> CallTimes | str:
    """Return the times of a call, or which of them is missing and why."""
    wall = _median_ns(subject, WALL_TIME, _WALL)
    if wall is None:
        return _why_missing(subject, WALL_TIME)
    device = _median_ns(subject, KERNEL_TIME, _DEVICE)
    return _why_missing(subject, KERNEL_TIME) if device is None else CallTimes(wall, device)


def io_times(subject: Subject) -> IoTimes | None:
    """Return the times of transfers and compute; None unless all three were measured."""
    times = [_median_ns(subject, name, _WALL) for name in (COMPUTE, TRANSFER, BOTH)]
    known = [time for time in times if time is not None]
    return IoTimes(*known) if len(known) == len(times) else None


def milliseconds(nanoseconds: float) -> str:
    """Return a time as people read it.

    >>> milliseconds(12_345_678.0)
    '12.3 ms'
    """
    return f"{nanoseconds / NANOSECONDS_IN['ms']:.3g} ms"


def _median_ns(subject: Subject, name: str, sources: Collection[Source]) -> float | None:
    """Return the median of a time that is of one of the sources and above zero."""
    observed = subject.observation.metrics.get(name) if subject.observation is not None else None
    if observed is None or not observed.samples or observed.metric.source not in sources:
        return None
    scale = NANOSECONDS_IN.get(observed.metric.unit)
    if scale is None or not all(map(math.isfinite, observed.samples)):
        return None
    middle = median(observed.samples) * scale
    return middle if middle > 0 else None


def _why_missing(subject: Subject, name: str) -> str:
    assert subject.observation is not None
    observed = subject.observation.metrics.get(name)
    if observed is None:
        return f"the test has no {name}"
    source = observed.metric.source.value
    return f"{name}: {observed.note}" if observed.note else f"{name} of source {source} has no time"
