"""Confirm passes: suspects, their controls, and the machine meanwhile."""

from __future__ import annotations

from math import expm1
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import first_difference
from pytest_ttnn_perf.core.metric import Source, median
from pytest_ttnn_perf.core.observation import End, EndKind, Outcome, Reason
from pytest_ttnn_perf.core.text import NANOSECONDS_IN
from pytest_ttnn_perf.gate.machine_shift import change_again
from pytest_ttnn_perf.gate.ratios import POLICY, news_of
from pytest_ttnn_perf.gate.update import Action, actions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pytest_ttnn_perf.core.observation import JudgedTest, Observation, Shift, Verdict
    from pytest_ttnn_perf.core.settings import Update
    from pytest_ttnn_perf.gate.ratios import Suite


class MachineMoves:
    """Changes of controls against their baselines in one pass, by source.

    All are fractions. ``otherwise`` holds without controls: the shift of the run, if it is of that
    source.
    """

    __slots__ = ("by_source", "controls", "otherwise")

    def __init__(
        self,
        controls: Iterable[Mapping[Source, float]],
        suites: Mapping[Source, Suite],
        otherwise: Shift | None = None,
    ) -> None:
        changes: dict[Source, list[float]] = {}
        self.controls, self.otherwise = 0, otherwise
        for control in controls:
            self.controls += bool(control)
            for source, change in control.items():
                changes.setdefault(source, []).append(change)
        self.by_source = {
            source: expm1(news_of(median(known), suites[source].typical, len(known)))
            for source, known in changes.items()
            if source in suites
        }

    def of(self, source: Source) -> float | None:
        """Return the change of the machine for one source."""
        otherwise = self.otherwise
        usual = otherwise.change if otherwise and otherwise.source is source else None
        move = self.by_source.get(source, usual)
        return None if move is None else round(move, 5)


def is_steady(judged: JudgedTest) -> bool:
    """Return whether a test has not changed, and so shows the machine."""
    timings = {v.outcome for v in judged.verdicts if v.metric.compared_by_ratio}
    return timings <= {Outcome.WITHIN, Outcome.SHIFTED, Outcome.TOO_NOISY}


def changes_of_control(judged: JudgedTest, again: Observation) -> Mapping[Source, float]:
    """Return the change of a control for each source."""
    names = judged.observation.metrics.keys()
    if why_not_counted(judged.observation, again, names) is not None:
        return {}
    found: dict[Source, float] = {}
    for verdict in sorted(judged.verdicts, key=lambda verdict: verdict.metric.name):
        observed = again.metrics.get(verdict.metric.name)
        change = change_again(verdict, observed.samples) if observed else None
        if change is not None and not verdict.metric.totals:
            found.setdefault(verdict.metric.source, change)
    return found


#: The most controls of a pass, and how many there are whatever they cost.
_MOST_CONTROLS: Final = 8
_LEAST_CONTROLS: Final = 3
#: As long as all of them take no longer than this, there is nothing to save.
_CHEAP_NS: Final = 1e9


def choose_controls(
    tests: Mapping[str, JudgedTest],
    suspects: Collection[str],
    sources: Collection[Source],
    likeness: Callable[[str], float],
) -> tuple[str, ...]:
    """Choose the controls that are measured again with suspects.

    Tests that are not suspect, and whose ``likeness`` to the suspects is greatest. Beyond a few,
    they take no longer than the suspects do, or a second. Tests that a shift explains come last.
    """
    candidates: list[tuple[bool, float, str]] = []
    for test, judged in tests.items():
        observation = judged.observation
        broken = observation.problems or observation.ended
        again = any(seen.confirmations for seen in observation.metrics.values())
        speaks = any(v.centre and v.metric.source in sources and v.limit for v in judged.verdicts)
        if test in suspects or broken or again or not speaks or not is_steady(judged):
            continue
        shifted = any(verdict.outcome is Outcome.SHIFTED for verdict in judged.verdicts)
        candidates.append((shifted, -likeness(test), test))
    left_ns = sum(_wall_ns(tests[test].observation) for test in suspects)
    left_ns = max(left_ns, _CHEAP_NS)
    # Beside tests that moved with the machine, those that did not say more: they are asked alone.
    steady = [candidate for candidate in candidates if not candidate[0]]
    chosen: list[str] = []
    for _, _, test in sorted(steady if len(steady) >= _LEAST_CONTROLS else candidates):
        took_ns = _wall_ns(tests[test].observation)
        if len(chosen) < _LEAST_CONTROLS or took_ns <= left_ns:
            chosen.append(test)
            left_ns -= took_ns
    return tuple(chosen[:_MOST_CONTROLS])


def _wall_ns(observation: Observation) -> float:
    times = [
        sum(observed.samples) * NANOSECONDS_IN[observed.metric.unit]
        for observed in observation.metrics.values()
        if observed.metric.source is Source.WALL and observed.metric.unit in NANOSECONDS_IN
    ]
    return max(times, default=1.0)


#: What is the same however often it is asked for, or is told at the end alone.
MEASURED_ONCE: Final = frozenset({Source.REPLAY, Source.TRACY})
#: Passes that a new baseline takes: one lucky or unlucky process must not become it, and three show
#: how far processes lie apart.
_OF_NEW: Final = 2


def in_question(judged: JudgedTest, update: Update | None, *, passes: int) -> frozenset[str]:
    """Return the metrics of a test that must be measured again.

    Those that may be worse than their limit, and those that would become a baseline. Times and
    throughputs only: what is compared exactly has no luck. Each ``passes`` times at most.
    """
    observation = judged.observation
    if observation.problems or observation.ended:
        return frozenset()
    # A gain is measured along with suspects, as if these were bad luck: once they are cleared there
    # may be too few passes left for the gain.
    lucky = (
        replace(v, outcome=Outcome.WITHIN) if _is_suspect(v, observation) else v
        for v in judged.verdicts
    )
    actions = actions_of(replace(judged, verdicts=tuple(lucky)), update) if update else {}
    static = {name for name, each in observation.metrics.items() if each.capture is not None}
    return frozenset(
        verdict.metric.name
        for verdict in judged.verdicts
        if verdict.metric.name not in static
        and verdict.metric.compared_by_ratio
        # What was recorded is the same however often it is read; Tracy reports at its end alone.
        and verdict.metric.source not in MEASURED_ONCE
        # A part is accepted with its total, and that is what is measured again.
        and verdict.reason is not Reason.EXPLAINS
        and _is_asked(verdict, observation, actions.get(verdict.metric.name), passes)
    )


def _is_asked(
    verdict: Verdict, observation: Observation, action: Action | None, passes: int
) -> bool:
    if action in {Action.ADD, Action.REPLACE}:
        passes = min(passes, _OF_NEW)
    elif action is not Action.ACCEPT and not _is_suspect(verdict, observation):
        return False
    return len(observation.metrics[verdict.metric.name].confirmations) < passes


def in_doubt(judged: JudgedTest, known: Callable[[Source], bool]) -> frozenset[str]:
    """Return the metrics that rounds against the baseline's commit should decide.

    Suspects that stay undecided, and where the machine is not ``known``, all that is beyond the
    floor: too few tests say whether that is the machine.
    """
    observation, found = judged.observation, set()
    if observation.problems or observation.ended:
        return frozenset()
    for verdict in judged.verdicts:
        name, source = verdict.metric.name, verdict.metric.source
        observed = observation.metrics.get(name)
        if verdict.reason is not None or observed is None or observed.rounds or observed.capture:
            continue
        if not verdict.metric.compared_by_ratio or source in MEASURED_ONCE or not verdict.limit:
            continue
        tolerance = observed.limits.tolerance
        floor = min(POLICY.floor if tolerance is None else tolerance, verdict.limit)
        if verdict.undecided or (not known(source) and (verdict.change or 0.0) > floor):
            found.add(name)
    return frozenset(found)


def _is_suspect(verdict: Verdict, observation: Observation) -> bool:
    # By its numbers, which may be luck, as long as each pass has some.
    beyond = verdict.outcome is Outcome.REGRESSED and verdict.metric.compared_by_ratio
    observed = observation.metrics.get(verdict.metric.name)
    if verdict.reason is not None or observed is None or not (beyond or verdict.undecided):
        return False
    if observed.rounds is not None:
        return False
    return all(samples and min(samples) > 0 for samples in observed.confirmations)


def add_confirmation(
    observation: Observation,
    names: Collection[str],
    again: Observation,
    *,
    number: int,
    first: Mapping[Source, Suite],
    moves: MachineMoves,
) -> Observation:
    """Add the samples of confirm pass ``number`` to the metrics ``names``.

    ``first`` says what the machine did in the first pass, ``moves`` what it does in this one.
    """
    failed = why_not_counted(observation, again, names)
    if failed is None and not again.metrics.keys() >= set(names):
        failed = "the test did not record it"
    if failed is not None:
        return mark_unconfirmed(observation, names, f"confirm pass {number}: {failed}")
    metrics = dict(observation.metrics)
    for name in names:
        observed = metrics[name]
        source = observed.metric.source
        move = first[source].move if source in first else None
        at_first = None if move is None else round(expm1(move), 5)
        metrics[name] = replace(
            observed,
            confirmations=(*observed.confirmations, again.metrics[name].samples),
            machine=(*(observed.machine or (at_first,)), moves.of(source)),
        )
    return replace(observation, metrics=metrics)


def mark_unconfirmed(observation: Observation, names: Iterable[str], why: str) -> Observation:
    """Return an observation whose metrics ``names`` could not be measured again."""
    metrics = dict(observation.metrics)
    for name in names:
        observed = metrics[name]
        metrics[name] = replace(observed, confirmations=(*observed.confirmations, ()))
    return replace(observation, metrics=metrics, ended=End(EndKind.UNCONFIRMED, why))


def why_not_counted(
    observation: Observation, again: Observation, names: Collection[str]
) -> str | None:
    """Return why a repeated measurement does not count, if so."""
    if again.ended or again.problems:
        return str(again.ended or again.problems[0])
    key, key_before = (
        each.hardware.key if each.hardware else "no device" for each in (again, observation)
    )
    if key != key_before:
        return f"other hardware: {key}, before {key_before}"
    difference = first_difference(again.setting, observation.setting)
    if difference is not None:
        name, now, then = difference
        return f"another configuration: {name} is {now!r}, before {then!r}"
    for name in again.metrics.keys() & set(names):
        metric, before = again.metrics[name].metric, observation.metrics[name].metric
        part = metric.differs_from(before)
        if part is not None:
            said = f"{part} is {metric.part(part)!r}, before {before.part(part)!r}"
            return f"{name} is defined differently: {said}"
        if metric.source is not before.source:
            said = f"{metric.source.value}, before {before.source.value}"
            return f"{name} comes from another source: {said}"
    return None


def suspects(judged: JudgedTest) -> list[Verdict]:
    """Return the verdicts that make a test look slower."""
    return [v for v in judged.verdicts if _is_suspect(v, judged.observation)]
