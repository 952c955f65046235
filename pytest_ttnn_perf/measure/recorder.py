"""Metrics, facts and artifacts of a running test, as one observation."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, SupportsFloat, TypeVar

from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf.core.finding import Subject
from pytest_ttnn_perf.core.metric import (
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
    Limits,
    MetricObservation,
    Observation,
    Requester,
)
from pytest_ttnn_perf.core.settings import USUAL_PCC, Checklist, PccLimits, left_out
from pytest_ttnn_perf.core.text import NANOSECONDS_IN, plain, quantity, text_of
from pytest_ttnn_perf.machine.environment import host_load
from pytest_ttnn_perf.measure.instruments import Instruments

if TYPE_CHECKING:
    from enum import Enum

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.observation import Artifact, End
    from pytest_ttnn_perf.core.settings import Settings, TestSettings
    from pytest_ttnn_perf.measure.hardware import StatedHardware
    from pytest_ttnn_perf.measure.helper_families import HelperPcc
    from pytest_ttnn_perf.measure.timing import Turn
    from pytest_ttnn_perf.measure.tokens import TokenLog

    E = TypeVar("E", bound=Enum)


#: The name under which a limit for every timing is kept.
EVERY: Final = "*"
#: The origin of a metric that neither the test nor a file of it told.
OBSERVED: Final = "what the run observed itself"
_OF_CHILDREN: Final = "the reports of processes that it started"


class Series:
    """A metric with its samples; if some were ``lost``, none counts.

    ``origin`` is the capture that it comes from, if it is not the test itself; ``capture`` names
    one that was there before the test. ``why_ungated`` is said of one that is not ``gated``.
    ``target`` is a goal that the capture names, or that a helper of the test expects; the test's
    marker comes first. ``observed``: it comes from a helper, and not from the test.
    """

    note: str | None = None
    lost: str | None = None
    origin: str | None = None
    capture: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    why_ungated: str | None = None
    target: float | None = None
    observed = False

    def __init__(self, metric: Metric, *, gated: bool = True) -> None:
        self.metric, self.gated = metric, gated
        self.samples: list[float] = []
        self.warmup: list[float] = []

    def tighten(self, *, at_least: float | None, at_most: float | None) -> None:
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
    """Return the metric that an author describes; the rest follows the unit."""
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


def _choice(name: str, option: str, value: str | None, choices: type[E]) -> E | None:
    if value is None:
        return None
    for choice in choices:
        if choice.value == value:
            return choice
    known = ", ".join(str(choice.value) for choice in choices)
    message = f"{name}: {option} is one of {known}, found {value!r}"
    raise UsageError(message)


def numbers_of(name: str, value_or_samples: object) -> list[float]:
    single = isinstance(value_or_samples, (str, bytes)) or getattr(value_or_samples, "ndim", 1) == 0
    if isinstance(value_or_samples, Iterable) and not single:
        samples = list(value_or_samples)
    else:
        samples = [value_or_samples]
    numbers: list[float] = []
    for index, sample in enumerate(samples):
        if isinstance(sample, (str, bytes, bool)) or not isinstance(sample, SupportsFloat):
            message = f"{name}: sample {index} is not a number: {sample!r}"
            raise UsageError(message)
        if isinstance(sample, int):
            numbers.append(int.__pos__(sample))  # of a class of its own, it might show anything
        else:
            value = float(sample)
            numbers.append(value if math.isfinite(value) else math.nan)
    return numbers


def observed_metrics(
    series: Mapping[str, Series], settings: TestSettings
) -> tuple[dict[str, MetricObservation], list[str]]:
    listed = ", ".join(series) or "nothing"
    fractions = {"tolerance": settings.tolerance, "max_regression": settings.max_regression}
    problems = [
        f"{unrecorded(option, name)} (recorded: {listed})"
        for option, limits in (*fractions.items(), ("target", settings.target))
        for name in limits
        if name != EVERY and name not in series
    ]
    known = {*series, *(split_metric(name)[0] for name in series)}
    problems += [
        f"{unrecorded('gate', name)} (recorded: {listed})"
        for name in settings.gate
        if name not in known
    ]
    observed = {}
    for name, item in series.items():
        metric = item.metric
        for option, limits in fractions.items():  # 5 was meant as 5 %
            limit = limits.get(name, limits.get(EVERY, 0.0))
            if metric.compared_by_ratio and limit >= 1:
                expected = "a fraction below 1 (0.05 is 5 %)"
                problems.append(f"{option} {name}: expected {expected}, found {limit}")
        wish = settings.target.get(name)
        target = quantity(wish, unit=metric.unit) if isinstance(wish, str) else wish
        if target is None and wish is not None:
            example = f"10 {metric.unit}".strip()
            problems.append(f"target {name}: expected e.g. {example!r}, found {wish!r}")
        observed[name] = _finished(item, settings, target)
    return observed, problems


def _finished(item: Series, settings: TestSettings, target: float | None) -> MetricObservation:
    name = item.metric.name
    # A bare number is meant for timings: 5 % of a PCC or of a count is another matter. So is a part
    # of a time: with a limit of its own it would be judged beside the whole.
    every = EVERY if item.metric.compared_by_ratio and not item.metric.totals else name
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


class SeriesTable(dict[str, Series]):
    """The metrics that a test has recorded so far."""

    def of(self, metric: Metric, *, gated: bool = True) -> Series:
        """Return the series of a metric; the first time, a new one.

        Raises:
            UsageError: it was recorded before, and defined otherwise.
        """
        series = self.setdefault(metric.name, Series(metric, gated=gated))
        part = metric.differs_from(series.metric)
        if part:
            then, now = series.metric.part(part), metric.part(part)
            message = f"{metric.name} was recorded with {part} {then!r} before, now with {now!r}"
            raise UsageError(message)
        return series

    def time(self, name: str, source: Source = Source.WALL, *, gated: bool = True) -> Series:
        return self.of(metric_of(name, unit="ns", kind=Kind.TIME, source=source), gated=gated)

    def refuse_second(self, name: str) -> None:
        """Refuse to measure under a name that is taken.

        Raises:
            UsageError: it is.
        """
        if name in self:
            message = f"{name} was measured already in this test; give this one a name= of its own"
            raise UsageError(message)

    def take(self, artifact: Artifact, origin: str) -> list[str]:
        """Enter the metrics of an artifact; return what is wrong with that.

        What another capture has told, or the test itself, stays as it is: the middle of two
        captures is the time of neither.
        """
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
        return [told_twice(names, other, origin) for other, names in doubled.items()]

    def derive_rate(self, batch: int | None) -> None:
        timed = self.get(THROUGHPUT_TIME) or self.get(WALL_TIME)
        if batch is None or timed is None or "samples_per_second" in self:
            return
        # A test may record the time itself, in its own unit.
        second = 1e9 / NANOSECONDS_IN.get(timed.metric.unit, 1.0)
        metric = metric_of("samples_per_second", unit="samples/s")
        rates = [batch * second / sample if sample else math.nan for sample in timed.samples]
        self.of(metric).samples = rates


class Recorder:
    """Keeps the metrics, facts and artifacts of one test.

    ``instruments`` are what it measures with.
    """

    #: When the test's set-up began, by the clock.
    began_s = 0.0
    #: What the test is filed under, where that is not its id.
    identity: str | None = None

    def __init__(
        self,
        test: str,
        settings: TestSettings,
        run: Settings,
        instruments: Instruments | None = None,
    ) -> None:
        self.test, self.settings, self.run = test, settings, run
        self.instruments = instruments or Instruments()
        #: Waits for other processes that measure at the same time.
        self.turn: Turn = nullcontext()
        #: All captures of the test as one.
        self.artifact = NO_ARTIFACT
        #: Who asked for the test to be gated.
        self.asked: Requester | None = None
        #: Whether the test has started a profiled process of its own.
        self.profiles_itself = False
        #: Whether the test has called a helper that measures.
        self.recognised = False
        #: The run as helpers describe it: the model, its batch size, the lengths of its sequences.
        self.described: dict[str, Scalar] = {}
        #: Wrong results of PCC helpers; None until one was called.
        self.helper_pccs: list[HelperPcc] | None = None
        #: How long we ourselves took inside the test.
        self.own_ns = 0
        #: How times are taken; None where it is not recorded.
        self.conditions: dict[str, dict[str, Any]] | None = None
        self._series = SeriesTable()
        self._facts: dict[str, Scalar] = {}
        self._stated: StatedHardware | None = None
        self._attached: set[Path] = set()
        self._problems: list[str] = []
        self._host: Mapping[str, Scalar] = {}
        #: The tokens of a language model; None without any.
        self._tokens: TokenLog | None = None
        self._has_read_report = False

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
        self.accuracy(name, value, at_least=self._least(name, at_least))
        self._series[name].observed = True

    def _least(self, name: str, asked: float | None) -> float | None:
        if self.run.limits is not PccLimits.STRICT or "pcc" not in name.lower():
            return asked
        return max(asked if asked is not None else USUAL_PCC, USUAL_PCC)

    def _attach(
        self,
        file: Path,
        origin: str,
        region: str | None,
        start: str | None = None,
        end: str | None = None,
    ) -> None:
        if not self.instruments.takes_artifacts:
            return
        try:
            began_s = self.began_s
            artifact = wings.captures.read_attached(file, region, start, end, began_s=began_s)
        except TtnnPerfError as error:
            # A mistake in the test, or in its files: our own frames help nobody.
            raise error.with_traceback(None) from None
        self._attached.add(file.resolve())
        self._take(artifact, origin)

    def _take(self, artifact: Artifact, origin: str) -> None:
        """Add an artifact; of several op tables, the first is kept."""
        self._problems += self._series.take(artifact, origin)
        self.artifact = self.artifact.completed_by(artifact)

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

    def read_output(self, text: str, file: Path | None = None) -> None:
        """Take what tt-lang has printed, which a ``file`` keeps."""
        self._attached |= set() if file is None else {file}
        self._take_at_end(self.instruments.read_output(text))

    def take_report(self, file: Path, artifact: Artifact) -> None:
        """Take the report that a helper has read; not in a replay."""
        if self.instruments.takes_artifacts:
            self._has_read_report = True
            self._attached.add(file.resolve())
            self._take_at_end(artifact, _OF_CHILDREN)

    def _take_at_end(self, artifact: Artifact, origin: str = OBSERVED) -> None:
        """Add an artifact after the test has ended, when nothing may raise."""
        try:
            self._take(artifact, origin)
        except UsageError as error:
            self._problems.append(str(error))

    def whole_call(self, elapsed_ns: float, *, gated: bool) -> None:
        """Record the time of a test without the fixture, without our share.

        It is not gated where the test measures something itself: it holds compilation, loading and
        references, which is what its author left out.
        """
        why = "the test measures itself" if self.measured_itself else None
        if not gated and why is None and self.asked is Requester.PROJECT:
            why = "a whole call, which gate_call_time = true gates"
        series = self._series.time("call_time", gated=gated and not self.measured_itself)
        series.why_ungated = why
        series.samples.append(max(elapsed_ns - self.own_ns, 1))

    @property
    def told_nothing(self) -> bool:
        """True if the test has recorded nothing through its fixture so far."""
        own = (s for s in self._series.values() if not s.observed and s.origin is None)
        return self._tokens is None and not any(own)

    @property
    def measured_itself(self) -> bool:
        """True if the test recorded more than accuracies, or profiles itself."""
        others = (s for s in self._series.values() if s.metric.kind is not Kind.ACCURACY)
        return self.profiles_itself or any(others)

    @property
    def gates_something(self) -> bool:
        return any(s.gated and s.metric.kind is not Kind.ACCURACY for s in self._series.values())

    def observed(
        self, metric: Metric, samples: Iterable[float], *, why_ungated: str | None = None
    ) -> Series:
        """Enter the measurement of a helper; return its series.

        Raises:
            UsageError: the test has recorded another metric of that name.
        """
        series = self._series.of(metric, gated=why_ungated is None)
        series.why_ungated, series.observed = why_ungated, True
        series.samples.extend(samples)
        return series

    def series_of(self, name: str) -> Series | None:
        return self._series.get(name)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Let no error in observing a helper change what the helper does."""
        start_ns = perf_counter_ns()
        try:
            yield
        except Exception as error:  # noqa: BLE001 (the values are those of a test: anything)
            self._problems.append(f"what a helper told could not be recorded: {text_of(error)}")
        finally:
            self.own_ns += perf_counter_ns() - start_ns

    def finish(self, ended: End | None = None) -> Observation:
        self._series.derive_rate(self.settings.batch)
        if self._tokens is not None:
            self._enter_tokens(self._tokens)
        names = dict.fromkeys((self.test, self.identity or self.test))
        self._take_at_end(self.instruments.end(tuple(names), self.settings.region))
        metrics, problems = observed_metrics(self._series, self.settings)
        artifact = self.artifact
        here = Path.cwd().resolve() if self._attached else Path()
        # Where the user keeps other files is nobody's business.
        below = (file.relative_to(here) for file in self._attached if file.is_relative_to(here))
        environment = {**(self._host or self._load()), **artifact.environment, **self.described}
        if self.settings.batch is not None:
            environment["batch"] = self.settings.batch
        observation = Observation(
            test=self.test,
            metrics=metrics,
            facts={**artifact.facts, **self._facts},
            ops=artifact.ops,
            environment=environment,
            waived=dict(self.settings.waive),
            problems=() if ended else (*self._problems, *problems),
            ended=ended,
            left_out=left_out(self.run),
            has_kernels=artifact.kernels is not None,
            sweep=self.settings.sweep,
            asked=self.asked,
            profiles_itself=self.profiles_itself,
            attached=tuple(sorted(file.as_posix() for file in below)),
        )
        observation = self.instruments.complete(observation, artifact)
        is_known = artifact.arch or artifact.board or artifact.devices
        if self._stated is not None or (is_known and self.instruments.takes_artifacts):
            from pytest_ttnn_perf.measure.hardware import with_hardware

            observation = with_hardware(observation, artifact, self._stated, os.environ)
        if self.conditions is not None:
            observation = replace(observation, conditions=self.conditions)
        return observation

    def _enter_tokens(self, tokens: TokenLog) -> None:
        """Add the metrics of tokens before all others."""
        series = SeriesTable()
        tokens.enter(series, self.settings.gate)
        twice = [name for name in series if name in self._series]
        self._problems += [
            f"{name} is a metric of tokens; record yours under another name" for name in twice
        ]
        others = {name: own for name, own in self._series.items() if name not in series}
        self._series = SeriesTable({**series, **others})
        self._facts = {**tokens.facts(), **self._facts}

    def _load(self) -> Mapping[str, Scalar]:
        """Return the load of the machine, where its own times count."""
        times = [s for s in self._series.values() if s.metric.compared_by_ratio]
        # Neither what a simulator counts nor what a capture says depends on the load of this host.
        own = (s.metric.source is not Source.SIM and s.origin in {None, OBSERVED} for s in times)
        told = any(s.origin is None for s in self._series.values())
        matters = self.instruments.by_the_clock and (any(own) or (not times and told))
        return host_load(os.environ) if matters else {}


def check_test(
    observation: Observation,
    artifact: Artifact,
    settings: Settings,
    *,
    by_the_clock: bool,
    helper_pccs: tuple[HelperPcc, ...] | None = None,
) -> Observation:
    """Add the findings on a test that has ended, and its bottleneck.

    ``by_the_clock``: it was measured in a pass that takes wall times. ``helper_pccs`` are the wrong
    results of helpers; None where it called none.

    Raises:
        UsageError: the settings name a rule or limit that does not exist.
    """
    if settings.checklist is Checklist.OFF or observation.ended is not None:
        return observation
    variables: tuple[object, ...] | None = None
    if by_the_clock:  # they are variables of ttnn's own
        variables = ()
        if "ttnn" in sys.modules:
            from pytest_ttnn_perf.machine.inspection import conflicts

            variables = conflicts(os.environ)
    subject = Subject(
        ops=artifact.table,
        report=artifact.report,
        kernels=artifact.kernels,
        observation=observation,
        facts=observation.device_facts,
        conflicts=variables,
        helper_pccs=helper_pccs,
    )
    return wings.findings.check_observation(observation, subject, settings)
