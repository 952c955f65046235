"""What is collected of one test while it runs, until it is one observation."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, SupportsFloat, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import RuleError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.metric import (
    FIRST_CALL,
    THROUGHPUT_TIME,
    WALL_TIME,
    Better,
    Kind,
    Metric,
    Source,
    split_metric,
    told_twice,
    unrecorded,
)
from pytest_ttnn_perf.core.observation import (
    NO_ARTIFACT,
    Artifact,
    Asked,
    Limits,
    MetricObservation,
    Observation,
)
from pytest_ttnn_perf.core.settings import USUAL_PCC, PccLimits, left_out
from pytest_ttnn_perf.core.text import NANOSECONDS_IN, plain, quantity, text_of
from pytest_ttnn_perf.machine.host import host_load
from pytest_ttnn_perf.measure.instruments import Instruments

if TYPE_CHECKING:
    from enum import Enum

    from pytest_ttnn_perf.core.settings import TestSettings
    from pytest_ttnn_perf.measure.timing import Timings

    E = TypeVar("E", bound=Enum)

    from pytest_ttnn_perf.core.finding import HelperPcc
    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.observation import Conditions
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.measure.hardware import StatedHardware
    from pytest_ttnn_perf.measure.timing import Turn
    from pytest_ttnn_perf.measure.tokens import TokenLog


# The samples of one metric while a test runs, and what they become when it ends.

#: The name under which a limit for every timing is kept.
EVERY: Final = "*"


class Series(Struct):
    """A metric with the samples it has so far; none of them counts if some were ``lost``.

    ``origin`` is what told it, if that is a capture and not the test itself; ``capture`` names one
    that was there before the test. ``why_ungated`` is said of one that is not ``gated``. ``target``
    is a goal that the capture names, or that a helper of the test expects; the test's marker comes
    first. ``observed``: a helper told it, and not the test.
    """

    metric: Metric
    samples: list[float] = []
    warmup: list[float] = []
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


SECOND_CALL: Final = "second_call_time"


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


#: The origin of a metric that neither the test nor a file of it told.
OBSERVED: Final = "what the run observed itself"
_MEASURED_HERE: Final = (None, OBSERVED)
_OF_CHILDREN: Final = "the reports of processes that it started"


@dataclass(slots=True, repr=False)
class Recorder:
    """Keeps the metrics, facts and artifacts of one test.

    ``instruments`` are what it measures with; ``turn`` waits for other processes that measure at
    the same time. The test's set-up began at ``began_s``, by the clock. ``identity`` is what the
    test is filed under, where that is not its id.
    """

    test: str
    settings: TestSettings
    run: Settings
    instruments: Instruments = field(default_factory=Instruments)
    turn: Turn = field(default_factory=nullcontext)
    began_s: float = 0.0
    identity: str | None = None
    _series: SeriesTable = field(default_factory=SeriesTable)
    _facts: dict[str, Scalar] = field(default_factory=dict)
    _stated: StatedHardware | None = None
    _artifact: Artifact = NO_ARTIFACT
    _attached: set[Path] = field(default_factory=set)
    _problems: list[str] = field(default_factory=list)
    _host: Mapping[str, Scalar] = field(default_factory=dict)
    #: The tokens of a language model; None where the test told of none.
    _tokens: TokenLog | None = None
    #: Who asked for the test to be gated.
    asked: Asked | None = None
    #: Whether the test has started a profiled process of its own.
    profiles_itself: bool = False
    #: What helpers told of the run: the model, its batch size, the lengths of its sequences.
    described: dict[str, Scalar] = field(default_factory=dict)
    #: What PCC helpers told wrongly; None until one was called.
    helper_pccs: list[HelperPcc] | None = None
    #: How long we ourselves took inside the test.
    own_ns: int = 0
    #: How times are taken; None where nobody asks for that.
    conditions: dict[str, Conditions] | None = None
    _has_read_report: bool = False

    def accuracy(
        self,
        name: str,
        value: float,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        note: str | None = None,
    ) -> None:
        """Enter an accuracy with its limits; of several values, the worst counts."""
        better = Better.LOWER if at_least is None and at_most is not None else Better.HIGHER
        series = self._series.of(Metric(name, unit="", better=better, kind=Kind.ACCURACY))
        series.samples.append(value)
        series.tighten(at_least=at_least, at_most=at_most)
        # The note of the worst sample: it is the one that is judged and shown.
        worst = min(series.samples) if better is Better.HIGHER else max(series.samples)
        if not (value > worst if better is Better.HIGHER else value < worst):
            series.note = note

    def observed_pcc(self, name: str, value: float, *, at_least: float) -> None:
        """Enter a PCC that a helper of the project told, and the limit that it held it to."""
        self.accuracy(name, value, at_least=self._least(name, at_least))
        self._series[name].observed = True

    def _least(self, name: str, asked: float | None) -> float | None:
        """Return the limit of an accuracy; no PCC is let off lightly where limits are strict."""
        if self.run.limits is not PccLimits.STRICT or "pcc" not in name.lower():
            return asked
        return max(asked if asked is not None else USUAL_PCC, USUAL_PCC)

    def _attach(self, file: Path, origin: str, *choice: str | None) -> None:
        __tracebackhide__ = True
        if not self.instruments.takes_artifacts:
            return
        from pytest_ttnn_perf.core.finding import RegionChoice

        try:
            artifact: Artifact = wings.call(
                "read_attached", file, RegionChoice(*choice), began_s=self.began_s
            )
        except TtnnPerfError as error:
            # A mistake in the test, or in its files: where we found it helps nobody.
            raise error.with_traceback(None) from None
        self._attached.add(file.resolve())
        self._take(artifact, origin)

    def _take(self, artifact: Artifact, origin: str) -> None:
        """Add what an artifact tells; of several op tables, the first is kept."""
        __tracebackhide__ = True
        self._problems += self._series.take(artifact, origin)
        self._artifact = self._artifact.completed_by(artifact)

    def attach_reports_since(self, moment_s: float) -> None:
        """Take the reports that profiled processes of the test's own have left.

        Several are several samples, of one command that ran as often. Those that the test has
        attached itself are taken already; where a helper has read one, it knows what of it counts.
        """
        if self._has_read_report:
            return
        from pytest_ttnn_perf.measure.profilers import ops_reports_since

        for file in ops_reports_since(moment_s, os.environ, Path.cwd()):
            if file.resolve() not in self._attached:
                self._attach(file, _OF_CHILDREN, self.settings.region)

    def read_output(self, text: str) -> None:
        """Take what profilers printed in the output of this test."""
        self._take_at_end(self.instruments.read_output(text))

    def _take_at_end(self, artifact: Artifact, origin: str = OBSERVED) -> None:
        """Add what an artifact tells after the test has ended: it cannot raise there any more."""
        try:
            self._take(artifact, origin)
        except UsageError as error:
            self._problems.append(str(error))

    def whole_call(self, elapsed_ns: float, *, gated: bool) -> None:
        """Record the time of a test that does not use the fixture, without what we took of it.

        It is not gated where the test measures something itself: it holds compilation, loading and
        references, which is what its author left out.
        """
        why = "the test measures itself" if self.measured_itself else None
        if not gated and why is None and self.asked is Asked.PROJECT:
            why = "a whole call, which gate_call_time = true gates"
        call_time = metric_of("call_time", unit="ns", kind=Kind.TIME)
        series = self._series.of(call_time, gated=gated and not self.measured_itself)
        series.why_ungated = why
        series.samples.append(max(elapsed_ns - self.own_ns, 1))

    @property
    def told_nothing(self) -> bool:
        """Whether the test has recorded nothing through its fixture so far."""
        own = (s for s in self._series.values() if not s.observed and s.origin is None)
        return self._tokens is None and not any(own)

    @property
    def measured_itself(self) -> bool:
        """Whether the test has told anything but what it compared, or was seen to measure."""
        others = (s for s in self._series.values() if s.metric.kind is not Kind.ACCURACY)
        return self.profiles_itself or any(others)

    @property
    def gates_something(self) -> bool:
        """Whether a time, a rate or a count of the test is gated so far."""
        return any(
            series.gated and series.metric.kind is not Kind.ACCURACY
            for series in self._series.values()
        )

    def observed(
        self, metric: Metric, samples: Iterable[float], *, why_ungated: str | None = None
    ) -> Series:
        """Enter what a helper of the project measured; return its series.

        Raises:
            UsageError: the test has recorded another metric of that name.
        """
        series = self._series.of(metric, gated=why_ungated is None)
        series.why_ungated, series.observed = why_ungated, True
        series.samples.extend(samples)
        return series

    def series_of(self, name: str) -> Series | None:
        """Return what is recorded of a metric so far; None for nothing."""
        return self._series.get(name)

    def take_report(self, file: Path, artifact: Artifact) -> None:
        """Take what a helper has read from the report of a profiled process; not in a replay."""
        if not self.instruments.takes_artifacts:
            return
        self._has_read_report = True
        self._attached.add(file.resolve())
        self._take_at_end(artifact, _OF_CHILDREN)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Let nothing that goes wrong in observing a helper change what the helper does."""
        start_ns = perf_counter_ns()
        try:
            yield
        except Exception as error:  # noqa: BLE001 (the values are those of a test: anything)
            self._problems.append(f"what a helper told could not be recorded: {text_of(error)}")
        finally:
            self.own_ns += perf_counter_ns() - start_ns

    def finish(self, *, raised: str | None = None) -> Observation:
        """Return what was observed until now; ``raised`` is the error that ended the test."""
        self._series.derive_rate(self.settings.batch)
        if self._tokens is not None:
            self._enter_tokens(self._tokens)
        names = dict.fromkeys((self.test, self.identity or self.test))
        self._take_at_end(self.instruments.end(tuple(names), self.settings.region))
        metrics, problems = observed_metrics(self._series, self.settings)
        observation = Observation(
            test=self.test,
            metrics=metrics,
            facts={**self._artifact.facts, **self._facts},
            ops=self._artifact.ops,
            environment=self._environment(),
            waived=dict(self.settings.waive),
            problems=() if raised else (*self._problems, *problems),
            raised=raised,
            left_out=left_out(self.run),
            has_kernels=self._artifact.kernels is not None,
            sweep=self.settings.sweep,
            asked=self.asked,
            profiles_itself=self.profiles_itself,
            attached=self._files_below(),
        )
        observation = self._located(observation)
        if self.conditions is not None:
            observation = replace(observation, conditions=self.conditions)
        if self._tokens is not None:
            from pytest_ttnn_perf.measure.tokens import with_rooflines

            observation = with_rooflines(observation, self._tokens)
        return self._checked(observation)

    def _files_below(self) -> tuple[str, ...]:
        """Return what was attached; where the user keeps other files is nobody's business."""
        if not self._attached:
            return ()
        here = Path.cwd().resolve()
        below = (file.relative_to(here) for file in self._attached if file.is_relative_to(here))
        return tuple(sorted(file.as_posix() for file in below))

    def _located(self, observation: Observation) -> Observation:
        """Return an observation with what is known of the hardware, whoever tells it."""
        artifact = self._artifact
        complete = self.instruments.complete(observation, artifact)
        told = artifact.arch or artifact.board or artifact.devices
        if self._stated is None and not (told and self.instruments.takes_artifacts):
            return complete
        from pytest_ttnn_perf.measure.hardware import with_hardware

        return with_hardware(complete, artifact, self._stated, os.environ)

    def _enter_tokens(self, tokens: TokenLog) -> None:
        """Add the metrics of tokens, before all others: they are what such a test is about."""
        series = SeriesTable()
        tokens.enter(series, self.settings.gate)
        twice = [name for name in series if name in self._series]
        self._problems += [
            f"{name} is a metric of tokens; record yours under another name" for name in twice
        ]
        others = {name: own for name, own in self._series.items() if name not in series}
        self._series = SeriesTable({**series, **others})
        self._facts = {**tokens.facts(), **self._facts}

    def _checked(self, observation: Observation) -> Observation:
        """Ask the checklist; what it cannot be asked is a mistake in the settings, or ours."""
        from pytest_ttnn_perf.gate.checklist import check_test

        try:
            clock = self.instruments.by_the_clock
            told = None if self.helper_pccs is None else tuple(self.helper_pccs)
            return check_test(
                observation, self._artifact, self.run, by_the_clock=clock, helper_pccs=told
            )
        except (UsageError, RuleError) as error:
            return replace(observation, problems=(*observation.problems, str(error)))

    def _environment(self) -> Mapping[str, Scalar]:
        """Return what is recorded beside the results, and never compared."""
        batch = self.settings.batch
        around = {**(self._host or self._load()), **self._artifact.environment, **self.described}
        return around if batch is None else {**around, "batch": batch}

    def _load(self) -> Mapping[str, Scalar]:
        """Look what else the machine does, where its own times count."""
        times = [s for s in self._series.values() if s.metric.compared_by_ratio]
        # Neither what a simulator counts nor what a capture says depends on the load of this host.
        own = [s for s in times if s.metric.source is not Source.SIM and s.origin in _MEASURED_HERE]
        matters = self.instruments.by_the_clock and (own or not times)
        return host_load(os.environ) if matters else {}
