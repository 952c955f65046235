"""What a test measured and stated: times of calls and transfers, settings, accuracies."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import NANOSECONDS_IN
from pytest_ttnn_perf.records.metric import (
    KERNEL_TIME,
    THROUGHPUT_TIME,
    WALL_TIME,
    Better,
    Kind,
    Source,
    median,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.observation import MetricObservation, Observation


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

    @property
    def waiting_ns(self) -> float:
        """The time in which no kernel runs."""
        return max(0.0, self.wall_ns - self.device_ns)

    @property
    def arithmetic(self) -> str:
        """How that comes about, in a line."""
        return f"wall − device: {milliseconds(self.wall_ns)} − {milliseconds(self.device_ns)}"


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
    """Return the times of a call, or which of them is missing and why.

    Of calls that overlap, or a pipeline, the time is that of one of them.
    """
    wall = _median_ns(subject, WALL_TIME, _WALL) or _median_ns(subject, THROUGHPUT_TIME, _WALL)
    if wall is None:
        return _why_missing(subject, WALL_TIME)
    device = _median_ns(subject, KERNEL_TIME, _DEVICE)
    return _why_missing(subject, KERNEL_TIME) if device is None else CallTimes(wall, device)


def io_times(subject: Subject) -> IoTimes | None:
    """Return the times of transfers and compute; None unless all three were measured."""
    times = [_median_ns(subject, name, _WALL) for name in (COMPUTE, TRANSFER, BOTH)]
    known = [time for time in times if time is not None]
    return IoTimes(*known) if len(known) == len(times) else None


def times_of_parts(observation: Observation) -> bool:
    """Tell whether a test may have ``call_times`` or ``io_times``."""
    return KERNEL_TIME in observation.metrics or COMPUTE in observation.metrics


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


_OFF: Final = frozenset({"", "0", "false", "off", "no", "none"})


def settings_of(subject: Subject) -> Mapping[str, Scalar]:
    """Return all that is known by name."""
    observed = subject.observation.setting.values if subject.observation is not None else {}
    return {**observed, **subject.facts}


def is_on(value: Scalar) -> bool:
    """Return whether a switch is on, however it is spelt.

    >>> is_on("1"), is_on("False"), is_on(None), is_on(value=True)
    (True, False, False, True)
    """
    return value.strip().lower() not in _OFF if isinstance(value, str) else bool(value)


def number(value: Scalar) -> float | None:
    """Return a setting as a number; None where it is none.

    >>> number("10000000"), number(2), number("auto")
    (10000000.0, 2.0, None)
    """
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


#: What says that a trace is used: as tests and TT-CNN call it, and as tt-xla does.
_TRACES: Final = ("use_trace", "enable_trace")


def uses_trace(subject: Subject) -> bool | None:
    """Tell whether a model runs from a trace: seen in its ops, or stated; None where neither is.

    Ops of which none is traced say no, unless a setting says yes.
    """
    ops = subject.ops
    if ops is not None and any(trace is not None for trace in ops.columns.trace):
        return True
    settings = settings_of(subject)
    for name in _TRACES:
        if name in settings:
            return is_on(settings[name])
    return False if ops is not None and len(ops) else None


#: Why rules about PCC cannot tell.
NO_PCC: Final = "the test checks no PCC"
#: What is recorded beside every PCC that exists.
_BESIDE: Final = ("_max_abs_error", "_relative_l2")
#: How a PCC that does not exist says that the output is not finite.
_NOT_FINITE: Final = re.compile(r"\bactual holds \d+ NaN and \d+ infinite\b")


def accuracies(observation: Observation) -> Sequence[MetricObservation]:
    """Return the accuracies that a test checks; not what is recorded beside a PCC."""
    return [
        observed
        for observed in observation.metrics.values()
        if observed.metric.kind is Kind.ACCURACY
        and observed.samples
        and observed.gated
        and not observed.metric.name.endswith(_BESIDE)
    ]


def pccs(observation: Observation) -> Sequence[MetricObservation]:
    """Return the accuracies that are correlations: by their name, or by what is beside them."""
    return [
        accuracy for accuracy in accuracies(observation) if _is_pcc(accuracy, observation.metrics)
    ]


def worst_of(observed: MetricObservation) -> float:
    """Return the worst sample; NaN if any sample is NaN."""
    if any(math.isnan(sample) for sample in observed.samples):
        return math.nan
    lowest, highest = min(observed.samples), max(observed.samples)
    return highest if observed.metric.better is Better.LOWER else lowest


def is_not_finite(observed: MetricObservation) -> bool:
    """Tell whether an accuracy is none because the output has values that are not finite."""
    if not math.isnan(worst_of(observed)):
        return False
    return observed.note is None or _NOT_FINITE.search(observed.note) is not None


def _is_pcc(observed: MetricObservation, metrics: Mapping[str, MetricObservation]) -> bool:
    name = observed.metric.name
    if observed.metric.better is not Better.HIGHER:
        return False
    return "pcc" in name.lower() or any(f"{name}{end}" in metrics for end in _BESIDE)
