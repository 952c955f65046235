"""What is collected of one test while it runs, until it is one observation."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import RuleError, TtnnPerfError, UsageError
from pytest_ttnn_perf.device.host import host_load
from pytest_ttnn_perf.observe.instruments import Instruments
from pytest_ttnn_perf.observe.series import SeriesTable, metric_of, observed_metrics
from pytest_ttnn_perf.records.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.records.observation import NO_ARTIFACT, Artifact, Observation
from pytest_ttnn_perf.records.settings import USUAL_PCC, PccLimits, left_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.measure.timing import Turn
    from pytest_ttnn_perf.observe.hardware import StatedHardware
    from pytest_ttnn_perf.observe.tokens import TokenLog
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.settings import Settings, TestSettings


#: The origin of a metric that neither the test nor a file of it told.
OBSERVED: Final = "what the run observed itself"
_MEASURED_HERE: Final = (None, OBSERVED)


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
        attached itself are taken already.
        """
        from pytest_ttnn_perf.device.profilers import ops_reports_since

        for file in ops_reports_since(moment_s, os.environ, Path.cwd()):
            if file.resolve() not in self._attached:
                origin = "the reports of processes that it started"
                self._attach(file, origin, self.settings.region)

    def read_output(self, text: str) -> None:
        """Take what profilers printed in the output of this test."""
        self._take_at_end(self.instruments.read_output(text))

    def _take_at_end(self, artifact: Artifact) -> None:
        """Add what an artifact tells after the test has ended: it cannot raise there any more."""
        try:
            self._take(artifact, OBSERVED)
        except UsageError as error:
            self._problems.append(str(error))

    def whole_call(self, elapsed_ns: float, *, gated: bool) -> None:
        """Record the time of a test that did not measure anything itself."""
        series = self._series.of(metric_of("call_time", unit="ns", kind=Kind.TIME), gated=gated)
        series.samples.append(elapsed_ns)

    @property
    def recorded_nothing(self) -> bool:
        """Whether the test has not said anything so far."""
        return not self._series and self._tokens is None

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
        )
        observation = self._located(observation)
        if self._tokens is not None:
            from pytest_ttnn_perf.observe.token_roofline import with_rooflines

            observation = with_rooflines(observation, self._tokens)
        return self._checked(observation)

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
        times = [s for s in self._series.values() if s.metric.compared_by_ratio]
        # Neither what a simulator counts nor what a capture says depends on the load of this host.
        own = [s for s in times if s.metric.source is not Source.SIM and s.origin in _MEASURED_HERE]
        matters = self.instruments.by_the_clock and (own or not times)
        return host_load(os.environ) if matters else {}
