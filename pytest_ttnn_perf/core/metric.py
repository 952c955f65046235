"""Metrics: name, unit, direction, kind and source."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Struct

from pytest_ttnn_perf.core.codec import Mark
from pytest_ttnn_perf.core.text import BYTES_IN, NANOSECONDS_IN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Units of throughput that do not say "per second" by "/s".
_RATES: Final = frozenset({"fps", "FPS", "ips", "qps", "Hz"})
#: The kernel time of all ops; the metrics that are named after it are of one category each.
KERNEL_TIME: Final = "device_kernel_time"
#: The time of compute alone, where a test measures how it overlaps with transfers.
IO_COMPUTE_TIME: Final = "io_compute_time"
#: What circular buffers held, on the fullest core.
CB_PEAK: Final = "cb_peak_bytes"
#: The most that a call holds of its own at one time, per bank.
L1_ADDED: Final = "l1_added_bytes"
DRAM_ADDED: Final = "dram_added_bytes"
#: The times of calls of a model, by the clock.
WALL_TIME: Final = "wall_time"
THROUGHPUT_TIME: Final = "throughput_time"
FIRST_CALL: Final = "first_call_time"
#: What compiling a pipeline takes, apart from its rounds.
COMPILE: Final = "compile_time"
#: The same by the clock of a simulated device.
SIM_TIME: Final = "sim_time"
SIM_THROUGHPUT_TIME: Final = "sim_throughput_time"
#: How many ops a profiler saw, and how many calls a graph has.
OP_COUNT: Final = "op_count"
CALL_COUNT: Final = "report_op_count"
COUNTED_IN_GRAPHS: Final = (CALL_COUNT,)


def metric_in(region: str, metric: str) -> str:
    """Return the name of a metric of a region: ``op_count.decode``."""
    return f"{metric}.{region}" if region else metric


def split_metric(name: str) -> tuple[str, str]:
    """Return the name of a metric without its region, and the region."""
    metric, _, region = name.partition(".")
    return metric, region


class Better(Enum):
    """The direction in which a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"
    EQUAL = "equal"


class Kind(Enum):
    """The kinds of metrics, which are compared in different ways."""

    TIME = "time"
    THROUGHPUT = "throughput"
    COUNT = "count"
    BYTES = "bytes"
    ACCURACY = "accuracy"

    @classmethod
    def of_unit(cls, unit: str) -> Kind | None:
        if unit in NANOSECONDS_IN:
            return cls.TIME
        if unit in BYTES_IN:
            return cls.BYTES
        return cls.THROUGHPUT if "/s" in unit or unit in _RATES else None

    @property
    def usual_direction(self) -> Better:
        return Better.HIGHER if self in {Kind.THROUGHPUT, Kind.ACCURACY} else Better.LOWER


class Source(Enum):
    """Where a number came from. Numbers of different sources are never compared."""

    WALL = "wall"
    DEVICE = "device"
    GRAPH = "graph"
    REALTIME = "realtime"
    TRACY = "tracy"
    REPLAY = "replay"
    REPORT = "report"
    SIM = "sim"


#: The sources that only a device has.
OF_DEVICE: Final = (Source.DEVICE, Source.GRAPH, Source.REALTIME, Source.REPORT, Source.TRACY)


class Metric(Struct, frozen=True):
    """One measured quantity; ``unit`` is "" for a bare number."""

    name: Annotated[str, Mark.KEY]
    unit: str
    better: Better = Better.LOWER
    kind: Kind = Kind.TIME
    source: Source = Source.WALL

    @classmethod
    def from_json(
        cls,
        name: str,
        unit: str,
        better: Better | None = None,
        kind: Kind | None = None,
        source: Source = Source.WALL,
    ) -> Metric:
        """Return a metric; its kind defaults to its unit's, or time."""
        kind = kind or Kind.of_unit(unit) or Kind.TIME
        return cls(name, unit, better or kind.usual_direction, kind, source)

    @property
    def is_part_of_kernel_time(self) -> bool:
        """True for the time of one category of ops."""
        return self._of_model(f"{KERNEL_TIME}_") is not None and self.source is not Source.WALL

    @property
    def is_kernel_time(self) -> bool:
        name, _ = split_metric(self.name)
        return name == KERNEL_TIME and self.source is not Source.WALL

    @property
    def only_recorded(self) -> bool:
        """True for a metric that is never gated, even with a baseline.

        The bytes of circular buffers are known only of programs that were compiled meanwhile, not
        of programs that an earlier test left in the cache of a shared device. Nor are dataflow
        buffers among them, which most ops use.
        """
        return self.name.endswith(CB_PEAK) and self.source is not Source.WALL

    @property
    def totals(self) -> tuple[str, ...]:
        """The names of the times that it explains; empty for most metrics.

        A kernel time is made of those of its categories, and of its ops, in the same region. A
        count of a model's graph is part of any time that the model takes. Numbers that a test
        records itself explain nothing.
        """
        if self.source is Source.WALL:
            return ()
        model = self._of_model(f"{KERNEL_TIME}_")
        name, region = split_metric(self.name)
        if model is not None:
            return (metric_in(region, model + KERNEL_TIME),)
        if not name.endswith("_count"):
            return ()
        for counters, of_graph in ((COUNTED_IN_GRAPHS, True), ((OP_COUNT,), False)):
            for counter in counters:
                model = name.removesuffix(counter)
                if model != name and model[-1:] in {"", "_"}:
                    # The call of another model than the first is timed under its name alone.
                    by_clock = (model[:-1],) if model else (WALL_TIME, THROUGHPUT_TIME)
                    whole = metric_in(region, model + KERNEL_TIME)
                    return (whole, *(by_clock if of_graph else ()))
        return ()

    @property
    def counts_ops(self) -> bool:
        return self.kind is Kind.COUNT and bool(self.totals)

    def _of_model(self, start: str) -> str | None:
        model, found, _ = self.name.partition(start)
        return model if found and model[-1:] in {"", "_"} else None

    def as_read(self, fraction: float | None) -> float | None:
        """Return a change as read from two values: minus is lower.

        For the gate, plus is worse, and it reckons in time: half the throughput is 100 % worse, and
        reads as 50 % lower.
        """
        if fraction is None or self.better is not Better.HIGHER:
            return fraction
        return -fraction / (1 + fraction) if self.compared_by_ratio else -fraction

    @property
    def compared_by_ratio(self) -> bool:
        """True if compared by ratio; such values are above zero."""
        ratio = self.kind is Kind.TIME or self.kind is Kind.THROUGHPUT
        return ratio and self.better is not Better.EQUAL

    def differs_from(self, other: Metric) -> str | None:
        """Return the first difference of two definitions: unit, better or kind.

        The source is not part of the definition: another source is another measurement of the same
        quantity, which the gate calls NOT_COMPARABLE.
        """
        parts = ("unit", "better", "kind")
        return next((p for p in parts if getattr(self, p) != getattr(other, p)), None)

    def part(self, name: str) -> str:
        """Return the part of the definition that ``differs_from`` named, as text."""
        return {"unit": self.unit, "better": self.better.value, "kind": self.kind.value}[name]


# To import the standard library's statistics takes as long as three modules of ours.


def median(values: Iterable[float]) -> float:
    """Return the median of at least one value."""
    return median_of_sorted(sorted(values))


def median_of_sorted(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    high = ordered[middle]
    if len(ordered) % 2:
        return high
    low = ordered[middle - 1]
    return high if low == high else (low + high) / 2


def recorded_metric(
    name: str, kind: Kind, *, better: Better | None = None, source: Source = Source.DEVICE
) -> Metric:
    """Return a recorded metric with unit and direction of its kind."""
    unit = {Kind.TIME: "ns", Kind.BYTES: "B"}.get(kind, "")
    return Metric(name, unit, better or kind.usual_direction, kind, source)


def unrecorded(option: str, name: str) -> str:
    return f"{option} names {name}, which the test did not record"


def told_twice(names: Sequence[str], first: str, second: str) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    told = f"{names[0]}{more}: given by {first} and by {second}; leave out"
    if any(name.endswith(of_graph) for name in names for of_graph in COUNTED_IN_GRAPHS):
        return f"{told} an attach: the run captures the graph of a model that it measures itself"
    return f"{told} one of them: an attach, or the profiler with --ttnn-perf-profiler off"


def representative(metric: Metric, samples: tuple[float, ...]) -> float:
    """Return the median of samples, or the worst accuracy."""
    if metric.kind is not Kind.ACCURACY:
        return median(samples)
    return max(samples) if metric.better is Better.LOWER else min(samples)
