"""Observations against stored baselines, and what each verdict means for its test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.finding import ModelKind, NeedlessWaiver, RuleOutcome, State
from pytest_ttnn_perf.core.metric import Kind, Source, split_metric
from pytest_ttnn_perf.core.observation import JudgedTest
from pytest_ttnn_perf.core.ops import CALLS
from pytest_ttnn_perf.core.settings import Checklist, Missing
from pytest_ttnn_perf.core.verdict import QUIET, WITHOUT_BASELINE, Outcome, Reason
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY, doubt_gains, judge_test, settled_value
from pytest_ttnn_perf.gate.machine_shift import Drifting, drift_of, explain_by_shift, shift_of
from pytest_ttnn_perf.gate.ratios import learned_prior
from pytest_ttnn_perf.report.terminal import SummaryOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.core.finding import Finding, Progress
    from pytest_ttnn_perf.core.hardware import Environment, Hardware
    from pytest_ttnn_perf.core.observation import MetricObservation, Observation, Run
    from pytest_ttnn_perf.core.ops import OpGroups
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.core.verdict import Shift, Verdict
    from pytest_ttnn_perf.gate.judge import Policy
    from pytest_ttnn_perf.gate.store import BaselineStore
    from pytest_ttnn_perf.gate.sweeps import Sweep
    from pytest_ttnn_perf.report.sentences import Rerun


#: The time of each region then and now, in nanoseconds.
RegionTimes = Mapping[str, tuple[float, float]]


def change_by_op(before: OpGroups, after: OpGroups, times_ns: RegionTimes) -> str | None:
    """Say which ops make up the change of times that they are of, region by region.

    None where the tables have none of these regions in common.
    """
    if before.kernel_time == after.kernel_time == CALLS:
        return wings.call("changed_calls", before, after) or "the same calls"
    if before.kernel_time != after.kernel_time and not times_ns.keys().isdisjoint(
        {*before.regions} & {*after.regions}
    ):
        return f"cannot be determined: {_other_times(before.kernel_time, after.kernel_time)}"
    text: str | None = wings.call("change_by_op", before, after, times_ns)
    return text


def _other_times(then: str, now: str) -> str:
    """Say in what the times of ops are of different quantities."""
    if now.startswith(then):
        return f"times are{now.removeprefix(then)} now, and were not then"
    if then.startswith(now):
        return f"times were{then.removeprefix(now)} then, and are not now"
    return f"{then} then, {now} now"


def observed_change_by_op(before: Observation, after: Observation) -> str | None:
    """Say which ops make up the change between two observations of one test on one hardware.

    None where one of them has no op table.
    """
    if not before.ops or not after.ops:
        return None
    times_ns: dict[str, tuple[float, float]] = {}
    for name, observed in before.metrics.items():
        if observed.metric.is_kernel_time and name in after.metrics:
            then, now = settled_value(observed), settled_value(after.metrics[name])
            if then is not None and now is not None:
                times_ns[split_metric(name)[1]] = (then, now)
    return change_by_op(before.ops, after.ops, times_ns)


def judged_by_op(judged: JudgedTest, store: BaselineStore, hardware: Hardware) -> str | None:
    """Say which ops make up a change from a test's baseline; None where there is nothing to say.

    Told are the regions whose kernel time changed, or all where only the clock shows a change. A
    table that cannot be read costs the explanation, not the verdict.
    """
    now = judged.observation.ops
    if now is None or not any(verdict.is_of_changed_time for verdict in judged.verdicts):
        return None
    if now.kernel_time == CALLS:
        return _changed_calls(judged.observation.test, now, store, hardware)
    try:
        then = store.ops_of(hardware, judged.observation.test)
    except InputError as error:
        return f"cannot be determined: {error}"
    return None if then is None else change_by_op(then, now, changed_times_ns(judged))


def changed_times_ns(judged: JudgedTest) -> RegionTimes:
    """Return the kernel times that ops explain: of regions where these changed, else of all."""
    compared = [verdict for verdict in judged.verdicts if verdict.metric.is_kernel_time]
    changed = [verdict for verdict in compared if verdict.is_of_changed_time]
    return {
        split_metric(verdict.metric.name)[1]: (verdict.centre, verdict.observed)
        for verdict in changed or compared
        if verdict.centre is not None and verdict.observed is not None
    }


def _changed_calls(
    test: str, now: OpGroups, store: BaselineStore, hardware: Hardware
) -> str | None:
    """Say which calls a model makes that it did not make before; None where it makes the same."""
    try:
        then = store.ops_of(hardware, test)
    except InputError as error:
        return f"cannot be determined: {error}"
    changed = wings.call("changed_calls", then, now) if _are_alike(then, now) else None
    return f"no times of ops, but other calls; {changed}" if changed else None


#: A load above this share of the processors means that others were at work.
_BUSY: Final = 0.5
_WORDS: Final = {"host_hash": "host", "cpu_count": "processors", "system": "kernel"}


def machine_shift(
    tests: Mapping[str, JudgedTest],
    store: BaselineStore,
    *,
    hardware: Hardware | None,
    environment: Environment,
) -> Shift | None:
    """Return how the machine has shifted since the baselines were accepted; None if it has not.

    A machine that is a little slower, and no test beyond its limit, is noise that limits are for.
    """
    shift = shift_of(judged.verdicts for judged in tests.values())
    if shift is None:
        return None
    verdicts = (verdict for judged in tests.values() for verdict in judged.verdicts)
    beyond = (v for v in verdicts if v.outcome is Outcome.REGRESSED and v.reason is None)
    if shift.worse and not any(verdict.metric.compared_by_ratio for verdict in beyond):
        return None
    differs = environment_differences(tests, store, hardware=hardware, environment=environment)
    return replace(shift, differences=(*differs, *_load(environment)))


def environment_differences(
    tests: Mapping[str, JudgedTest],
    store: BaselineStore,
    *,
    hardware: Hardware | None,
    environment: Environment,
) -> tuple[str, ...]:
    """Say what is not as it was when the baselines of these tests were accepted."""
    return tuple(map(str, differences_of(tests, store, hardware=hardware, environment=environment)))


class EnvironmentDifference(NamedTuple):
    """What is not as it was when baselines were accepted; ``now`` is None for what is gone."""

    name: str
    before: object
    now: object

    def __str__(self) -> str:
        now_text = f"no {self.name}" if self.now is None else f"{self.name} {self.now}"
        return f"{now_text}, at the baselines {self.before}"


def differences_of(
    tests: Mapping[str, JudgedTest],
    store: BaselineStore,
    *,
    hardware: Hardware | None,
    environment: Environment,
) -> tuple[EnvironmentDifference, ...]:
    """Return what is not as it was when the baselines of these tests were accepted."""
    found: Counter[EnvironmentDifference] = Counter()
    compared = 0
    for judged in tests.values():
        own = judged.observation.hardware or hardware
        baseline = store.find(own, judged.observation.test) if own else None
        if baseline is not None:
            compared += 1
            then = {**baseline.accepted.environment, "ttnn": baseline.accepted.ttnn}
            found.update(_differences(environment, then))
    # Told of most baselines, it can explain most of what is compared with them.
    return tuple(differs for differs, count in found.most_common() if count >= compared / 2)


def relabel_shifted(judged: JudgedTest, shift: Shift) -> JudgedTest:
    """Return a judged test without the suspicions that the machine explains."""
    return replace(judged, verdicts=explain_by_shift(judged.verdicts, shift))


def _differences(now: Environment, then: Mapping[str, object]) -> Iterator[EnvironmentDifference]:
    current = {**now.lasting, "ttnn": now.ttnn}
    for name, value in then.items():
        if value is not None and current.get(name) != value:
            yield EnvironmentDifference(_WORDS.get(name, name), value, current.get(name))


def _load(environment: Environment) -> Iterator[str]:
    load, processors = environment.load_1m, environment.cpu_count
    if load is not None and processors and load > _BUSY * processors:
        yield f"load {load:g} on {processors} processors when the run began"


def drifts_of(tests: Iterable[JudgedTest]) -> Iterator[Drifting]:
    """Yield the times that drifted within their samples, then the run if it did.

    Times only: a throughput that was derived from one would say the same again.
    """
    ratios: list[float] = []
    for judged in tests:
        changes = []
        for verdict in judged.verdicts:
            observed = judged.observation.metrics.get(verdict.metric.name)
            if observed is None or verdict.metric.kind is not Kind.TIME:
                continue
            drift = drift_of(observed.samples)
            if drift is not None:
                samples = len(observed.samples)
                yield Drifting(judged.observation.test, verdict.metric.name, samples, drift)
            changes += [] if verdict.change is None else [verdict.change]
        ratios += [1 + max(changes, key=abs)] if changes else []
    drift = drift_of(ratios)
    if drift is not None:
        yield Drifting(None, None, len(ratios), drift)


class Policies(Struct):
    """The gate's constants for each hardware key, as its baselines in ``store`` teach them."""

    store: BaselineStore
    _learned: dict[Hardware, Policy] = {}

    def of(self, hardware: Hardware, metrics: Iterable[MetricObservation]) -> Policy:
        """Return the constants for a test with these metrics."""
        if all(observed.metric.source is Source.WALL for observed in metrics):
            return DEFAULT_POLICY
        if hardware not in self._learned:
            prior = learned_prior(self.store.neighbours(hardware), policy=DEFAULT_POLICY)
            usual = DEFAULT_POLICY.prior_device
            learned = replace(DEFAULT_POLICY, prior_device=usual if prior is None else prior)
            self._learned[hardware] = learned
        return self._learned[hardware]


def judge_observation(
    observation: Observation, policies: Policies, *, hardware: Hardware | None
) -> JudgedTest:
    """Judge one test on the hardware it ran on: its own, else ``hardware``."""
    store, own = policies.store, observation.hardware or hardware
    if observation.node_id is not None:
        store.node_ids.setdefault(observation.test, observation.node_id)
    # Decoding refuses a record that lacks both: no test may drop out of the judging here.
    assert own is not None, f"{observation.test} has no hardware"
    baseline = store.find(own, observation.test)
    other_keys = () if baseline else store.keys_with(observation.test)
    policy = policies.of(own, observation.metrics.values()) if baseline else DEFAULT_POLICY
    verdicts = judge_test(observation, baseline, other_keys=other_keys, policy=policy)
    judged = JudgedTest(observation, doubt_gains(verdicts))
    if observation.ops is None:
        return judged
    judged = _with_changed_ops(judged, store, own)
    return replace(judged, by_op=judged_by_op(judged, store, own))


def _with_changed_ops(judged: JudgedTest, store: BaselineStore, hardware: Hardware) -> JudgedTest:
    """Return a judged test whose verdicts on numbers of ops name those that came and went."""
    now = judged.observation.ops
    if now is None or not any(verdict.is_of_changed_ops for verdict in judged.verdicts):
        return judged
    try:
        then = store.ops_of(hardware, judged.observation.test)
    except InputError:
        return judged  # it costs the names, not the verdict
    if not _are_alike(then, now):
        return judged
    verdicts = []
    for verdict in judged.verdicts:
        if verdict.is_of_changed_ops:
            _, region = split_metric(verdict.metric.name)
            known = region in {*then.regions, *now.regions}
            tables = (then.of(region), now.of(region)) if known else (then, now)
            verdict = replace(verdict, detail=wings.call("changed_calls", *tables))  # noqa: PLW2901
        verdicts.append(verdict)
    return replace(judged, verdicts=tuple(verdicts))


def _are_alike(then: OpGroups | None, now: OpGroups) -> TypeGuard[OpGroups]:
    """Tell whether two tables are both of calls, or both of what a profiler saw."""
    return then is not None and (then.kernel_time == CALLS) == (now.kernel_time == CALLS)


def check_against_verdicts(judged: JudgedTest, settings: Settings) -> JudgedTest:
    """Ask the checklist what it says of the verdicts on a PCC."""
    if not any(verdict.metric.kind is Kind.ACCURACY for verdict in judged.verdicts):
        return judged
    from pytest_ttnn_perf.gate.checklist import check_verdicts

    return check_verdicts(judged, settings)


def judge_run(run: Run, store: BaselineStore, settings: Settings) -> Run:
    """Judge every test of a recorded run anew, and the machine by how they moved at first.

    What the checklist says of verdicts is asked anew too: the record has what it said of others.
    """
    observations = [judged.observation for judged in run.tests.values()]
    if settings.targets is not None:
        from pytest_ttnn_perf.gate.update import with_targets

        observations = [with_targets(each, run.hardware, settings.targets) for each in observations]
    policies = Policies(store)
    tests = _judge_all(observations, policies, run)
    at_first = {
        **tests,
        **_judge_all(filter(None, map(_before_confirming, observations)), policies, run),
    }
    shift = None
    if not run.shift_refuted:
        environment = run.environment
        shift = machine_shift(at_first, store, hardware=run.hardware, environment=environment)
    if shift is not None:
        tests = {name: relabel_shifted(judged, shift) for name, judged in tests.items()}
    tests = {name: check_against_verdicts(judged, settings) for name, judged in tests.items()}
    return replace(run, tests=check_sweeps(tests, settings), shift=shift)


def _judge_all(
    observations: Iterable[Observation], policies: Policies, run: Run
) -> dict[str, JudgedTest]:
    return {
        observation.test: judge_observation(observation, policies, hardware=run.hardware)
        for observation in observations
    }


def _before_confirming(observation: Observation) -> Observation | None:
    """Return an observation as it was before its confirm passes; None if it had none."""
    metrics = observation.metrics
    if not any(observed.confirmations for observed in metrics.values()):
        return None
    first = {
        name: replace(observed, confirmations=(), machine=()) for name, observed in metrics.items()
    }
    return replace(observation, metrics=first, unconfirmed=None)


def failing_verdicts(judged: JudgedTest, settings: Settings) -> tuple[Verdict, ...]:
    """Return the verdicts that fail a test; none when its result was written."""
    if judged.written:
        return ()
    missing = settings.missing
    return tuple(verdict for verdict in judged.verdicts if _fails(verdict, missing=missing))


def violations(judged: JudgedTest, checklist: Checklist) -> tuple[Finding, ...]:
    """Return the findings that fail a test."""
    if checklist is not Checklist.ENFORCE:
        return ()
    return tuple(finding for finding in judged.findings if finding.fails)


def is_failed(judged: JudgedTest, settings: Settings) -> bool:
    """Return whether a test fails: by a verdict, a finding, or a mistake in using the plugin."""
    wrong = judged.observation.problems or violations(judged, settings.checklist)
    return bool(wrong or failing_verdicts(judged, settings))


def summary_options_of(
    tests: Sequence[JudgedTest], settings: Settings, *, rerun: Rerun, shift: Shift | None
) -> SummaryOptions:
    """Return how a judged run is told."""
    silent = QUIET | WITHOUT_BASELINE if settings.missing is Missing.IGNORE else QUIET
    names = frozenset(judged.observation.test for judged in tests if is_failed(judged, settings))
    progress = {judged.observation.test: progress_of_test(judged) for judged in tests}
    known = tuple((test, steps) for test, steps in progress.items() if steps is not None)
    drifts = tuple(drifts_of(tests))
    return SummaryOptions(
        names,
        rerun,
        silent,
        shift,
        drifts,
        progress=known,
        needless=tuple(needless_waivers(tests, settings)),
        sweeps=tuple(swept(tests)),
    )


def swept(tests: Iterable[JudgedTest]) -> Iterator[Sweep]:
    """Yield what the points of sweeps amount to."""
    points = [judged for judged in tests if judged.observation.sweep is not None]
    if points:
        from pytest_ttnn_perf.gate.sweeps import sweeps_of

        yield from sweeps_of(points)


def check_sweeps(tests: Mapping[str, JudgedTest], settings: Settings) -> dict[str, JudgedTest]:
    """Ask the checklist whether the axes of sweeps took effect; tests are named by identities."""
    checked = dict(tests)
    for sweep in swept(tests.values()):
        from pytest_ttnn_perf.gate.checklist import check_axes

        for point in sweep.points:
            checked[point.test] = check_axes(checked[point.test], sweep.axes, settings)
    return checked


#: The first digits of the rules that a step of optimizing a model is about.
_STEPS: Final = "1234567"


def progress_of_test(judged: JudgedTest) -> Progress | None:
    """Return how far the model of a test has come; None where nothing is known of its steps."""
    observation = judged.observation
    if not any(finding.code[3] in _STEPS for finding in observation.findings):
        return None
    compared = any(verdict.centre is not None for verdict in judged.verdicts)
    has_baseline = compared or bool(judged.written)
    kind = next((known for known in ModelKind if known.value == observation.model_kind), None)
    progress: Progress = wings.call(
        "progress",
        observation.findings,
        unanswered=observation.unanswered,
        has_baseline=has_baseline,
        kind=kind,
    )
    known = {State.DONE, State.OPEN}
    return progress if any(step.state in known for step in progress.steps) else None


#: What was not measured here may well be found elsewhere.
_NOTHING: Final = frozenset({RuleOutcome.CLEAN, RuleOutcome.NOT_APPLICABLE})


def needless_waivers(tests: Sequence[JudgedTest], settings: Settings) -> Iterator[NeedlessWaiver]:
    """Yield the waivers of tests and of the configuration that name no rule, or found nothing."""
    for judged in tests:
        yield from _needless_of(judged)
    for code, rule in settings.rules.items():
        if rule.waive is not None:
            outcomes = {judged.observation.outcomes.get(code) for judged in tests} - {None}
            if outcomes and outcomes <= _NOTHING:
                yield NeedlessWaiver(code, None, known=True)


def _needless_of(judged: JudgedTest) -> Iterator[NeedlessWaiver]:
    observation = judged.observation
    if not observation.waived or not (outcomes := observation.outcomes):
        return
    known = wings.call("rule_codes")
    for code in observation.waived:
        if code not in known or outcomes.get(code) in _NOTHING:
            yield NeedlessWaiver(code, observation.test, known=code in known)


def _fails(verdict: Verdict, *, missing: Missing) -> bool:
    match verdict.outcome:
        case Outcome.WITHIN | Outcome.IMPROVED:
            return False
        case Outcome.SHIFTED:
            return False  # no test's own fault: it fails the run
        case Outcome.TOO_NOISY:
            # Fewer than three runs cannot show the noise: the verdict is a warning until then.
            return not verdict.provisional
        case Outcome.REGRESSED | Outcome.NO_DATA:
            return True
        case Outcome.NO_BASELINE | Outcome.NOT_COMPARABLE:
            # Another unit is a mistake in the test or the file, not a missing baseline.
            return missing is Missing.FAIL or verdict.reason is Reason.OTHER_DEFINITION
