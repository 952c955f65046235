"""Series: one metric of one test on one hardware key, run after run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.hardware import Hardware
from pytest_ttnn_perf.records.metric import median
from pytest_ttnn_perf.records.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pytest_ttnn_perf.history.runs import Reading, RecordedRun
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.metric import Metric

    Setting = tuple[tuple[str, Scalar], ...]


class Point(NamedTuple):
    """What one run says; ``number`` is that of the run among all runs, in their order."""

    number: int
    run: RecordedRun
    reading: Reading


@dataclass(frozen=True, slots=True)
class Series:
    """The numbers of one metric of a test that can be compared, in the order of their runs.

    ``setting`` is the configuration of the test: with another one, another series begins.
    """

    test: str
    metric: Metric
    key: str
    setting: Setting
    points: tuple[Point, ...]

    @property
    def values(self) -> list[float]:
        """The numbers alone."""
        return [point.reading.value for point in self.points]

    @property
    def last(self) -> Point:
        """The newest number."""
        return self.points[-1]

    @property
    def gated(self) -> bool:
        """Whether the last run judged it by itself."""
        return self.last.reading.gated and not self.last.reading.explains

    @property
    def by_ratio(self) -> bool:
        """Whether its changes are ratios: times and throughputs, all above zero."""
        return self.metric.compared_by_ratio and min(self.values) > 0

    @property
    def since_accept(self) -> float | None:
        """How much more the last runs have than the baseline that was last accepted (0.05 = 5 %).

        None where the last run has no baseline to compare with.
        """
        verdict = self.last.reading.verdict
        if verdict is None or not verdict.centre:
            return None
        return median(self.values[-LATEST:]) / verdict.centre - 1


#: So many runs say where a series is now.
LATEST: Final = 3
#: Outcomes whose number becomes what the next one is compared with, once it is stored.
_ACCEPTING: Final = frozenset({Outcome.REGRESSED, Outcome.IMPROVED, Outcome.SHIFTED})


def series_of(
    runs: Sequence[RecordedRun], *, metric: str | None = None, across_hosts: bool = False
) -> list[Series]:
    """Return the series of runs that are in order: those of one metric, if it is named.

    Where keys have the host in them, each host has series of its own, unless ``across_hosts``.
    """
    found: dict[tuple[str, Metric, str, Setting], list[Point]] = defaultdict(list)
    for number, run in enumerate(runs):
        for reading in run.readings:
            if metric is None or reading.metric.name == metric:
                key = _without_host(reading.key) if across_hosts else reading.key
                identity = (reading.test, reading.metric, key, reading.setting)
                found[identity].append(Point(number, run, reading))
    return [Series(*identity, tuple(points)) for identity, points in found.items()]


@cache
def _without_host(key: str) -> str:
    """Return the key that hosts of one kind share.

    >>> _without_host("wormhole_b0-n150-1x1-host_lab7"), _without_host("anything else")
    ('wormhole_b0-n150-1x1', 'anything else')
    """
    hardware = Hardware.from_key(key)
    return replace(hardware, host=None).key if hardware and hardware.host else key


def chosen(series: Sequence[Series], tests: Collection[str]) -> list[Series]:
    """Return the series of some tests, by test, metric and key, the longest lived last."""
    kept = (each for each in series if each.test in tests)
    return sorted(kept, key=lambda s: (s.test, s.metric.name, s.key, s.last.number))


def mark_of(point: Point) -> str:
    """Say what a run did to the baseline: it was accepted, or stored for the first time."""
    reading = point.reading
    if not reading.written or reading.verdict is None:
        return ""
    if reading.verdict.outcome in _ACCEPTING:
        return "accepted"
    return "" if reading.verdict.outcome is Outcome.WITHIN else "stored"


def change(before: float | None, after: float) -> float | None:
    """Return how much more there is than before (0.05 = 5 %); None for a change from nothing."""
    return None if not before else (after - before) / abs(before)


_BARS: Final = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """Draw numbers in at most ``width`` characters; where there are more, each stands for several.

    >>> sparkline([1.0, 1.0, 2.0, 3.0], 8), sparkline([5.0, 5.0], 8), sparkline(range(100), 4)
    ('▁▁▅█', '▄▄', '▁▃▆█')
    """
    count = min(len(values), width)
    bounds = [round(place * len(values) / count) for place in range(count + 1)] if count else []
    drawn = [median(values[begin:end]) for begin, end in pairwise(bounds)]
    low, high = min(drawn, default=0.0), max(drawn, default=0.0)
    if low == high:
        return _BARS[3] * count
    # Noise of a tenth of a per cent is no mountain range.
    span = max(high - low, abs(high) * 0.01)
    return "".join(_BARS[round((value - low) / span * (len(_BARS) - 1))] for value in drawn)
