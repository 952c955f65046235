"""The samples of one metric while a test runs, and what they become when it ends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final, SupportsFloat, TypeVar

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import NANOSECONDS_IN, plain, quantity
from pytest_ttnn_perf.records.metric import (
    COUNTED_IN_GRAPHS,
    THROUGHPUT_TIME,
    WALL_TIME,
    Better,
    Kind,
    Metric,
    Source,
    split_metric,
)
from pytest_ttnn_perf.records.observation import Limits, MetricObservation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from enum import Enum

    from pytest_ttnn_perf.measure.timing import Timings
    from pytest_ttnn_perf.records.observation import Artifact
    from pytest_ttnn_perf.records.settings import TestSettings

    E = TypeVar("E", bound=Enum)


#: The name under which a limit for every timing is kept.
EVERY: Final = "*"


@dataclass(slots=True)
class Series:
    """A metric with the samples it has so far; none of them counts if some were ``lost``.

    ``origin`` is what told it, if that is a capture and not the test itself; ``capture`` names one
    that was there before the test. ``why_ungated`` is said of one that is not ``gated``. ``target``
    is a goal that the capture names, or that a helper of the test expects; the test's marker comes
    first. ``observed``: a helper told it, and not the test.
    """

    metric: Metric
    samples: list[float] = field(default_factory=list)
    warmup: list[float] = field(default_factory=list)
    gated: bool = True
    note: str | None = None
    lost: str | None = None
    origin: str | None = None
    capture: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    why_ungated: str | None = None
    target: float | None = None
    observed: bool = False

    def tighten(self, *, at_least: float | None, at_most: float | None) -> None:
        """Keep the stricter of the limits given so far."""
        if at_least is not None:
            self.at_least = max(at_least, self.at_least if self.at_least is not None else at_least)
        if at_most is not None:
            self.at_most = min(at_most, self.at_most if self.at_most is not None else at_most)


def metric_of(
    name: str,
    *,
    unit: str,
    better: str | None = None,
    kind: str | Kind | None = None,
    source: Source = Source.WALL,
) -> Metric:
    """Return the metric that the author of a test describes; what is not said follows the unit."""
    if not isinstance(name, str) or not name.strip():
        message = f"a metric's name is a non-empty string, found {name!r}"
        raise UsageError(message)
    chosen = kind if isinstance(kind, Kind) else _choice(name, "kind", kind, Kind)
    chosen = chosen or Kind.of_unit(unit)
    if chosen is None and better is None and unit:
        message = (
            f"{name}: the unit {unit!r} does not say which way is better; say better= or kind="
        )
        raise UsageError(message)
    chosen = chosen or Kind.TIME
    direction = _choice(name, "better", better, Better) or chosen.usual_direction
    return Metric(plain(name), plain(unit), better=direction, kind=chosen, source=source)


def numbers_of(name: str, value_or_samples: object) -> list[float]:
    """Return the numbers a user recorded; anything that is not a number is refused by place."""
    single = isinstance(value_or_samples, (str, bytes)) or getattr(value_or_samples, "ndim", 1) == 0
    if isinstance(value_or_samples, Iterable) and not single:
        samples = list(value_or_samples)
    else:
        samples = [value_or_samples]
    return [_number(name, index, sample) for index, sample in enumerate(samples)]


def unrecorded(option: str, name: str) -> str:
    """Say that an option of the marker names a metric which the test did not record."""
    return f"{option} names {name}, which the test did not record"


def observed_metrics(
    series: Mapping[str, Series], settings: TestSettings
) -> tuple[dict[str, MetricObservation], list[str]]:
    """Return the finished metrics with their limits, and what is wrong with the marker."""
    problems = [
        f"{unrecorded(option, name)} (recorded: {_listed(series)})"
        for option, limits in (
            ("tolerance", settings.tolerance),
            ("max_regression", settings.max_regression),
            ("target", settings.target),
        )
        for name in limits
        if name != EVERY and name not in series
    ]
    known = {*series, *(split_metric(name)[0] for name in series)} if settings.gate else set()
    problems += [
        f"{unrecorded('gate', name)} (recorded: {_listed(series)})"
        for name in settings.gate
        if name not in known
    ]
    observed = {}
    for name, item in series.items():
        problems += _careless_fractions(item.metric, settings)
        target = _target(item.metric, settings.target.get(name))
        if target is None and name in settings.target:
            wish = settings.target[name]
            example = f"10 {item.metric.unit}".strip()
            problems.append(f"target {name}: expected e.g. {example!r}, found {wish!r}")
        observed[name] = _observed(item, settings, target=target)
    return observed, problems


def _careless_fractions(metric: Metric, settings: TestSettings) -> Iterator[str]:
    """Name limits of 100 % and more of a time or throughput: 5 was meant as 5 %."""
    for option, limits in (
        ("tolerance", settings.tolerance),
        ("max_regression", settings.max_regression),
    ):
        limit = limits.get(metric.name, limits.get(EVERY, 0.0))
        if metric.compared_by_ratio and limit >= 1:
            expected = "a fraction below 1 (0.05 is 5 %)"
            yield f"{option} {metric.name}: expected {expected}, found {limit}"


def _observed(item: Series, settings: TestSettings, *, target: float | None) -> MetricObservation:
    # A bare number is meant for timings: 5 % of a PCC or of a count is another matter. So is a part
    # of a time: with a limit of its own it would be judged beside the whole.
    whole = item.metric.compared_by_ratio and not item.metric.totals
    every = EVERY if whole else item.metric.name
    name = item.metric.name
    return MetricObservation(
        metric=item.metric,
        samples=() if item.lost else tuple(item.samples),
        warmup=tuple(item.warmup),
        limits=Limits(
            tolerance=settings.tolerance.get(name, settings.tolerance.get(every)),
            max_regression=settings.max_regression.get(name, settings.max_regression.get(every)),
            at_least=item.at_least,
            at_most=item.at_most,
            target=item.target if target is None else target,
            alone=any(asked in {name, split_metric(name)[0]} for asked in settings.gate),
        ),
        gated=item.gated,
        note=item.lost or item.note,
        capture=item.capture,
        why_ungated=None if item.gated else item.why_ungated,
    )


def _target(metric: Metric, wish: str | float | None) -> float | None:
    return quantity(wish, unit=metric.unit) if isinstance(wish, str) else wish


def _choice(name: str, option: str, value: str | None, choices: type[E]) -> E | None:
    if value is None:
        return None
    for choice in choices:
        if choice.value == value:
            return choice
    known = ", ".join(str(choice.value) for choice in choices)
    message = f"{name}: {option} is one of {known}, found {value!r}"
    raise UsageError(message)


def _number(name: str, index: int, sample: object) -> float:
    if isinstance(sample, (str, bytes, bool)) or not isinstance(sample, SupportsFloat):
        message = f"{name}: sample {index} is not a number: {sample!r}"
        raise UsageError(message)
    if isinstance(sample, int):
        return int.__pos__(sample)  # of a class of its own, it might show anything
    value = float(sample)
    return value if math.isfinite(value) else math.nan


def _listed(series: Mapping[str, Series]) -> str:
    return ", ".join(series) or "nothing"


FIRST_CALL: Final = "first_call_time"
SECOND_CALL: Final = "second_call_time"
#: What compiling a pipeline takes, apart from its rounds.
COMPILE: Final = "compile_time"


def told_twice(names: Sequence[str], first: str, second: str) -> str:
    """Say that two captures of one test tell the same metrics, and what to do."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    told = f"{names[0]}{more}: given by {first} and by {second}; leave out"
    if any(name.endswith(of_graph) for name in names for of_graph in COUNTED_IN_GRAPHS):
        return f"{told} an attach: the run captures the graph of a model that it measures itself"
    return f"{told} one of them: an attach, or the profiler with --ttnn-perf-profiler off"


class SeriesTable(dict[str, Series]):
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

    def refuse_second(self, name: str) -> None:
        """Refuse to measure under a name that is taken.

        Raises:
            UsageError: it is.
        """
        __tracebackhide__ = True
        if name in self:
            message = f"{name} was measured already in this test; give this one a name= of its own"
            raise UsageError(message)

    def time(self, name: str, timings: Timings, source: Source) -> None:
        """Make room for a timing before it starts, so that what was measured is never lost."""
        __tracebackhide__ = True
        self.refuse_second(name)
        series = self.of(metric_of(name, unit="ns", kind=Kind.TIME, source=source))
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
            series.origin, series.capture = origin, observed.capture
            series.gated |= observed.gated
            series.samples.extend(observed.samples)
            series.note = observed.note
            series.why_ungated, series.target = observed.why_ungated, observed.limits.target
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
        # A test may record the time itself, in its own unit.
        second = 1e9 / NANOSECONDS_IN.get(timed.metric.unit, 1.0)
        metric = metric_of("samples_per_second", unit="samples/s")
        rates = [batch * second / sample if sample else math.nan for sample in timed.samples]
        self[metric.name] = Series(metric, rates)
