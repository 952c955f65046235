"""What is collected of one test while it runs, until it is one observation."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from dataclasses import field, replace
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import RuleError, TtnnPerfError, UsageError
from pytest_ttnn_perf._base.text import text_of
from pytest_ttnn_perf.device.host import host_load
from pytest_ttnn_perf.observe.instruments import Instruments
from pytest_ttnn_perf.observe.series import Series, SeriesTable, metric_of, observed_metrics
from pytest_ttnn_perf.records.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.records.observation import NO_ARTIFACT, Artifact, Asked, Observation
from pytest_ttnn_perf.records.settings import USUAL_PCC, PccLimits, left_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_ttnn_perf.measure.timing import Turn
    from pytest_ttnn_perf.observe.hardware import StatedHardware
    from pytest_ttnn_perf.observe.tokens import TokenLog
    from pytest_ttnn_perf.records.finding import HelperPcc
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.observation import Conditions
    from pytest_ttnn_perf.records.settings import Settings, TestSettings


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
        from pytest_ttnn_perf.observe.artifacts import read_attached
        from pytest_ttnn_perf.records.region import RegionChoice

        try:
            artifact = read_attached(file, RegionChoice(*choice), began_s=self.began_s)
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
        from pytest_ttnn_perf.device.profilers import ops_reports_since

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
            from pytest_ttnn_perf.observe.token_roofline import with_rooflines

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
        from pytest_ttnn_perf.observe.hardware import with_hardware

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
        from pytest_ttnn_perf.observe.checklist import check_test

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
