"""The series of a test by their names, and how things are entered into them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.model.metric import THROUGHPUT_TIME, WALL_TIME, Kind, Metric
from pytest_ttnn_perf.workflow.series import Series, metric_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.measure.sampling import Timings
    from pytest_ttnn_perf.model.artifact import Artifact

FIRST_CALL: Final = "first_call_time"
SECOND_CALL: Final = "second_call_time"


def told_twice(names: Sequence[str], first: str, second: str) -> str:
    """Say that two captures of one test tell the same metrics, and what to do."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (
        f"{names[0]}{more}: told by {first} and by {second}; leave out one of them: an attach, or "
        "the profiler with --ttnn-perf-profiler off"
    )


class Book(dict[str, Series]):
    """What a test has recorded so far."""

    def of(self, metric: Metric, *, gated: bool = True) -> Series:
        """Return the series of a metric, new if it is the first time.

        Raises:
            UsageError: it was recorded before, and defined otherwise.
        """
        __tracebackhide__ = True
        series = self.setdefault(metric.name, Series(metric, gated=gated))
        part = metric.differs_from(series.metric)
        if part:
            then, now = series.metric.part(part), metric.part(part)
            message = f"{metric.name} was recorded with {part} {then!r} before, now with {now!r}"
            raise UsageError(message)
        return series

    def time(self, name: str, timings: Timings) -> None:
        """Make room for a timing before it starts, so that what was measured is never lost."""
        __tracebackhide__ = True
        if name in self:
            message = f"{name} was measured already in this test; give this one a name= of its own"
            raise UsageError(message)
        series = self.of(metric_of(name, unit="ns", kind=Kind.TIME))
        series.samples, series.warmup = timings.samples_ns, timings.warmup_ns

    def first_calls(self, calls_ns: Iterable[float], *, gates: tuple[bool, bool]) -> None:
        """Enter the first two calls of a model, each gated or not."""
        for name, gated, elapsed in zip((FIRST_CALL, SECOND_CALL), gates, calls_ns, strict=False):
            series = self.of(metric_of(name, unit="ns", kind=Kind.TIME), gated=gated)
            series.samples.append(elapsed)

    def take(self, artifact: Artifact, origin: str) -> Iterator[str]:
        """Enter the metrics of an artifact; yield what is wrong with that.

        What another capture has told, or the test itself, stays as it is: the middle of two
        captures is the time of neither.
        """
        __tracebackhide__ = True
        doubled: dict[str, list[str]] = {}
        for observed in artifact.metrics:
            known = self.get(observed.metric.name)
            if known is not None and known.origin != origin:
                doubled.setdefault(known.origin or "record", []).append(observed.metric.name)
                continue
            series = self.of(observed.metric, gated=observed.gated)
            series.origin = origin
            series.gated |= observed.gated
            series.samples.extend(observed.samples)
            series.note = observed.note
            # What one artifact lost, another does not make up for.
            series.lost = series.lost or (None if observed.samples else observed.note)
            series.tighten(at_least=observed.limits.at_least, at_most=observed.limits.at_most)
        for other, names in doubled.items():
            yield told_twice(names, other, origin)

    def derive_rate(self, batch: int | None) -> None:
        """Turn the time of a batch into a throughput; overlapped calls tell it best."""
        timed = self.get(THROUGHPUT_TIME) or self.get(WALL_TIME)
        if batch is None or timed is None or "samples_per_second" in self:
            return
        metric = metric_of("samples_per_second", unit="samples/s")
        rates = [batch * 1e9 / sample if sample else math.nan for sample in timed.samples]
        self[metric.name] = Series(metric, rates)
