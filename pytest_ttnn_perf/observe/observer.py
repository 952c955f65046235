"""What a test does through its fixture, turned into one observation."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import field, replace
from inspect import iscoroutinefunction
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import AccuracyError, RuleError, TtnnPerfError, UsageError
from pytest_ttnn_perf._base.text import plain
from pytest_ttnn_perf.device.host import host_load
from pytest_ttnn_perf.measure.timing import Timings, Turn, Workload, measure_awaited, timed_region
from pytest_ttnn_perf.observe.instruments import Instruments, Plan
from pytest_ttnn_perf.observe.series import (
    FIRST_CALL,
    SeriesTable,
    metric_of,
    numbers_of,
    observed_metrics,
)
from pytest_ttnn_perf.records.json_value import LARGEST
from pytest_ttnn_perf.records.metric import (
    SIM_THROUGHPUT_TIME,
    SIM_TIME,
    THROUGHPUT_TIME,
    WALL_TIME,
    Better,
    Kind,
    Metric,
    Source,
)
from pytest_ttnn_perf.records.observation import NO_ARTIFACT, Artifact, Observation
from pytest_ttnn_perf.records.settings import (
    USUAL_PCC,
    PccLimits,
    finite_number,
    left_out,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.settings import Settings, TestSettings


def bounds_of(
    option: str, bound: float | Mapping[str, float] | None, values: Mapping[str, float]
) -> Mapping[str, float]:
    """Return the bound of each value: one for all, or one by name."""
    if bound is None:
        return {}
    if not isinstance(bound, Mapping):
        return dict.fromkeys(values, finite_number(option, bound))
    unknown = sorted(set(bound) - set(values))
    if unknown:
        known = ", ".join(values)
        message = f"{option} names {', '.join(unknown)}, which is not among the values ({known})"
        raise UsageError(message)
    return {name: finite_number(option, value) for name, value in bound.items()}


#: How a time is called that nobody gave a name: of one call, and of overlapping ones.
_TIMES: Final = {
    Source.WALL: (WALL_TIME, THROUGHPUT_TIME),
    Source.SIM: (SIM_TIME, SIM_THROUGHPUT_TIME),
}
#: What told a metric, if it was neither the test nor a file of it.
_OBSERVED: Final = "what the run observed itself"


@dataclass(slots=True, repr=False)
class Observer:
    """Collects what one test measures.

    ``instruments`` are what it measures with; ``turn`` waits for other processes that measure at
    the same time. The test's set-up began at ``began_s``, by the clock.
    """

    test: str
    settings: TestSettings
    run: Settings
    instruments: Instruments = field(default_factory=Instruments)
    turn: Turn = field(default_factory=nullcontext)
    began_s: float = 0.0
    _series: SeriesTable = field(default_factory=SeriesTable)
    _facts: dict[str, Scalar] = field(default_factory=dict)
    _artifact: Artifact = NO_ARTIFACT
    _attached: set[Path] = field(default_factory=set)
    _problems: list[str] = field(default_factory=list)
    _host: Mapping[str, Scalar] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<ttnn_perf of {self.test}>"

    def measure(  # noqa: PLR0913 (all but the callable are keywords that users know by name)
        self,
        fn: Any,
        /,
        *args: Any,
        name: str | None = None,
        warmup: int | None = None,
        iterations: int | None = None,
        sync: Callable[[], object] | None = None,
        setup: Callable[[], Any] | None = None,
        pipelined: int | None = None,
        clock: Callable[[], float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Time ``fn(*args, **kwargs)``: warm-up, then samples; return the last result.

        ``clock`` is that of a simulated device, in nanoseconds: what it tells is the same on every
        machine.
        """
        __tracebackhide__ = True
        if not callable(fn):
            message = f"measure takes a callable and its arguments, not a result: found {fn!r}"
            raise UsageError(message)
        if iscoroutinefunction(fn):
            message = f"measure does not await {fn!r}: use `await ttnn_perf.measure_async(...)`"
            raise UsageError(message)
        depth = None if pipelined is None else whole_number("pipelined", pipelined, least=1)
        plan = self._plan(warmup, iterations)._replace(depth=depth)
        workload = Workload(
            fn,
            args,
            kwargs,
            setup=setup,
            sync=sync or self.instruments.sync,
            clock=clock or perf_counter_ns,
        )
        with self._timing(name, plan, simulated=clock is not None) as timings:
            result = self.instruments.run(workload, timings, plan)
        artifact = self.instruments.last_measurement()
        own = name not in {None, WALL_TIME, THROUGHPUT_TIME}
        self._take(artifact.named(str(name)) if own else artifact, _OBSERVED)
        return result

    async def measure_async(  # noqa: PLR0913 (as ``measure``)
        self,
        fn: Any,
        /,
        *args: Any,
        name: str | None = None,
        warmup: int | None = None,
        iterations: int | None = None,
        sync: Callable[[], object] | None = None,
        setup: Callable[[], Any] | None = None,
        clock: Callable[[], float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Time ``await fn(*args, **kwargs)`` in the event loop of the test, as ``measure`` does.

        What else the loop does meanwhile is part of the time. Profilers are not asked.
        """
        __tracebackhide__ = True
        if not callable(fn):
            message = f"measure_async takes a callable and its arguments, found {fn!r}"
            raise UsageError(message)
        plan = self._plan(warmup, iterations)
        workload = Workload(
            fn,
            args,
            kwargs,
            setup=setup,
            sync=sync or self.instruments.sync,
            clock=clock or perf_counter_ns,
        )
        with self._timing(name, plan, simulated=clock is not None) as timings:
            return await measure_awaited(
                workload, timings, warmup=plan.warmup, iterations=plan.iterations
            )

    def _plan(self, warmup: int | None, iterations: int | None) -> Plan:
        """Return how often a model is called: as asked, else as its test says."""
        asked = self.settings.warmup if warmup is None else warmup
        rounds = self.settings.iterations if iterations is None else iterations
        return Plan(
            whole_number("warmup", asked, least=0), whole_number("iterations", rounds, least=1)
        )

    @contextmanager
    def _timing(self, name: str | None, plan: Plan, *, simulated: bool) -> Iterator[Timings]:
        """Keep what is timed meanwhile, also of a model that raises."""
        __tracebackhide__ = True
        source = Source.SIM if simulated else Source.WALL
        usual = _TIMES[source][plan.depth is not None]
        timings = Timings()
        first = FIRST_CALL not in self._series and not simulated
        self._series.time(name or usual, timings, source)
        try:
            with self.turn:
                yield timings
                self._host = self._load()
            if timings.calls_per_sample > 1:
                note = f"each sample is the mean of {timings.calls_per_sample} calls"
                self._series[name or usual].note = note
        finally:
            if first:
                gates = (self.run.gate_first_call_time, self.run.gate_second_call_time)
                calls_ns = timings.calls_ns if plan.depth is None else timings.warmup_ns
                self._series.first_calls(calls_ns, gates=gates)

    def measure_io_overlap(
        self,
        *,
        compute: Callable[[], object],
        transfer: Callable[[], object],
        both: Callable[[], object],
        iterations: int | None = None,
    ) -> None:
        """Time computing alone, moving data alone, and both as the model does them.

        How much of the smaller of the two disappears in the third is the overlap.
        """
        __tracebackhide__ = True
        for name, part in (("compute", compute), ("transfer", transfer), ("both", both)):
            self.measure(part, name=f"io_{name}_time", iterations=iterations)

    @contextmanager
    def region(self, name: str, *, clock: Callable[[], float] | None = None) -> Iterator[None]:
        """Time a block; the same name again adds a sample. ``clock`` is as for ``measure``."""
        source = Source.WALL if clock is None else Source.SIM
        series = self._series.of(metric_of(name, unit="ns", kind=Kind.TIME, source=source))
        keep, sync = series.samples.append, self.instruments.sync
        with self.turn, timed_region(keep, sync, clock or perf_counter_ns):
            yield

    def record(
        self,
        name: str,
        value_or_samples: object,
        *,
        unit: str = "",
        better: str | None = None,
        kind: str | None = None,
    ) -> None:
        """Record any metric; the same name again adds samples."""
        __tracebackhide__ = True
        metric = metric_of(name, unit=unit, better=better, kind=kind)
        series = self._series.of(metric)
        if series.origin is not None:
            message = f"{name} is told by {series.origin}; record yours under another name"
            raise UsageError(message)
        series.samples.extend(numbers_of(name, value_or_samples))

    def check_pcc(
        self, expected: object, actual: object, *, at_least: float | None = None, name: str = "pcc"
    ) -> float:
        """Correlate ``actual`` with ``expected``; below ``at_least`` the test fails."""
        __tracebackhide__ = True  # a failure points at the line of the test
        from pytest_ttnn_perf.measure.pcc import compare

        asked = finite_number("at_least", self.settings.pcc if at_least is None else at_least)
        bound = self._least("pcc", asked)
        agreement = compare(expected, actual)
        self._accuracy(name, agreement.pcc, at_least=bound, note=agreement.sentence)
        for suffix, error in (
            ("max_abs_error", agreement.max_abs_error),
            ("relative_l2", agreement.relative_l2),
        ):
            if error is not None:
                metric = Metric(f"{name}_{suffix}", unit="", kind=Kind.ACCURACY)
                self._series.of(metric, gated=False).samples.append(error)
        return agreement.pcc

    def check_accuracy(
        self,
        *,
        at_least: float | Mapping[str, float] | None = None,
        at_most: float | Mapping[str, float] | None = None,
        **values: float,
    ) -> None:
        """Record accuracies (top-1, token accuracy, FID …) with absolute limits.

        A value with ``at_most`` alone is better when lower; any other when higher.
        """
        __tracebackhide__ = True
        lower, upper = (
            bounds_of("at_least", at_least, values),
            bounds_of("at_most", at_most, values),
        )
        for name, value in values.items():
            numbers = numbers_of(name, value)
            if len(numbers) != 1:
                message = f"{name}: expected one number, found {len(numbers)}"
                raise UsageError(message)
            least = lower.get(name) if name in upper else self._least(name, lower.get(name))
            self._accuracy(name, numbers[0], at_least=least, at_most=upper.get(name))

    def attach(
        self,
        path: str | os.PathLike[str],
        *,
        region: str | None = None,
        start: str | None = None,
        end: str | None = None,
    ) -> None:
        """Take what a recorded artifact of this test tells, as metrics of their own.

        Of an op table, that of a ``region``, or between the signposts ``start`` and ``end``; all
        regions without them. Not in a replay, which takes all of them from elsewhere.
        """
        __tracebackhide__ = True
        if region is None and start is None and end is None:
            region = self.settings.region
        self._attach(Path(path), f"attach({os.fspath(path)!r})", region, start, end)

    def _attach(self, file: Path, origin: str, *choice: str | None) -> None:
        __tracebackhide__ = True
        if not self.instruments.takes_artifacts:
            return
        from pytest_ttnn_perf.observe.artifacts import read_attached
        from pytest_ttnn_perf.records.region import RegionChoice

        try:
            artifact = read_attached(file, RegionChoice(*choice), began_s=self.began_s)
        except TtnnPerfError as error:
            # A mistake in the test, or in its files: where we found it helps nobody.
            raise error.with_traceback(None) from None
        self._attached.add(file.resolve())
        self._take(artifact, origin)

    def attach_reports_since(self, moment_s: float) -> None:
        """Take the reports that profiled processes of the test's own have left.

        Several are several samples, of one command that ran as often. Those that the test has
        attached itself are taken already.
        """
        from pytest_ttnn_perf.device.profilers import ops_reports_since

        for file in ops_reports_since(moment_s, os.environ, Path.cwd()):
            if file.resolve() not in self._attached:
                origin = "the reports of processes that it started"
                self._attach(file, origin, self.settings.region)

    def _take(self, artifact: Artifact, origin: str) -> None:
        """Add what an artifact tells; of several op tables, the first is kept."""
        __tracebackhide__ = True
        self._problems += self._series.take(artifact, origin)
        self._artifact = self._artifact.completed_by(artifact)

    def read_output(self, text: str) -> None:
        """Take what profilers printed in the output of this test."""
        self._take_at_end(self.instruments.read_output(text))

    def facts(self, **facts: object) -> None:
        """State configuration that cannot be observed; another value is another configuration."""
        for name, fact in facts.items():
            infinite = isinstance(fact, (int, float)) and not -LARGEST <= fact <= LARGEST
            if infinite or (fact is not None and not isinstance(fact, (str, int, float))):
                message = f"fact {name}: expected a string, number or boolean, found {fact!r}"
                raise UsageError(message)
            self._facts[name] = plain(fact)

    def whole_call(self, elapsed_ns: float, *, gated: bool) -> None:
        """Record the time of a test that did not measure anything itself."""
        series = self._series.of(metric_of("call_time", unit="ns", kind=Kind.TIME), gated=gated)
        series.samples.append(elapsed_ns)

    @property
    def recorded_nothing(self) -> bool:
        """Whether the test has not said anything so far."""
        return not self._series

    def finish(self, *, raised: str | None = None) -> Observation:
        """Return what was observed until now; ``raised`` is the error that ended the test."""
        self._series.derive_rate(self.settings.batch)
        self._take_at_end(self.instruments.end(self.test, self.settings.region))
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
        )
        return self._checked(self.instruments.complete(observation, self._artifact))

    def _checked(self, observation: Observation) -> Observation:
        """Ask the checklist; what it cannot be asked is a mistake in the settings, or ours."""
        from pytest_ttnn_perf.observe.checklist import check_test

        try:
            clock = self.instruments.by_the_clock
            return check_test(observation, self._artifact, self.run, by_the_clock=clock)
        except (UsageError, RuleError) as error:
            return replace(observation, problems=(*observation.problems, str(error)))

    def _environment(self) -> Mapping[str, Scalar]:
        """Return what is recorded beside the results, and never compared."""
        batch = self.settings.batch
        around = {**(self._host or self._load()), **self._artifact.environment}
        return around if batch is None else {**around, "batch": batch}

    def _load(self) -> Mapping[str, Scalar]:
        """Look what else the machine does, where its own times count."""
        by_source = {s.metric.source for s in self._series.values() if s.metric.compared_by_ratio}
        simulated = Source.SIM in by_source and Source.WALL not in by_source
        return host_load(os.environ) if self.instruments.by_the_clock and not simulated else {}

    def _take_at_end(self, artifact: Artifact) -> None:
        """Add what an artifact tells after the test has ended: it cannot raise there any more."""
        try:
            self._take(artifact, _OBSERVED)
        except UsageError as error:
            self._problems.append(str(error))

    def _least(self, name: str, asked: float | None) -> float | None:
        """Return the limit of an accuracy; no PCC is let off lightly where limits are strict."""
        if self.run.limits is not PccLimits.STRICT or "pcc" not in name.lower():
            return asked
        return max(asked if asked is not None else USUAL_PCC, USUAL_PCC)

    def _accuracy(
        self,
        name: str,
        value: float,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        note: str | None = None,
    ) -> None:
        better = Better.LOWER if at_least is None and at_most is not None else Better.HIGHER
        series = self._series.of(Metric(name, unit="", better=better, kind=Kind.ACCURACY))
        series.samples.append(value)
        series.tighten(at_least=at_least, at_most=at_most)
        # The note of the worst sample: it is the one that is judged and shown.
        worst = min(series.samples) if better is Better.HIGHER else max(series.samples)
        if not (value > worst if better is Better.HIGHER else value < worst):
            series.note = note


class FunctionalObserver(Observer):
    """The fixture without the gate: every callable runs once, accuracy is enforced at once."""

    __slots__ = ()

    def attach(self, path: str | os.PathLike[str], **choice: str | None) -> None:
        """Leave a capture alone: nothing is compared, and there may be none."""

    def measure(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run ``fn`` once, prepared and synchronised as it would be under the gate."""
        kwargs = {**kwargs, "warmup": 0, "iterations": 1}
        kwargs.pop("pipelined", None)
        self._series.clear()  # the same model may run as often as the test likes
        return super().measure(fn, *args, **kwargs)

    async def measure_async(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Await ``fn`` once."""
        self._series.clear()
        return await super().measure_async(fn, *args, **{**kwargs, "warmup": 0, "iterations": 1})

    def _accuracy(
        self,
        name: str,
        value: float,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        note: str | None = None,
    ) -> None:
        __tracebackhide__ = True
        if at_least is not None and not value >= at_least:  # so that NaN is caught as well
            limit = f"at least {at_least:g}"
        elif at_most is not None and not value <= at_most:
            limit = f"at most {at_most:g}"
        elif not math.isfinite(value):
            limit = "a finite number"
        else:
            return
        message = f"{name} is {value:.6g}, expected {limit}" + (f": {note}" if note else "")
        raise AccuracyError(message)
