"""How long devices wait between ops, counted only where it tells something of the model.

Between phases of a program lie compilation and idle time, so that the gaps of a whole capture are
nearly all of its time. Counted are gaps inside replays of traces, else inside windows; the gap
before the first op of each is not inside.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import NANOSECONDS_IN, counted
from pytest_ttnn_perf.analysis.checklist.op_times import (
    described,
    measured_calls,
    signpost_windows,
    worst_ops,
)
from pytest_ttnn_perf.records.finding import Input
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Better, Kind, Source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.op_times import Window
    from pytest_ttnn_perf.records.finding import Evidence, Subject
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.observation import MetricObservation, Observation
    from pytest_ttnn_perf.records.ops import OpTable


_NEITHER: Final = (
    "the capture has neither replays of a trace nor a window of signposts (NAME … NAME_END): gaps "
    "of a whole capture are compilation and idle time"
)
_NO_GAPS: Final = "the capture does not tell the gaps between ops"
INFLATED: Final = "outside a replay the profiler itself makes gaps longer"
#: The places of the ops that one device ran one after the other.
OpPlaces = list[int]


class Gaps(NamedTuple):
    """What devices waited and worked inside ``executions`` replays, or windows."""

    waited_ns: float
    worked_ns: float
    executions: int
    replayed: bool
    waits: tuple[int, ...]

    @property
    def share(self) -> float:
        """The part of the time in which devices waited."""
        return self.waited_ns / self.whole_ns if self.whole_ns else 0.0

    @property
    def whole_ns(self) -> float:
        """The time that was looked at."""
        return self.waited_ns + self.worked_ns

    @property
    def place(self) -> str:
        """Where the gaps were counted, in words."""
        kind = "replay" if self.replayed else "window"
        return counted(self.executions, kind)

    @property
    def caveat(self) -> str | None:
        """What to keep in mind about the number."""
        return None if self.replayed else INFLATED


def gaps_of(subject: Subject) -> Gaps | str:
    """Return the gaps of a subject, or why they cannot be told."""
    table = subject.ops
    if table is None:
        return subject.why_absent(Input.OPS)
    replays = _replays(table)
    windows = [] if replays else measured_calls(table)
    sequences = list(replays.values()) or _in_windows(table, windows)
    if not sequences:
        return _NEITHER
    gaps = table.columns.gap_ns
    waits = tuple(at for sequence in sequences for at in sequence[1:] if gaps[at] is not None)
    if not waits and any(len(sequence) > 1 for sequence in sequences):
        return _NO_GAPS
    return Gaps(
        waited_ns=sum(_gap(table, at) for at in waits),
        worked_ns=sum(table.columns.kernel_ns[at] for each in sequences for at in each),
        executions=len(windows) or len({key[1:] for key in replays}),
        replayed=bool(replays),
        waits=waits,
    )


def longest_gaps(table: OpTable, gaps: Gaps) -> Iterator[Evidence]:
    """Return before which ops the devices waited most."""
    waits = map(table.op, gaps.waits)
    return worst_ops(waits, lambda op: max(op.gap_ns or 0.0, 0.0), of=gaps.whole_ns)


def _gap(table: OpTable, at: int) -> float:
    """Return a gap; one below zero is an artefact of the profiler's clocks."""
    return max(table.columns.gap_ns[at] or 0.0, 0.0)


def _replays(table: OpTable) -> dict[tuple[int, int, int], OpPlaces]:
    """Return the ops of each replay of each trace on each device."""
    found: dict[tuple[int, int, int], OpPlaces] = {}
    columns = table.columns
    rows = zip(columns.device, columns.trace, columns.replay, strict=True)
    for at, (device, trace, replay) in enumerate(rows):
        if trace is not None and replay is not None and not columns.host[at]:
            found.setdefault((device, trace, replay), []).append(at)
    return found


def _in_windows(table: OpTable, windows: list[Window]) -> list[OpPlaces]:
    found: dict[tuple[Window, int], OpPlaces] = {}
    for window in windows:
        for at in range(window.start, window.stop):
            if not table.columns.host[at]:
                found.setdefault((window, table.columns.device[at]), []).append(at)
    return list(found.values())


class Execution(NamedTuple):
    """What one device ran in one replay or call; ``places`` are rows of the table."""

    number: int
    places: list[int]


class Difference(NamedTuple):
    """An execution that is not like the first of its kind, and the first op in which it differs.

    ``same_ops``: only their operands differ.
    """

    what: str
    number: int
    expected: str
    found: str
    same_ops: bool

    def __str__(self) -> str:
        return f"{self.what} {self.number}: {self.found} instead of {self.expected}"


def executions(table: OpTable) -> dict[str, list[Execution]]:
    """Return what ran at least twice, by what it is: traces, and windows of one name."""
    found: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    columns = table.columns
    for at, (device, trace, replay) in enumerate(
        zip(columns.device, columns.trace, columns.replay, strict=True)
    ):
        if trace is not None and replay is not None and not columns.host[at]:
            found[f"trace {trace} on device {device}, replay"][replay].append(at)
    windows = measured_calls(table) if table.calls else signpost_windows(table)
    for number, window in enumerate(windows):
        for at in range(window.start, window.stop):
            if not columns.host[at] and columns.trace[at] is None:
                found[f"{window.name} on device {columns.device[at]}, call"][number].append(at)
    numbered = {
        what: [Execution(n, places) for n, places in enumerate(by_number.values(), start=1)]
        for what, by_number in found.items()
    }
    return {what: runs for what, runs in numbered.items() if len(runs) > 1}


def differences(table: OpTable) -> Iterator[Difference]:
    """Yield the executions that ran other ops or on other operands than the first of a kind."""
    signature = table.columns.signature
    for what, (first, *others) in executions(table).items():
        expected = [signature[at] for at in first.places]
        for other in others:
            ran = [signature[at] for at in other.places]
            if ran != expected:
                yield _difference(table, what, first, other)


def first_difference(table: OpTable) -> Difference | None:
    """Return a difference between executions; None where all are alike or nothing ran twice."""
    return next(differences(table), None)


def _difference(table: OpTable, what: str, first: Execution, other: Execution) -> Difference:
    pairs = [
        (table.op(mine), table.op(theirs))
        for mine, theirs in zip(first.places, other.places, strict=False)
    ]
    same = len(first.places) == len(other.places) and all(
        mine.signature.op == theirs.signature.op for mine, theirs in pairs
    )
    for mine, theirs in pairs:
        if mine.signature != theirs.signature:
            return Difference(what, other.number, described(mine), described(theirs), same)
    expected, found = counted(len(first.places), "op"), counted(len(other.places), "op")
    return Difference(what, other.number, expected, found, same)


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


def uses_trace(subject: Subject) -> bool | None:
    """Tell whether a model runs from a trace: seen in its ops, or stated; None where neither is.

    Ops of which none is traced say no, unless ``use_trace`` is stated.
    """
    ops = subject.ops
    if ops is not None and any(trace is not None for trace in ops.columns.trace):
        return True
    settings = settings_of(subject)
    if "use_trace" in settings:
        return is_on(settings["use_trace"])
    return False if ops is not None and len(ops) else None


#: Why rules about PCC cannot tell.
NO_PCC: Final = "the test checks no PCC"
#: What is recorded beside every PCC that exists.
_BESIDE: Final = ("_max_abs_error", "_relative_l2")
#: How a PCC that does not exist says that the output is not finite.
_NOT_FINITE: Final = re.compile(r"\bactual holds \d+ NaN and \d+ infinite\b")


def accuracies(observation: Observation) -> Sequence[MetricObservation]:
    """Return the accuracies that a test checks; not the errors recorded beside a PCC."""
    return [
        observed
        for observed in observation.metrics.values()
        if observed.metric.kind is Kind.ACCURACY
        and observed.samples
        and not observed.metric.name.endswith(_BESIDE)
    ]


def pccs(observation: Observation) -> Sequence[MetricObservation]:
    """Return the accuracies that are correlations: by their name, or by what is beside them."""
    return [each for each in accuracies(observation) if _is_pcc(each, observation.metrics)]


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
