"""Observations of both passes against stored baselines, and the failures that follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import InputError, RuleError, UsageError
from pytest_ttnn_perf.core.finding import Answers, Finding, Subject, UnansweredRules
from pytest_ttnn_perf.core.metric import (
    COMPILE,
    FIRST_CALL,
    KERNEL_TIME,
    THROUGHPUT_TIME,
    Kind,
    Source,
    recorded_metric,
    split_metric,
    told_twice,
    unrecorded,
)
from pytest_ttnn_perf.core.observation import (
    TELLS,
    JudgedTest,
    MetricObservation,
    Observation,
    Outcome,
    Reason,
)
from pytest_ttnn_perf.core.settings import Checklist, Missing, TooNoisy
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.gate.judge import (
    NO_SUITES,
    doubt_gains,
    is_learning,
    judge_test,
)
from pytest_ttnn_perf.gate.machine_shift import Suites, explain_by_shift
from pytest_ttnn_perf.gate.rules_on_numbers import NUMBER_RULES, VERDICT_RULES, ask_numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pytest_ttnn_perf.core.hardware import Environment, Hardware, Scalar
    from pytest_ttnn_perf.core.observation import Run, Shift, Verdict
    from pytest_ttnn_perf.core.ops import OpGroups
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.store import BaselineStore
    from pytest_ttnn_perf.gate.sweeps import AxisEffect, Sweep


#: The time of each region then and now, in nanoseconds.
RegionTimes = Mapping[str, tuple[float, float]]


def judge_observation(
    observation: Observation, suites: Suites, *, hardware: Hardware | None
) -> JudgedTest:
    """Judge one test on its own hardware, else on ``hardware``."""
    store, own = suites.store, observation.hardware or hardware
    # Decoding refuses a record that lacks both: no test may drop out of the judging here.
    assert own is not None, f"{observation.test} has no hardware"
    baseline = store.find(own, observation.test)
    other_keys = () if baseline else store.keys_with(observation.test)
    of_key = suites.of(own) if baseline else NO_SUITES
    verdicts = judge_test(observation, baseline, other_keys=other_keys, suites=of_key)
    verdicts = doubt_gains(verdicts)
    slower = any(v.outcome is Outcome.REGRESSED and v.is_of_changed_time for v in verdicts)
    judged = JudgedTest(observation, verdicts, by_op=observation.host if slower else None)
    return judged if observation.ops is None else _with_ops(judged, observation.ops, store, own)


def _with_ops(
    judged: JudgedTest, now: OpGroups, store: BaselineStore, hardware: Hardware
) -> JudgedTest:
    """Name the ops that came and went, or changed the times.

    A table that cannot be read costs the explanation, not the verdict.
    """
    slower = any(verdict.is_of_changed_time for verdict in judged.verdicts)
    if not slower and not any(verdict.is_of_changed_ops for verdict in judged.verdicts):
        return judged
    try:
        then = store.ops_of(hardware, judged.observation.test)
    except InputError as error:
        return replace(judged, by_op=f"cannot be determined: {error}") if slower else judged
    if then is None:
        return judged
    alike = then.is_timed == now.is_timed
    verdicts = []
    for verdict in judged.verdicts:
        if verdict.is_of_changed_ops and alike:
            _, region = split_metric(verdict.metric.name)
            known = region in {*then.regions, *now.regions}
            tables = (then.of(region), now.of(region)) if known else (then, now)
            verdicts.append(replace(verdict, detail=wings.changes.calls_sentence(*tables)))
        else:
            verdicts.append(verdict)
    by_op = judged.by_op
    if slower and now.is_timed:
        by_op = change_by_op(then, now, changed_times_ns(judged))
    elif slower and alike:
        changed = wings.changes.calls_sentence(then, now)
        by_op = f"no times of ops, but other calls; {changed}" if changed else None
    return replace(judged, verdicts=tuple(verdicts), by_op=by_op)


def changed_times_ns(judged: JudgedTest) -> RegionTimes:
    """Return the kernel times of regions where these changed, else of all."""
    compared = [verdict for verdict in judged.verdicts if verdict.metric.is_kernel_time]
    changed = [verdict for verdict in compared if verdict.is_of_changed_time]
    return {
        split_metric(verdict.metric.name)[1]: (verdict.centre, verdict.observed)
        for verdict in changed or compared
        if verdict.centre is not None and verdict.observed is not None
    }


def change_by_op(before: OpGroups, after: OpGroups, times_ns: RegionTimes) -> str | None:
    """Attribute a change of times to ops, region by region.

    None where the tables have none of these regions in common.
    """
    then, now = before.kernel_time, after.kernel_time
    if not before.is_timed and not after.is_timed:
        return wings.changes.calls_sentence(before, after) or "the same calls"
    if then != now and not times_ns.keys().isdisjoint({*before.regions} & {*after.regions}):
        return f"cannot be determined: {then} then, {now} now"
    return wings.changes.regions_sentence(before, after, times_ns)


def observed_change_by_op(before: Observation, after: Observation) -> str | None:
    """Attribute the change between two observations to ops."""
    if not before.ops or not after.ops:
        return None
    times_ns: dict[str, tuple[float, float]] = {}
    for name, observed in before.metrics.items():
        if observed.metric.is_kernel_time and name in after.metrics:
            then, now = observed.value, after.metrics[name].value
            if then is not None and now is not None:
                times_ns[split_metric(name)[1]] = (then, now)
    return change_by_op(before.ops, after.ops, times_ns)


def check_numbers(
    judged: JudgedTest,
    settings: Settings,
    *,
    only: Collection[str] = NUMBER_RULES,
    axes: tuple[AxisEffect, ...] | None = None,
) -> JudgedTest:
    """Ask rules about the numbers and verdicts of a test.

    ``axes`` are the effects of a sweep's axes, once all of its points are measured.
    """
    observation = judged.observation
    has_result = observation.reached_end or observation.out_of_memory
    if settings.checklist is Checklist.OFF or not has_result:
        return judged
    subject = Subject(
        observation=observation,
        facts=observation.device_facts,
        verdicts=judged.verdicts,
        axes=axes,
    )
    try:
        answered = ask_numbers(subject, settings, only=only)
    except (RuleError, UsageError) as error:
        # Our own mistake, or one in the settings: nothing is known of this test, others go on.
        problems = dict.fromkeys((*observation.problems, str(error)))
        return replace(judged, observation=replace(observation, problems=tuple(problems)))
    others = replace(
        observation,
        findings=tuple(each for each in observation.findings if each.code not in only),
        unanswered=tuple(
            replace(each, codes=tuple(code for code in each.codes if code not in only))
            for each in observation.unanswered
        ),
    )
    return replace(judged, observation=join_answers(others, answered))


def join_answers(observation: Observation, answered: Answers | Observation) -> Observation:
    """Add answers; to one question, keep the one that knows most."""
    told: list[tuple[str, Finding | UnansweredRules]] = []
    for side in (observation, answered):
        told += [(one.code, one) for one in side.findings]
        told += [(code, each) for each in side.unanswered for code in each.codes]
    answers: dict[tuple[str, str], Finding | UnansweredRules] = {}
    for code, answer in told:
        known = answers.get((code, answer.region))
        if known is None or TELLS.index(answer.outcome) > TELLS.index(known.outcome):
            answers[code, answer.region] = answer
    ordered = sorted(answers.items(), key=itemgetter(0))
    without: dict[UnansweredRules, list[str]] = {}
    for (code, _), answer in ordered:
        if isinstance(answer, UnansweredRules):
            without.setdefault(replace(answer, codes=()), []).append(code)
    return replace(
        observation,
        findings=tuple(answer for _, answer in ordered if isinstance(answer, Finding)),
        unanswered=tuple(replace(why, codes=tuple(codes)) for why, codes in without.items()),
    )


def judge_run(run: Run, store: BaselineStore, settings: Settings) -> Run:
    """Judge every test of a recorded run anew, and its machine."""
    suites = Suites(store)
    observations = [judged.observation for judged in run.tests.values()]
    if settings.targets is not None:
        from pytest_ttnn_perf.gate.targets import with_targets

        observations = [with_targets(o, run.hardware, settings.targets) for o in observations]
    shift = see_machine(observations, suites, run.hardware, run.environment)
    if shift is not None and run.shift_refuted:
        suites.excuse_nothing(shift.source)
        shift = None
    tests = {}
    for observation in observations:
        judged = judge_observation(observation, suites, hardware=run.hardware)
        judged = judged if shift is None else relabel_shifted(judged, shift)
        tests[observation.test] = _check_again(judged, settings)
    return replace(run, tests=check_sweeps(tests, settings), shift=shift)


def _check_again(judged: JudgedTest, settings: Settings) -> JudgedTest:
    """Ask rules about new verdicts, or all after a killed run."""
    asked = judged.observation.outcomes.keys()
    if asked and asked.isdisjoint(NUMBER_RULES):
        return check_numbers(judged, settings)
    return _check_verdicts(judged, settings)


def _check_verdicts(
    judged: JudgedTest, settings: Settings, axes: tuple[AxisEffect, ...] | None = None
) -> JudgedTest:
    asked = tuple(VERDICT_RULES & judged.observation.outcomes.keys())
    if not asked:
        return judged
    settings = replace(settings, select=asked, ignore=())
    return check_numbers(judged, settings, only=asked, axes=axes)


def sweeps_in(tests: Collection[JudgedTest]) -> list[Sweep]:
    """Return the sweeps of a run."""
    if not any(judged.observation.sweep for judged in tests):
        return []
    from pytest_ttnn_perf.gate.sweeps import sweeps_of

    return list(sweeps_of(tests))


def check_sweeps(tests: Mapping[str, JudgedTest], settings: Settings) -> dict[str, JudgedTest]:
    """Ask whether the axes of sweeps took effect."""
    checked = dict(tests)
    for sweep in sweeps_in(tests.values()):
        for point in sweep.points:
            checked[point.test] = _check_verdicts(checked[point.test], settings, sweep.axes)
    return checked


#: More work of others than this share of the processors disturbs times.
_BUSY: Final = 0.5
_WORDS: Final = {"host_hash": "host", "cpu_count": "processors", "system": "kernel"}


def see_machine(
    observations: Collection[Observation],
    suites: Suites,
    hardware: Hardware | None,
    environment: Environment,
) -> Shift | None:
    """Learn of the machine from all tests; return its shift."""
    known = [(own, o) for o in observations if (own := o.hardware or hardware) is not None]
    shift = suites.see(known)
    if shift is None:
        return None
    found = differences_of(observations, suites.store, hardware=hardware, environment=environment)
    differences = [difference_text(*each) for each in found]
    busy = busy_text({"load_1m": environment.load_1m, "cpu_count": environment.cpu_count})
    differences += [f"{busy} when the run began"] if busy else []
    return replace(shift, differences=tuple(differences))


def busy_text(environment: Mapping[str, Scalar]) -> str | None:
    """Return the load of a machine that had other work."""
    load, processors = environment.get("load_1m"), environment.get("cpu_count")
    if not isinstance(load, (int, float)) or not isinstance(processors, int):
        return None
    # The load counts the test itself: where nothing else wants to run, all of it may be its own.
    others = environment.get("runnable_threads")
    is_busy = load - 1 > _BUSY * processors and others != 0
    return f"load {load:.3g} on {counted(processors, 'processor')}" if is_busy else None


def relabel_shifted(judged: JudgedTest, shift: Shift) -> JudgedTest:
    """Return a judged test without the suspicions that the machine explains."""
    return replace(judged, verdicts=explain_by_shift(judged.verdicts, shift))


def differences_of(
    observations: Iterable[Observation],
    store: BaselineStore,
    *,
    hardware: Hardware | None,
    environment: Environment,
) -> tuple[tuple[str, Scalar, Scalar], ...]:
    """Return what most baselines differ in: name, value then and now."""
    found: Counter[tuple[str, Scalar, Scalar]] = Counter()
    compared = 0
    current = {**environment.lasting, "ttnn": environment.ttnn}
    for observation in observations:
        own = observation.hardware or hardware
        baseline = store.find(own, observation.test) if own else None
        if baseline is not None:
            compared += 1
            then = {**baseline.accepted.environment, "ttnn": baseline.accepted.ttnn}
            found.update(
                (_WORDS.get(name, name), value, current.get(name))
                for name, value in then.items()
                if value is not None and current.get(name) != value
            )
    return tuple(differs for differs, count in found.most_common() if count >= compared / 2)


def difference_text(name: str, before: Scalar, now: Scalar) -> str:
    """Say how the environment differs from that of the baselines."""
    now_text = f"no {name}" if now is None else f"{name} {now}"
    return f"{now_text}, at the baselines {before}"


def failing_verdicts(judged: JudgedTest, settings: Settings) -> tuple[Verdict, ...]:
    """Return the verdicts that fail a test, unless it was written."""
    if judged.written:
        return ()
    return tuple(verdict for verdict in judged.verdicts if _fails(verdict, settings))


def violations(judged: JudgedTest, checklist: Checklist) -> tuple[Finding, ...]:
    """Return the findings that fail a test."""
    if checklist is not Checklist.ENFORCE:
        return ()
    return tuple(finding for finding in judged.findings if finding.fails)


def is_failed(judged: JudgedTest, settings: Settings) -> bool:
    """Return whether a verdict, a finding or a problem fails a test."""
    wrong = judged.observation.problems or violations(judged, settings.checklist)
    return bool(wrong or failing_verdicts(judged, settings))


def _fails(verdict: Verdict, settings: Settings) -> bool:
    match verdict.outcome:
        case Outcome.WITHIN | Outcome.IMPROVED | Outcome.SHIFTED:
            return False  # a shift is no test's own fault: it fails the run
        case Outcome.TOO_NOISY if verdict.reason in {None, Reason.UNDECIDED}:
            # Fewer than three runs cannot show the noise: the verdict is a warning until then.
            return settings.too_noisy is TooNoisy.FAIL and not verdict.provisional
        case Outcome.REGRESSED if is_learning(verdict):
            return False
        case Outcome.NO_DATA if verdict.reason in {Reason.NOTHING_GATED, Reason.NOTHING_TIMED}:
            return settings.missing is Missing.FAIL
        case Outcome.REGRESSED | Outcome.NO_DATA | Outcome.TOO_NOISY:
            return True
        case Outcome.NO_BASELINE | Outcome.NOT_COMPARABLE:
            # Another unit is a mistake in the test or the file, not a missing baseline.
            failing = settings.missing is Missing.FAIL
            return failing or verdict.reason is Reason.OTHER_DEFINITION


class DeviceResults(Struct, frozen=True):
    """Results of the device pass, by test; empty without such a pass.

    ``unavailable`` says why nothing is known of any test. After ``stopped``, no worker may follow:
    a device was left that none can use. ``made``: there was such a pass, over the same tests.
    ``unknown`` says why there was none, though the devices that tests open may have times.
    """

    observations: Mapping[str, Observation] = {}
    unavailable: str | None = None
    stopped: str | None = None
    made: bool = False
    unknown: str | None = None

    def add_to(self, observation: Observation, *, is_new: bool = False) -> Observation:
        """Add the results of this pass, or why there are none.

        Of a test that ``is_new``, nothing may be missing in silence: later runs would not miss it.
        """
        measured = self.observations.get(observation.node_id or observation.test)
        expected = self.unavailable or self.unknown or (self.made and is_new)
        if measured is not None:
            return with_device(observation, measured)
        if not expected or (self.unavailable is None and not _ran_a_model(observation)):
            return observation
        why = (
            self.unavailable
            or self.unknown
            or (
                "the test was skipped in it, or did not measure; --ttnn-perf-passes=wall records "
                "a baseline without it"
            )
        )
        return with_device(observation, unavailable(observation.test, f"device pass: {why}"))


def unavailable(test: str, why: str, source: Source = Source.DEVICE) -> Observation:
    """Return an observation without device times, and the reason."""
    time = recorded_metric(KERNEL_TIME, Kind.TIME, source=source)
    return Observation(test, {KERNEL_TIME: MetricObservation(time, (), note=why)})


def _ran_a_model(observation: Observation) -> bool:
    called = not observation.metrics.keys().isdisjoint({FIRST_CALL, THROUGHPUT_TIME, COMPILE})
    return not observation.ended and observation.hardware is not None and called


def with_device(observation: Observation, of_device: Observation) -> Observation:
    """Join the observations of the wall pass and of the device pass."""
    # The wall pass complains of limits for metrics that only the device pass has. A limit that the
    # device pass does not know, as under Tracy, must not be lost in silence.
    answered = tuple(
        unrecorded(option, name)
        for name, observed in of_device.metrics.items()
        for option, holds in (
            ("tolerance", observed.limits.tolerance is not None),
            ("max_regression", observed.limits.max_regression is not None),
            ("target", observed.limits.target is not None),
            ("gate", observed.gated),
        )
        if holds
    )
    problems = [each for each in observation.problems if not each.startswith(answered)]
    twice = [
        name
        for name, ours in observation.metrics.items()
        if name in of_device.metrics and ours.samples and of_device.metrics[name].samples
        # A capture that the test attaches in both passes is one.
        if ours.metric.source is not of_device.metrics[name].metric.source
    ]
    if twice:
        source = of_device.metrics[twice[0]].metric.source.value
        problems.append(told_twice(twice, "attach", f"the profiler {source}"))
    return replace(
        join_answers(observation, of_device),
        metrics={**observation.metrics, **of_device.metrics},
        ops=of_device.ops or observation.ops,
        environment={**of_device.environment, **observation.environment},
        problems=tuple(dict.fromkeys((*problems, *of_device.problems))),
        dropped=of_device.dropped,
        bottleneck=of_device.bottleneck or observation.bottleneck,
        model_kind=of_device.model_kind or observation.model_kind,
        has_kernels=of_device.has_kernels or observation.has_kernels,
    )
