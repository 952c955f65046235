"""What one test measured in one process, and a run of many tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.hardware import Configuration, Environment, Hardware, Scalar
from pytest_ttnn_perf.model.metric import Better, Metric, Source
from pytest_ttnn_perf.model.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.coverage import Coverage
    from pytest_ttnn_perf.model.finding import Finding, RuleOutcome, Unanswered
    from pytest_ttnn_perf.model.op_groups import OpGroups
    from pytest_ttnn_perf.model.shift import Shift
    from pytest_ttnn_perf.model.verdict import Verdict

#: The version of the run record's schema that this code writes.
RUN_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Limits:
    """What the author of a test asked for, for one metric; None means the gate's default.

    ``tolerance`` and ``max_regression`` are fractions (0.05 = 5 %); for accuracy, ``tolerance``
    is the largest drop in the metric's own unit. The others are in the metric's unit.
    """

    tolerance: float | None = None
    max_regression: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    target: float | None = None


#: Rules that ask what the gate judges too, and one that repeats the line of a target.
_JUDGED_TOO: Final = frozenset({"TTP901", "TTP903", "TTP904"})
_OF_TARGET: Final = "TTP905"
_FAILING: Final = frozenset({Outcome.REGRESSED, Outcome.NO_DATA})

#: What a test that says nothing asks for.
NO_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class MetricObservation:
    """The samples of one metric, in the order they were taken. NaN stands for "not finite"."""

    metric: Metric
    samples: tuple[float, ...]
    confirmations: tuple[tuple[float, ...], ...] = ()
    warmup: tuple[float, ...] = ()
    limits: Limits = NO_LIMITS
    gated: bool = True
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Location:
    """Where a test is written: a file as seen from where ids start, and a line, from 1."""

    file: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything one test recorded. ``raised`` is set when its body did not reach the end.

    ``problems`` are mistakes in how the test uses the plugin; each fails the test. ``lost`` says
    why the process that ran it never told its result, ``unconfirmed`` why it could not be measured
    again. ``findings`` are of the rules that have an answer. ``environment`` is what was true of
    the device meanwhile; it is never compared.
    ``dropped``: a profiler ran out of room, and one with more may not. ``left_out`` are sources
    that the user does without: metrics of theirs are not missed. ``bottleneck`` says what holds the
    model back most, ``model_kind`` what kind of model it is, where that can be told.
    ``has_kernels``: it runs kernels of tt-lang that told something.
    """

    test: str
    metrics: Mapping[str, MetricObservation] = field(default_factory=dict)
    hardware: Hardware | None = None
    configuration: Configuration = Configuration()
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    ops: OpGroups | None = None
    environment: Mapping[str, Scalar] = field(default_factory=dict)
    waived: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()
    problems: tuple[str, ...] = ()
    raised: str | None = None
    lost: str | None = None
    unconfirmed: str | None = None
    dropped: bool = False
    left_out: tuple[Source, ...] = ()
    bottleneck: str | None = None
    model_kind: str | None = None
    has_kernels: bool = False
    location: Location | None = None

    @property
    def outcomes(self) -> Mapping[str, RuleOutcome]:
        """How every rule that was asked ended, by its code."""
        answered = {finding.code: finding.outcome for finding in self.findings}
        return answered | {code: each.outcome for each in self.unanswered for code in each.codes}

    @property
    def setting(self) -> Configuration:
        """What was observed of the configuration, completed by what the author stated."""
        return self.configuration.completed_by(self.facts)


@dataclass(frozen=True, slots=True)
class JudgedTest:
    """An observation with its verdicts. ``written`` names the metrics whose baseline it changes.

    ``by_op`` says which ops make up a change of its times; None where nothing changed, or one side
    has no op table.
    """

    observation: Observation
    verdicts: tuple[Verdict, ...] = ()
    written: frozenset[str] = frozenset()
    by_op: str | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the checklist says beyond what verdicts and targets say already."""
        said = {each.metric.name for each in self.verdicts if each.outcome in _FAILING}
        return tuple(
            finding for finding in self.observation.findings if not _is_said(finding, said)
        )

    def target_of(self, verdict: Verdict) -> float | None:
        """Return the goal that the test's author set for a metric, in its unit."""
        observed = self.observation.metrics.get(verdict.metric.name)
        return observed.limits.target if observed else None

    def target_reached(self, verdict: Verdict) -> bool:
        """Return whether a metric with a target is at least as good as that."""
        target = self.target_of(verdict)
        if target is None or verdict.observed is None:
            return False
        if verdict.metric.better is Better.HIGHER:
            return verdict.observed >= target
        return verdict.observed <= target


def _is_said(finding: Finding, metrics: set[str]) -> bool:
    """Tell whether failing verdicts on some metrics, or a line for a target, say the same."""
    if finding.code in _JUDGED_TOO and finding.stands:
        named = {evidence.subject for evidence in finding.evidence}
        return bool(named) and named <= metrics
    return finding.code == _OF_TARGET


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the gate. A test without hardware of its own ran on ``hardware``.

    A run that is not ``complete`` was cut short: some of its tests may be missing. ``coverage`` is
    what it has collected; None where that is not known.
    """

    hardware: Hardware | None
    tests: Mapping[str, JudgedTest]
    environment: Environment = Environment()
    label: str | None = None
    id: str | None = None
    complete: bool = True
    shift: Shift | None = None
    coverage: Coverage | None = None
