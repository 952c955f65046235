"""What rounds of two states say of a change: keep it, revert it, or more must be known.

KEEP: a time or a throughput got better by more than the gate's floor (2 %, or the test's own
tolerance), the interval of which lies wholly on the better side; nothing that is gated got worse;
every accuracy is at or above its limit; nothing is open. REVERT: something got worse, or a gain
worth keeping is ruled out. CANNOT_TELL: anything else, as on a simulated device without times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.plan import is_of_host, is_step, order_of_step
from pytest_ttnn_perf.analysis.ops.roofline import roofline_of_groups
from pytest_ttnn_perf.experiments.ab_report import ab_sentence, interval_text
from pytest_ttnn_perf.experiments.compare_rounds import is_exact
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.records.finding import ModelKind, RuleOutcome
from pytest_ttnn_perf.records.metric import (
    COUNTED_IN_GRAPHS,
    KERNEL_TIME,
    Better,
    Kind,
    metric_in,
    split_metric,
)
from pytest_ttnn_perf.records.settings import MIN_ROUNDS
from pytest_ttnn_perf.records.step import (
    Decision,
    Effect,
    Prediction,
    Situation,
    StepFinding,
)
from pytest_ttnn_perf.records.verdict import Outcome, Reason
from pytest_ttnn_perf.report.numbers import format_change, format_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.experiments.ab_report import AbResult
    from pytest_ttnn_perf.experiments.compare_rounds import Compared
    from pytest_ttnn_perf.records.finding import Finding
    from pytest_ttnn_perf.records.observation import Observation
    from pytest_ttnn_perf.records.step import Refusal, Step
    from pytest_ttnn_perf.run.sessions import Sessions


_UNKNOWN: Final = frozenset({Outcome.TOO_NOISY, Outcome.NO_DATA, Outcome.NOT_COMPARABLE})
_ANSWERED: Final = frozenset({RuleOutcome.CLEAN, RuleOutcome.NOT_APPLICABLE})
CANDIDATES: Final = 3
#: What an accuracy is called that fell, and is still at or above its limit.
HOLDS: Final = "HOLDS"


@dataclass(frozen=True, slots=True)
class Sides:
    """What both sides of a step measured, and what was seen meanwhile."""

    result: AbResult
    before: Sessions
    after: Sessions

    def first(self, side: Sessions) -> Mapping[str, Observation]:
        """Return what the first round of a side observed: it is the one with a checklist."""
        return {test: seen[0] for test, seen in side.good().items()}

    def both(self) -> Iterator[tuple[str, Observation, Observation]]:
        """Yield the tests that both sides have."""
        then, now = self.first(self.before), self.first(self.after)
        yield from ((test, then[test], now[test]) for test in now if test in then)

    @property
    def exact(self) -> tuple[str, ...]:
        """The tests of which one round says all, but for their times, which are not judged."""
        return tuple(test for test, then, now in self.both() if is_exact([then], [now]))


def decide(
    sides: Sides, refusals: Sequence[Refusal], *, edited: bool
) -> tuple[Decision, list[str]]:
    """Return the decision, and the sentences that say why.

    ``edited``: the working tree changed while it was measured.
    """
    result, known = sides.result, sides.before.troubles
    if refusals:
        return Decision.NOT_COMPARABLE, list(dict.fromkeys(r.edit for r in refusals))
    if edited:
        return Decision.CANNOT_TELL, ["the working tree was edited while it was measured"]
    troubles = sides.after.troubles.items()
    failed = [f"{test} failed: {why}" for test, why in troubles if test not in known]
    worse = [compared for compared in result.compared if is_worse(compared)]
    if failed or worse:
        return Decision.REVERT, [*failed, *(_sentence(compared, result) for compared in worse)]
    open_questions = [*_open_questions(sides)]
    if open_questions:
        return Decision.CANNOT_TELL, open_questions
    better = [compared for compared in result.compared if is_better(compared)]
    if better:
        return Decision.KEEP, [_sentence(compared, result) for compared in better]
    if sides.exact:
        return Decision.CANNOT_TELL, [_no_times(sides)]
    return Decision.REVERT, [_no_gain(result)]


def is_worse(compared: Compared) -> bool:
    """Tell whether a metric got worse: an accuracy with a limit is judged by that alone."""
    if compared.is_undecided or compared.outcome is not Outcome.REGRESSED:
        return False
    return not holds_its_limit(compared)


def holds_its_limit(compared: Compared) -> bool:
    """Tell whether a metric is an accuracy with a limit of its own, and no worse than that."""
    verdict, limits = compared.verdict, compared.limits
    if verdict.metric.kind is not Kind.ACCURACY or verdict.observed is None:
        return False
    if verdict.metric.better is Better.HIGHER:
        return limits.at_least is not None and verdict.observed >= limits.at_least
    return limits.at_most is not None and verdict.observed <= limits.at_most


def is_better(compared: Compared) -> bool:
    """Tell whether a time or a throughput got better beyond doubt, and by enough."""
    high = compared.paired.high
    return compared.outcome is Outcome.IMPROVED and high is not None and high < 0


def _open_questions(sides: Sides) -> Iterator[str]:
    result = sides.result
    least = 1 if sides.exact and len(sides.exact) == len([*sides.both()]) else MIN_ROUNDS
    if result.whole < least:
        stopped = f"{result.stopped}: " if result.stopped is not None else ""
        yield f"{stopped}rounds that are complete: {result.whole}; it takes {least} to judge"
    elif result.stopped is not None:
        yield result.stopped
    for test, why in sides.before.troubles.items():
        yield f"{test} failed before the change: {why}"
    for test in result.only_before:
        yield f"{test} is not measured any more"
    names = _names(result)
    for compared in result.compared:
        unknown = compared.outcome in _UNKNOWN and not holds_its_limit(compared)
        if compared.is_undecided or (unknown and not _only_explains(compared, names)):
            yield _sentence(compared, result)
    if not result.compared and result.whole >= least:
        yield "no metric could be compared"


def _sentence(compared: Compared, result: AbResult) -> str:
    """Say what is known of one metric: where it is judged by its rounds, with its interval."""
    verdict = compared.verdict
    if compared.is_undecided or compared.paired.low is None:
        return f"{compared.test}: {ab_sentence(compared, result.ref)}"
    now = format_value(verdict.metric, verdict.observed, beside=verdict.centre)
    return (
        f"{compared.test} {verdict.metric.name}: {format_value(verdict.metric, verdict.centre)} "
        f"→ {now}, {format_change(verdict.change_as_read)} ({interval_text(compared)})"
    )


def _no_times(sides: Sides) -> str:
    """Say what a simulated device tells of a change: what it counts, and what was found in it."""
    compared = [each for each in sides.result.compared if each.test in sides.exact]
    told = [
        f"memory {format_change(each.verdict.change_as_read)} ({each.verdict.metric.name})"
        for each in compared
        if each.verdict.metric.kind is Kind.BYTES and each.outcome is Outcome.IMPROVED
    ]
    for each in compared:
        then, now = each.verdict.centre, each.verdict.observed
        is_ops = split_metric(each.verdict.metric.name)[0] in COUNTED_IN_GRAPHS
        if is_ops and then is not None and now is not None and now < then:
            told.append(f"{counted(round(then - now), 'op')} fewer")
    told += [f"{finding.code} closed" for finding in finding_changes(sides)[1]]
    told = list(dict.fromkeys(told)) or ["nothing that is counted got better"]
    return f"no times here: {', '.join(told)}; measure on hardware"


def _no_gain(result: AbResult) -> str:
    timed = [c for c in result.compared if c.paired.low is not None]
    if not timed:
        return "no gain: no time or throughput was compared"
    best = min(timed, key=lambda compared: compared.verdict.change or 0.0)
    verdict = best.verdict
    metric, change = verdict.metric, format_change(verdict.change_as_read)
    least = DEFAULT_POLICY.absolute_floor(metric)
    gain = abs((verdict.observed or 0.0) - (verdict.centre or 0.0))
    is_short = gain <= least and abs(verdict.change or 0.0) > DEFAULT_POLICY.floor
    short = f", less than {format_value(metric, least)}, which a device cannot tell apart"
    return (
        f"no gain worth keeping: the best is {best.test} {metric.name} {change} "
        f"({interval_text(best)}){short if is_short else ''}"
    )


def effects_of(result: AbResult) -> tuple[Effect, ...]:
    """Return what a step did to each metric that is gated, but for parts that only explain one."""
    names = _names(result)
    return tuple(_effect(each) for each in result.compared if not _only_explains(each, names))


def _names(result: AbResult) -> set[tuple[str, str]]:
    return {(each.test, each.verdict.metric.name) for each in result.compared}


def _only_explains(compared: Compared, names: set[tuple[str, str]]) -> bool:
    """Tell whether a metric is part of another, and has nothing to say beside that.

    A part that only one side has is of ops that came or went.
    """
    verdict = compared.verdict
    is_part = any((compared.test, total) in names for total in verdict.metric.totals)
    came_or_went = verdict.reason in {Reason.NEW_METRIC, Reason.NOT_RECORDED}
    quiet = compared.outcome is Outcome.WITHIN or came_or_went
    return verdict.reason is Reason.EXPLAINS or (is_part and quiet)


def _effect(compared: Compared) -> Effect:
    verdict, paired = compared.verdict, compared.paired
    metric, limits = verdict.metric, compared.limits
    ends = [end for end in map(metric.as_read, (paired.low, paired.high)) if end is not None]
    low, high = sorted(ends) if len(ends) == 2 else (None, None)
    return Effect(
        compared.test,
        metric.name,
        metric.unit,
        metric.better,
        metric.kind,
        HOLDS
        if compared.outcome is Outcome.REGRESSED and not is_worse(compared)
        else compared.word,
        verdict.centre,
        verdict.observed,
        verdict.change_as_read,
        low,
        high,
        compared.rounds,
        limits.target,
        limits.at_least,
    )


def finding_changes(sides: Sides) -> tuple[tuple[StepFinding, ...], tuple[StepFinding, ...]]:
    """Return the findings that a step opened, and those that it closed.

    One whose rule has no answer any more is not closed: nobody could tell.
    """
    opened: list[StepFinding] = []
    closed: list[StepFinding] = []
    for test, then, now in sides.both():
        before, after = _standing(then), _standing(now)
        opened += [_told(test, finding) for key, finding in after.items() if key not in before]
        gone = [finding for key, finding in before.items() if key not in after]
        closed += _told_closed(test, [one for one in gone if _is_answered(one, now)])
    return tuple(opened), tuple(closed)


def _told_closed(test: str, findings: Sequence[Finding]) -> Iterator[StepFinding]:
    """Yield closed findings; the largest of a region with all that it would save alone."""
    largest: dict[str, Finding] = {}
    for finding in findings:
        known = largest.get(finding.region)
        if known is None or (finding.saving_ns or 0.0) > (known.saving_ns or 0.0):
            largest[finding.region] = finding
    for finding in findings:
        told = _told(test, finding)
        whole = finding is largest[finding.region]
        yield replace(told, saving_ns=finding.saving_ns) if whole else told


def _standing(observation: Observation) -> dict[tuple[str, str], Finding]:
    found = (finding for finding in observation.findings if finding.stands)
    return {(finding.code, finding.region): finding for finding in found}


def _is_answered(finding: Finding, now: Observation) -> bool:
    outcome = now.outcomes.get(finding.code)
    return outcome in _ANSWERED or outcome is RuleOutcome.FOUND


def _told(test: str, finding: Finding) -> StepFinding:
    return StepFinding(
        test,
        finding.code,
        finding.name,
        finding.adds_ns if finding.adds_ns is not None else finding.saving_ns,
        finding.fix,
        finding.region,
        finding.at_most,
        finding.gaps_ns,
    )


def predictions_of(
    closed: Sequence[StepFinding], effects: Sequence[Effect]
) -> tuple[Prediction, ...]:
    """Return what closed findings promised beside what was measured, by test and metric.

    What promises less waiting shows in the time that users wait for, and not in that of kernels.
    Where kernels were timed, it is what was promised of them: gaps between ops are not in that.
    Regions that show in one time are one prediction.
    """
    known = {(effect.test, effect.metric): effect for effect in effects}
    groups: dict[tuple[str, str], list[StepFinding]] = {}
    for finding in closed:
        if finding.saving_ns:
            groups.setdefault((finding.test, finding.region), []).append(finding)
    found: dict[tuple[str, str], Prediction] = {}
    for (test, region), findings in groups.items():
        kernels = known.get((test, metric_in(region, KERNEL_TIME)))
        waiting = any(is_of_host(finding.code) for finding in findings)
        promised = {finding.code: finding.kernels_ns for finding in findings if finding.kernels_ns}
        effect = kernels
        if waiting or kernels is None or not promised:
            promised = {finding.code: finding.saving_ns or 0.0 for finding in findings}
            effect = main_time(test, effects)
            effect = None if effect == kernels else effect
        if effect is not None and effect.delta is not None and effect.unit == "ns":
            predicted = sum(promised.values())
            bound = any(finding.at_most for finding in findings if finding.code in promised)
            one = Prediction(
                test, tuple(promised), effect.metric, predicted, -effect.delta, at_most=bound
            )
            other = found.get((test, effect.metric))
            found[test, effect.metric] = one if other is None else _joined(other, one)
    return tuple(found.values())


def _joined(one: Prediction, other: Prediction) -> Prediction:
    """Return two predictions of one time as one."""
    return replace(
        one,
        codes=tuple(dict.fromkeys((*one.codes, *other.codes))),
        predicted_ns=one.predicted_ns + other.predicted_ns,
        at_most=one.at_most or other.at_most,
    )


#: The times of a test, the one that its users wait for first.
_MAIN: Final = ("wall_time", "throughput_time", "sim_time", "sim_throughput_time", "call_time")


def main_time(test: str, effects: Sequence[Effect]) -> Effect | None:
    """Return what a step did to the time of a test that matters most; None without any."""
    own = [each for each in effects if each.test == test and each.kind is Kind.TIME]
    ranked = sorted(own, key=lambda e: _MAIN.index(e.metric) if e.metric in _MAIN else len(_MAIN))
    return ranked[0] if ranked else None


def slower_bases(step: Step, known: Mapping[tuple[str, str], float]) -> Iterator[str]:
    """Say of which gains half or more is that the base is slower than it was known to be.

    The machine may be, or something was done to it: the comparison is right, and the gain none.
    """
    if step.decision is not Decision.KEEP:
        return
    for effect in step.effects:
        then, gain = known.get((effect.test, effect.metric)), -(effect.delta or 0.0)
        if effect.kind is not Kind.TIME or then is None or effect.before is None or gain <= 0:
            continue
        if effect.before - then >= gain / 2:
            now, was = (format_value(effect.defined, value) for value in (effect.before, then))
            yield (
                f"{effect.test} {effect.metric}: without the change it takes {now}, and {was} when "
                "that was recorded: at least half of the gain is that"
            )


def candidates_of(sides: Sides) -> tuple[StepFinding, ...]:
    """Return the findings that would save most of what is left, in the order of a plan."""
    found = []
    for test, observation in sides.first(sides.after).items():
        for finding in filter(is_step, observation.findings):
            order = order_of_step(finding, waits=_waits(observation))
            found.append((order, test, _told(test, finding)))
    found.sort(key=lambda each: each[:2])
    return tuple(told for _, _, told in found[:CANDIDATES])


def _waits(observation: Observation) -> bool:
    """Tell whether the host holds a test up, so that faster kernels change nothing."""
    return observation.model_kind == ModelKind.HOST_BOUND.value


def situations_of(sides: Sides) -> dict[str, Situation]:
    """Return where each test stands after the step."""
    by_op = {each.test: each.by_op for each in sides.result.compared if each.by_op}
    return {
        test: _situation(test, observation, by_op.get(test))
        for test, observation in sides.first(sides.after).items()
    }


def _situation(test: str, observation: Observation, by_op: str | None) -> Situation:
    hardware, found = observation.hardware, None
    if observation.ops is not None and hardware is not None and not hardware.simulated:
        found = roofline_of_groups(observation.ops, hardware.arch)
    return Situation(
        test,
        observation.bottleneck,
        found.kernel_ns if found else None,
        found.least_ns if found else None,
        by_op,
    )
