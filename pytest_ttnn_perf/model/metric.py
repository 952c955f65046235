"""What is measured: a name, a unit, a direction, a kind and a source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from pytest_ttnn_perf.model.unit import BYTES_IN, NANOSECONDS_IN

#: Units of throughput that do not say "per second" by "/s".
_RATES: Final = frozenset({"fps", "FPS", "ips", "qps", "Hz"})

#: The kernel time of all ops; the metrics that are named after it are of one category each.
KERNEL_TIME: Final = "device_kernel_time"

#: No measurement is larger, in any unit: what is counts as not finite, and arithmetic stays so.
LARGEST: Final = 1e100


class Better(Enum):
    """Which way a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"
    EQUAL = "equal"


class Kind(Enum):
    """How two values of a metric are compared."""

    TIME = "time"
    THROUGHPUT = "throughput"
    COUNT = "count"
    BYTES = "bytes"
    ACCURACY = "accuracy"

    @classmethod
    def of_unit(cls, unit: str) -> Kind | None:
        """Return the kind that a unit tells; None for a unit that does not."""
        if unit in NANOSECONDS_IN:
            return cls.TIME
        if unit in BYTES_IN:
            return cls.BYTES
        return cls.THROUGHPUT if "/s" in unit or unit in _RATES else None

    @property
    def usual_direction(self) -> Better:
        """The direction a metric of this kind improves in when nobody says otherwise."""
        return Better.HIGHER if self in {Kind.THROUGHPUT, Kind.ACCURACY} else Better.LOWER


class Source(Enum):
    """Where a number came from. Numbers of different sources are never compared."""

    WALL = "wall"
    DEVICE = "device"
    REALTIME = "realtime"
    TRACY = "tracy"
    REPLAY = "replay"
    SIM = "sim"


#: The sources that only a device has.
OF_DEVICE: Final = (Source.DEVICE, Source.REALTIME, Source.TRACY)


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured quantity. ``unit`` is a display unit ("ns", "tok/s"); "" means a bare number."""

    name: str
    unit: str
    better: Better = Better.LOWER
    kind: Kind = Kind.TIME
    source: Source = Source.WALL

    @property
    def is_part_of_kernel_time(self) -> bool:
        """Whether it is the time of one category of ops: without such ops there is none."""
        return self.name.startswith(f"{KERNEL_TIME}_")

    def as_read(self, fraction: float | None) -> float | None:
        """Return a change or limit as a reader finds it by dividing two values.

        The gate reckons in time: half the throughput is 100 % worse, and reads as 50 % lower.
        """
        by_rate = self.compared_by_ratio and self.better is Better.HIGHER
        return fraction / (1 + fraction) if by_rate and fraction is not None else fraction

    @property
    def compared_by_ratio(self) -> bool:
        """Whether the gate compares this metric by ratio: such values are above zero."""
        kind = self.kind
        ratio = kind is Kind.TIME or kind is Kind.THROUGHPUT
        return ratio and self.better is not Better.EQUAL

    def differs_from(self, other: Metric) -> str | None:
        """Name the first part of the definition in which two metrics of one name differ.

        The source is not part of the definition: another source is another measurement of the
        same quantity, which the gate calls NOT_COMPARABLE.
        """
        if self.unit != other.unit:
            return "unit"
        if self.better is not other.better:
            return "better"
        if self.kind is not other.kind:
            return "kind"
        return None

    def part(self, name: str) -> str:
        """Return the part of the definition that ``differs_from`` named, as text."""
        return {"unit": self.unit, "better": self.better.value, "kind": self.kind.value}[name]
